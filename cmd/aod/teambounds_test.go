package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestATeamHasItsBounds(t *testing.T) {
	w := newWalled(t, func(c *config.Config) {
		c.Teams = map[string]config.TeamConfig{"a": {Quota: config.Quota{Slots: 1, Queued: 1}}, "b": {Quota: config.Quota{Storage: 1}}}
	})
	w.inTeam("ada", "a", access.Run, access.Read)
	w.inTeam("bob", "b", access.Run, access.Read, access.Admin)
	record := func(name, id string) (r api.Record) {
		_, answer := w.asks(name, http.MethodGet, "/v1/runs/"+id, "")
		w.must(json.Unmarshal([]byte(answer), &r))
		return r
	}
	refused := func(name, setting string) {
		t.Helper()
		status, answer := w.asks(name, http.MethodPost, "/v1/runs", `{"unit": "writer", "input": {"text": "x"}}`)
		if status != http.StatusTooManyRequests || !strings.Contains(answer, setting) {
			t.Errorf("beyond %s: %d %s", setting, status, answer)
		}
	}
	first, second := w.begun("ada", "wait"), w.begun("ada", "x")
	testkit.Eventually(w, "one waits for its team's slot", func() bool {
		waits := record("ada", second).Waiting
		return record("ada", first).State == api.Running && waits != nil && waits.Reason == "team" && waits.Place == 1
	})
	refused("ada", "teams.a.queued")
	w.begun("bob", "x") // another team has its own
	used := func(name, part string) {
		t.Helper()
		testkit.Eventually(w, "what its team used is told", func() bool {
			_, answer := w.asks(name, http.MethodGet, "/v1/usage?by=team,unit,outcome", "")
			return strings.Contains(answer, part)
		})
	}
	used("bob", `"team":"b","unit":"writer","outcome":"success","runs":1`)
	refused("bob", "teams.b.storage")
	if status, answer := w.asks("bob", http.MethodPost, "/v1/prune", `{"older_than": "0s"}`); status != http.StatusOK || !strings.Contains(answer, `"runs":1`) {
		t.Errorf("its administrator makes room: %d %s", status, answer)
	}
	w.begun("bob", "x")
	if status, answer := w.asks("ada", http.MethodPost, "/v1/runs/"+first+"/cancel", "{}"); status != http.StatusAccepted {
		t.Errorf("%d %s", status, answer)
	}
	testkit.Eventually(w, "the slot is passed on", func() bool { return record("ada", second).Outcome == api.Success })
	used("ada", `"team":"a","unit":"writer","outcome":"success","runs":1`)
	if _, answer := w.asks("ada", http.MethodGet, "/v1/usage?by=team", ""); strings.Contains(answer, `"b"`) {
		t.Errorf("a team is told of another one: %s", answer)
	}
}

// Sessions of MCP of a team count together, whoever of it has them, until they are over.
func TestATeamHasSoManySessionsOfMCP(t *testing.T) {
	w := newWalled(t, func(c *config.Config) {
		c.Teams = map[string]config.TeamConfig{"a": {Quota: config.Quota{MCPSessions: 1}}, "b": {}}
	})
	for name, team := range map[string]string{"ada": "a", "amy": "a", "bob": "b"} {
		w.inTeam(name, team, access.Run, access.Read)
	}
	asks := func(name, method, session, body string) (int, string, string) {
		headers := []string{"Accept: application/json, text/event-stream"}
		if session != "" {
			headers = append(headers, "Mcp-Session-Id: "+session)
		}
		answer := w.begins(name, method, "/mcp", body, headers...)
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		w.must(err)
		return answer.StatusCode, string(said), answer.Header.Get("Mcp-Session-Id")
	}
	status, said, session := asks("ada", http.MethodPost, "", mcpHello)
	if status != http.StatusOK || session == "" {
		t.Fatalf("%d %s", status, said)
	}
	if status, said, _ := asks("amy", http.MethodPost, "", mcpHello); status != http.StatusTooManyRequests || !strings.Contains(said, "teams.a.mcp_sessions") {
		t.Errorf("a second one of the team: %d %s", status, said)
	}
	if status, said, _ := asks("bob", http.MethodPost, "", mcpHello); status != http.StatusOK {
		t.Errorf("another team's: %d %s", status, said)
	}
	_, left := w.asks("amy", http.MethodGet, "/v1/quotas", "")
	if !strings.Contains(left, `{"team":"a","rule":"teams.a.mcp_sessions","limit":1,"used":1,"left":0}`) {
		t.Error(left)
	}
	if status, said, _ := asks("ada", http.MethodDelete, session, ""); status >= 300 {
		t.Fatalf("%d %s", status, said)
	}
	if status, said, _ := asks("amy", http.MethodPost, "", mcpHello); status != http.StatusOK {
		t.Errorf("after the end of the first: %d %s", status, said)
	}
}

// A token has bounds of its own, which are nothing to the others of its team.
func TestATokenHasItsBounds(t *testing.T) {
	w := newWalled(t, func(c *config.Config) {
		c.Tokens = map[string]config.Quota{"ci": {Slots: 1, Queued: 1, MCPSessions: 1}, "hoard": {Storage: 1}}
	})
	for _, name := range []string{"ci", "me", "hoard"} {
		w.inTeam(name, "a", access.Run, access.Read)
	}
	waits := func(name, id string) (reason string, over bool) {
		_, answer := w.asks(name, http.MethodGet, "/v1/runs/"+id, "")
		var r api.Record
		w.must(json.Unmarshal([]byte(answer), &r))
		if r.Waiting != nil {
			reason = r.Waiting.Reason
		}
		return reason, r.Outcome == api.Success
	}
	refused := func(name, path, body, setting string) {
		t.Helper()
		status, answer := w.asks(name, http.MethodPost, path, body, "Accept: application/json, text/event-stream")
		if status != http.StatusTooManyRequests || !strings.Contains(answer, setting) {
			t.Errorf("beyond %s: %d %s", setting, status, answer)
		}
	}
	const run = `{"unit": "writer", "input": {"text": "x"}}`
	first, second := w.begun("ci", "wait"), w.begun("ci", "x")
	testkit.Eventually(w, "one waits for its token's slot", func() bool {
		reason, _ := waits("ci", second)
		return reason == "token"
	})
	refused("ci", "/v1/runs", run, "tokens.ci.queued")
	mine := w.begun("me", "x")
	testkit.Eventually(w, "another one of the team goes on", func() bool { _, over := waits("me", mine); return over })
	w.begun("hoard", "x")
	testkit.Eventually(w, "its run has its size", func() bool {
		_, left := w.asks("hoard", http.MethodGet, "/v1/quotas", "")
		return !strings.Contains(left, `"rule":"tokens.hoard.storage","limit":1,"used":0`)
	})
	refused("hoard", "/v1/runs", run, "tokens.hoard.storage")
	if status, answer := w.asks("ci", http.MethodPost, "/mcp", mcpHello, "Accept: application/json, text/event-stream"); status != http.StatusOK {
		t.Errorf("the first session of MCP: %d %s", status, answer)
	}
	refused("ci", "/mcp", mcpHello, "tokens.ci.mcp_sessions")
	_, left := w.asks("ci", http.MethodGet, "/v1/quotas", "")
	for _, want := range []string{
		`{"token":"ci","rule":"tokens.ci.slots","limit":1,"used":1,"left":0}`,
		`{"token":"ci","rule":"tokens.ci.queued","limit":1,"used":1,"left":0}`,
		`{"token":"ci","rule":"tokens.ci.mcp_sessions","limit":1,"used":1,"left":0}`,
	} {
		if !strings.Contains(left, want) || strings.Contains(left, "hoard") {
			t.Errorf("what is left is %s, without %s", left, want)
		}
	}
	if status, answer := w.asks("ci", http.MethodPost, "/v1/runs/"+first+"/cancel", "{}"); status != http.StatusAccepted {
		t.Errorf("%d %s", status, answer)
	}
	testkit.Eventually(w, "the slot is passed on", func() bool { _, over := waits("ci", second); return over })
}
