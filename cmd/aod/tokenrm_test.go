package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc/codes"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/turns"
)

// Streams of the protocols end with their token as those of /v1 do.
func TestStreamsOfAllProtocolsEndWithTheirToken(t *testing.T) {
	w := newWalled(t, nil)
	w.add("ci", access.Run)
	run := w.made("ci", "wait").ID
	type ended struct{ what, answer string }
	over := make(chan ended, 4)
	go func() {
		_, answer := w.asks("ci", http.MethodPost, "/a2a/writer", `{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"`+run+`"}}`, "Accept: text/event-stream")
		over <- ended{"A2A", answer}
	}()
	go func() {
		_, answer := w.asks("ci", http.MethodPost, "/agents/writer/run/stream", `{"request_id":"r-1","task_type":"WRITER","inputs":{"text":"wait"}}`)
		over <- ended{"the agent contract", answer}
	}()
	go func() {
		ctx, cancel := context.WithTimeout(w.Context(), testkit.Patience)
		defer cancel()
		stream, err := pbv1.NewA2AServiceClient(w.conn).SubscribeToTask(w.bearing(ctx, "ci"), &pbv1.SubscribeToTaskRequest{Tenant: "writer", Id: run})
		for err == nil {
			_, err = stream.Recv()
		}
		over <- ended{"gRPC", err.Error()}
	}()
	listening := w.listens("ci")
	go func() {
		defer listening.Body.Close()
		raw, _ := io.ReadAll(listening.Body)
		over <- ended{"MCP", string(raw)}
	}()
	testkit.Eventually(t, "they are open", func() bool {
		page, err := w.service.Runs.List(trusted.Context(w), api.Filter{Active: true})
		return err == nil && len(page.Runs) == 2
	})
	w.must(w.tokens.Remove("ci"))
	began := time.Now()
	for range 4 {
		if e := <-over; !strings.Contains(e.answer, "was revoked") {
			t.Errorf("%s ended with %q", e.what, e.answer)
		}
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("they ended after %v", took)
	}
	if code, _ := w.byGRPC("ci", "/lf.a2a.v1.A2AService/GetTask", methodsOf(pbv1.File_a2av1_proto)["/lf.a2a.v1.A2AService/GetTask"], "{}"); code != codes.Unauthenticated {
		t.Errorf("its next call: %v", code)
	}
}

func TestWhatARevokedTokenLeavesIsToldAndStopped(t *testing.T) {
	w := newWalled(t, func(c *config.Config) {
		write(t, "FROM base:1\n", c.Units[0], "talker", "Dockerfile")
		write(t, "name: talker\nkind: agent\nagent: {command: [talk], mode: interactive, protocol: acp}\nsession: {keep_alive: true}\n", c.Units[0], "talker", "agent.yaml")
	})
	scheduler, _ := orchestrator.FeatureOf[*schedules.Scheduler](w.service)
	for _, name := range []string{"ci", "ops"} {
		w.add(name, access.Run)
		w.made(name, "wait")
		ctx := access.WithGrant(w.Context(), access.Grant{Name: name, Scopes: []access.Scope{access.Run}})
		_, _, err := scheduler.Put(ctx, "of-"+name, api.ScheduleSpec{Unit: "writer", Every: "1h"}, nil)
		w.must(err)
		_, err = w.service.Sessions.Create(ctx, "talker", nil)
		w.must(err)
	}
	var more []string
	rm := func(want int, said ...string) {
		t.Helper()
		code, _, stderr := command(t, t.Context(), append([]string{"token", "rm", "ci"}, more...)...)
		if code != want {
			t.Errorf("code %d: %s", code, stderr)
		}
		contains(t, stderr, said...)
	}
	rm(0, "ci is revoked", "1 run, 1 session, 1 schedule made with it: `aod token rm ci --stop` stops what goes on")
	rm(2, "there is no token")
	more = []string{"--stop"}
	rm(0, "stopped 1 run, 1 session, 1 schedule made with it")
	testkit.Eventually(t, "its run is over, and the other one's alone goes on", func() bool {
		page, err := w.service.Runs.List(trusted.Context(w), api.Filter{Active: true})
		return err == nil && len(page.Runs) == 1 && page.Runs[0].By == "ops"
	})
	for name, want := range map[string]api.ScheduleState{"of-ci": api.SchedulePaused, "of-ops": api.ScheduleCreated} {
		if got, err := scheduler.Get(trusted.Context(w), name); err != nil || got.State != want {
			t.Errorf("%s is %s, %v", name, got.State, err)
		}
	}
	open, err := w.service.Sessions.List(trusted.Context(w), turns.Filter{Open: true})
	if err != nil || len(open.Sessions) != 1 || open.Sessions[0].By != "ops" {
		t.Errorf("sessions %+v, %v", open.Sessions, err)
	}
	rm(0, "nothing goes on that was made with it")
}
