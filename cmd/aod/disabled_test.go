package main

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

func TestAUnitThatIsSwitchedOff(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addCaller("person", "")
	s.runs("person", personInside)
	s.addCaller("boss", "")
	s.runs("boss", bossInside)
	s.start()
	going := s.asking(`{"text":"May I?","kind":"approval"}}`)
	s.question(going)
	s.aod("units", "disable", "person")
	s.aod("units", "disable", "boss")
	s.kill()
	s.start()
	_, err := s.client.Runs.Submit(t.Context(), client.Submission{Unit: "person", Input: []byte(`{}`)})
	if public := fault.Public(err); !fault.Is(err, fault.Disabled) || !strings.Contains(public.Hint, "aod units enable person") {
		t.Errorf("a run of it is refused with %v (%s)", err, public.Hint)
	}
	u, err := s.client.Units.Get(t.Context(), "person")
	if err != nil || !u.Disabled || u.Status == nil || u.Status.Running != 1 || u.Status.LastRun == nil || u.Status.LastRun.ID != going {
		t.Errorf("unit %+v, %v", u, err)
	}
	s.aod("approve", going)
	if record := s.await(going); record.Outcome != api.Success {
		t.Errorf("what went on came to %s", record.Outcome)
	}
	if status, body := s.answer("/v1/units/person?wait=idle"); status != 200 || !strings.Contains(body, `"running":0,"waiting":0`) {
		t.Errorf("%d %s", status, body)
	}
	s.aod("units", "enable", "boss")
	boss := s.call("boss", `{}`) // which calls itself
	s.question(boss)
	s.aod("units", "disable", "boss")
	s.aod("approve", boss)
	if got := string(s.await(boss).Output); !strings.HasPrefix(got, `{"status":409,`) || !strings.Contains(got, `"code":"disabled"`) {
		t.Errorf("a handoff to it is answered %s", got)
	}
}

func TestAUnitThatIsSwitchedOffByItself(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	write(t, "FROM "+dockertest.Image+"\n", s.units, "off", "Dockerfile")
	write(t, "name: off\nkind: agent\nenabled: false\nagent: {command: [cat]}\n", s.units, "off", "agent.yaml")
	s.runs("off", echoInside)
	s.start()
	sub := client.Submission{Unit: "off", Input: []byte(`{"message":"x"}`)}
	refused := func(when string) {
		t.Helper()
		if _, err := s.client.Runs.Submit(t.Context(), sub); !fault.Is(err, fault.Disabled) || !strings.Contains(fault.Public(err).Hint, "enabled: false") {
			t.Errorf("%s: %v (%s)", when, err, fault.Public(err).Hint)
		}
		if u, err := s.client.Units.Get(t.Context(), "off"); err != nil || !u.Disabled {
			t.Errorf("%s: %+v, %v", when, u, err)
		}
	}
	refused("as it is")
	s.aod("units", "enable", "off")
	s.kill()
	s.start()
	record, err := s.client.Runs.Submit(t.Context(), sub)
	if err != nil {
		t.Fatalf("the operator's word doesn't count: %v", err)
	}
	if record = s.await(record.ID); record.Outcome != api.Success {
		t.Errorf("%s %+v", record.Outcome, record.Error)
	}
	s.aod("units", "disable", "off")
	refused("switched off again")
}
