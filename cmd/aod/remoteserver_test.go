package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
)

// addRemote writes a unit whose agent is elsewhere, with further lines below remote.
func (s *server) addRemote(name, url, more string) {
	s.t.Helper()
	write(s.t, "name: "+name+"\nkind: remote\nretries: 1\nremote:\n  url: "+url+"\n"+more, s.units, name, "agent.yaml")
	write(s.t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, s.units, name, "schema.json")
}

// One server's unit is another's agent elsewhere, which its token opens.
func TestAServersUnitsAreAgentsElsewhere(t *testing.T) {
	t.Parallel()
	there, here := newInside(t), newInside(t)
	there.addWorker("worker", "")
	there.start()
	token, err := os.ReadFile(filepath.Join(there.home(), "token"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, string(token), here.data, "secrets", "there")
	here.addRemote("far", there.url(), "  task_type: WORKER\n  stream: true\n  auth: {secret: there}\n")
	here.addRemote("stranger", there.url(), "  task_type: WORKER\n")
	here.start()
	run := func(unit, input string) api.Record {
		t.Helper()
		record, err := here.client.Runs.Submit(context.Background(), client.Submission{Unit: unit, Input: []byte(input)})
		if err != nil {
			t.Fatal(err)
		}
		return here.await(record.ID)
	}
	if record := run("far", `{"ticks":2,"mark":1}`); record.Outcome != api.Success || len(record.Output) < 3 {
		t.Errorf("%s, error %+v, output %s", record.Outcome, record.Error, record.Output)
	}
	if record := run("far", `{"exit":3}`); record.Outcome != api.RemoteError || record.Error.Category != api.CategoryAgent {
		t.Errorf("%s, error %+v", record.Outcome, record.Error)
	}
	if record := run("far", `{"ticks":"two"}`); record.Outcome != api.RemoteError || record.Error.Category != api.CategoryPermanent {
		t.Errorf("%s, error %+v", record.Outcome, record.Error)
	}
	if record := run("stranger", `{}`); record.Outcome != api.RemoteError || !strings.Contains(record.Error.Message, "401") || record.Retries > 0 {
		t.Errorf("%s, error %+v", record.Outcome, record.Error)
	}
	if strings.Contains(here.log(), strings.TrimSpace(string(token))) {
		t.Error("the log has the token")
	}
}
