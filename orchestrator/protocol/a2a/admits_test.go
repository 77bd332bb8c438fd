package a2a

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Whoever may not ask an agent comes to it by no method, by its own address and by that of all agents.
func TestAnAgentThatAClientMayNotAsk(t *testing.T) {
	for name, c := range map[string]struct {
		bar    error
		status int
		code   codes.Code
	}{
		"is refused":   {fault.New(fault.Forbidden, "the token may not ask it"), http.StatusForbidden, codes.PermissionDenied},
		"isn't there":  {fault.New(fault.NotFound, "there is none"), http.StatusNotFound, codes.NotFound},
		"may be asked": {nil, http.StatusOK, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, nil)
			ended(w)
			w.bars = map[string]error{"echo": c.bar}
			for _, call := range [][3]string{
				{"POST", "/message:send", parts10(`{"text":"hi"}`)},
				{"POST", "/message:stream", parts10(`{"text":"hi again"}`)},
				{"GET", "/tasks/" + runID(1), ""},
				{"GET", "/tasks", ""},
				{"GET", "/extendedAgentCard", ""},
				{"GET", "/v1/card", ""},
			} {
				if said := w.do(call[0], "/a2a/echo"+call[1], call[2]); said.StatusCode != c.status {
					t.Errorf("%s: %d %s", call[1], said.StatusCode, said.body)
				}
			}
			rpc := w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"`+runID(1)+`"}}`)
			if failed := at(decode(t, rpc.body), "error") != nil; failed != (c.bar != nil) {
				t.Errorf("%d %s", rpc.StatusCode, rpc.body)
			}
			v1 := pbv1.NewA2AServiceClient(dial(t, w, nil))
			if _, err := v1.GetTask(trusted.Context(t), &pbv1.GetTaskRequest{Tenant: "echo", Id: runID(1)}); status.Code(err) != c.code {
				t.Errorf("gRPC: %v", err)
			}
			named := strings.Replace(parts10(`{"text":"of all"}`), `"messageId"`, `"metadata":{"unit":"echo"},"messageId"`, 1)
			if said := w.do("POST", "/a2a/_/message:send", named); said.StatusCode != c.status {
				t.Errorf("by the agent of all: %d %s", said.StatusCode, said.body)
			}
			if said := w.do("GET", "/a2a/_/tasks/"+runID(1), ""); (said.StatusCode == http.StatusOK) != (c.bar == nil) {
				t.Errorf("its task by the agent of all: %d %s", said.StatusCode, said.body)
			}
			listed := decode(t, w.do("GET", "/a2a/_/tasks", "").body)["tasks"].([]any)
			if (len(listed) > 0) != (c.bar == nil) {
				t.Errorf("the agent of all lists %v", listed)
			}
		})
	}
}

func TestAnAgentHasARateOfItsOwn(t *testing.T) {
	w := newHarness(t, func(o *Options) {
		o.Rate = 1000
		o.Rates = map[string]httpwire.Rate{"echo": {Minute: 2, Burst: 1}, "other": {}}
	})
	send := func(unit, part string, header ...string) answerRead {
		return w.do("POST", "/a2a/"+unit+"/message:send", parts10(part), header...)
	}
	if said := send("echo", `{"text":"1"}`); said.StatusCode != http.StatusOK {
		t.Fatal(said.body)
	}
	said := send("echo", `{"text":"2"}`)
	details := at(decode(t, said.body), "error", "details", 1)
	if said.StatusCode != http.StatusTooManyRequests || said.Header.Get("Retry-After") != "30" || at(details, "retryDelay") != "30s" || at(decode(t, said.body), "error", "status") != "RESOURCE_EXHAUSTED" {
		t.Errorf("%d %v %s", said.StatusCode, said.Header, said.body)
	}
	rpc := w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":`+parts10(`{"text":"3"}`)+`}`)
	if failure := at(decode(t, rpc.body), "error"); at(failure, "code") != -32000.0 || at(failure, "data", 1, "retryDelay") != "30s" || rpc.Header.Get("Retry-After") != "30" {
		t.Errorf("%d %s", rpc.StatusCode, rpc.body)
	}
	for range 5 {
		if said := send("other", `{"data":{"n":1}}`); said.StatusCode != http.StatusOK {
			t.Errorf("one without a bound: %d %s", said.StatusCode, said.body)
		}
	}
	over := func(ctx context.Context, _ Caller) (context.Context, error) {
		return ctx, fault.New(fault.Busy, "the token asks too often").WithRetry(12 * time.Second)
	}
	refused := pbv1.NewA2AServiceClient(dial(t, w, func(o *Options) { o.Authorize = over }))
	_, err := refused.GetTask(trusted.Context(t), &pbv1.GetTaskRequest{Tenant: "echo", Id: runID(1)})
	var wait time.Duration
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			wait = info.RetryDelay.AsDuration()
		}
	}
	if status.Code(err) != codes.ResourceExhausted || wait != 12*time.Second {
		t.Errorf("over the token's rate: %v, wait %s", err, wait)
	}
	v1 := pbv1.NewA2AServiceClient(dial(t, w, nil))
	if _, err := v1.SendMessage(trusted.Context(t), hello10("first")); err != nil {
		t.Fatal(err)
	}
	if _, err := v1.SendMessage(trusted.Context(t), hello10("second")); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("gRPC: %v", err)
	}
}
