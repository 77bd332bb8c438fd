package main

import (
	"encoding/json"
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
		c.Teams = map[string]config.TeamConfig{"a": {Slots: 1, Queued: 1}, "b": {Storage: 1}}
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
