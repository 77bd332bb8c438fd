package httpapi

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

func TestASessionOverHTTP(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	write(t, filepath.Join(s.sources, "talker", "Dockerfile"), "FROM base:1\n")
	write(t, filepath.Join(s.sources, "talker", "agent.yaml"),
		"name: talker\nkind: agent\nagent: {command: [talk], flags: {model: m}, env: {GREETING: hello}, mode: interactive, protocol: acp}\nsession: {keep_alive: true}\n")
	shown := decode[api.Unit](t, s.do("GET", "/v1/units/talker", "").wants(t, 200))
	want := &api.UnitAgent{
		Type: "json-rpc", Enabled: true, Command: []string{"talk"}, Flags: map[string]any{"model": "m"}, Dir: "/workspace",
		Mode: "interactive", Input: "stdin", Output: "stdout", Protocol: "acp", Env: []string{"GREETING"}, Approval: "deny",
		Session: &api.AgentSession{Idle: "30m", KeepAlive: true},
	}
	if diff := cmp.Diff(want, shown.Agent); diff != "" || shown.Concurrency != 2 || shown.Access != "read-only" {
		t.Errorf("%s %d %s", diff, shown.Concurrency, shown.Access)
	}
	s.do("POST", "/v1/sessions", `{"unit":"actor"}`).wants(t, 409)
	s.do("POST", "/v1/sessions", `{"unit":"nobody"}`).wants(t, 404)
	s.do("POST", "/v1/sessions", `{"unit":"talker","stray":1}`).wants(t, 400)
	begun := decode[api.Session](t, s.do("POST", "/v1/sessions", `{"unit":"talker"}`).wants(t, 201))
	if begun.Unit != "talker" || begun.State != api.SessionOpen || begun.Turns != 0 {
		t.Errorf("begun: %+v", begun)
	}
	to := "/v1/sessions/" + begun.ID
	s.do("POST", to+"/messages", `{"message":"hello","input":{}}`).wants(t, 400)
	s.do("POST", to+"/messages", `{"unit":"talker","message":"hello"}`).wants(t, 400)
	s.do("POST", "/v1/runs", `{"session":"`+begun.ID+`","unit":"actor","input":{"message":"hello"}}`).wants(t, 409)
	turn := decode[api.Record](t, s.do("POST", to+"/messages", `{"message":"hello"}`).wants(t, 202))
	if turn.Session != begun.ID || turn.Turn != 1 || string(turn.Input) != `{"message":"hello"}` {
		t.Errorf("turn: %+v", turn)
	}
	s.do("GET", "/v1/runs/"+turn.ID+"?wait=soon", "").wants(t, 400)
	if ended := decode[api.Record](t, s.do("GET", "/v1/runs/"+turn.ID+"?wait=3m", "").wants(t, 200)); ended.Outcome == "" {
		t.Errorf("it was waited for: %+v", ended)
	}
	a := s.do("POST", to+"/messages?stream=true", `{"message":"again"}`).wants(t, 200)
	if !strings.Contains(a.body, "event: end") {
		t.Errorf("its events: %s", a.body)
	}
	if got := decode[api.Session](t, s.do("GET", to, "").wants(t, 200)); got.Turns != 2 {
		t.Errorf("it has %d turns", got.Turns)
	}
	if page := decode[api.Page](t, s.do("GET", "/v1/runs?session="+begun.ID, "").wants(t, 200)); len(page.Runs) != 2 {
		t.Errorf("its turns: %+v", page.Runs)
	}
	if page := decode[api.SessionPage](t, s.do("GET", "/v1/sessions?unit=talker", "").wants(t, 200)); len(page.Sessions) != 1 {
		t.Errorf("sessions: %+v", page)
	}
	if got := decode[api.Session](t, s.do("DELETE", to, "").wants(t, 200)); got.State != api.SessionClosed || got.Reason == "" {
		t.Errorf("closed: %+v", got)
	}
	s.do("POST", to+"/messages", `{"message":"more"}`).wants(t, 409)
	s.do("GET", "/v1/sessions/x", "").wants(t, 404)
	s.do("DELETE", "/v1/sessions/0199aaaa-0000-7000-8000-000000000001", "").wants(t, 404)
}
