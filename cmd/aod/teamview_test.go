package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// views are the requests about nothing that is named, and about units that are for all: what they tell b doesn't change
// with what a has. The routes of the server's document without a parameter come to them.
var views = []string{
	"/v1/runs?roots=true", "/v1/runs?active=true", "/v1/runs?context=a-context", "/v1/runs?made_by=a", "/v1/runs?metadata=who:canary", "/v1/runs?limit=1",
	"/v1/runs/counts?by=state", "/v1/runs/counts?by=unit", "/v1/sessions?open=true", "/v1/questions?limit=1", "/v1/schedules?limit=1",
	"/v1/units/writer", "/v1/units/asker", "/v1/units/talker", "/v1/units/writer/versions", "/v1/units/asker/flow", "/v1/runs?unit=writer",
	"/.well-known/agent-card.json", "/a2a/writer/.well-known/agent-card.json", "/a2a/_/.well-known/agent-card.json",
	"/a2a/writer/tasks", "/a2a/_/tasks", "/a2a/_/v1/card", "/a2a/_/extendedAgentCard",
}

// unviewed are the routes without a parameter that aren't asked: they answer for as long as somebody listens, or tell of
// the server itself.
var unviewed = []string{"/v1/events", "/v1/workers", "/v1/demand", "/mcp", "/metrics", "/openapi.json", "/healthz", "/readyz", "/health", "/health/ready"}

// seen are the answers to all views.
func (w *teams) seen(name string) map[string]string {
	w.Helper()
	_, raw := w.asks("", http.MethodGet, "/openapi.json", "")
	var document struct{ Paths map[string]map[string]any }
	w.must(json.Unmarshal([]byte(raw), &document))
	paths := slices.Clone(views)
	for path, methods := range document.Paths {
		if methods["get"] != nil && !strings.Contains(path, "{") && !slices.Contains(unviewed, path) {
			paths = append(paths, path)
		}
	}
	told := map[string]string{}
	for _, path := range paths {
		told[path] = said(w, w.begins(name, http.MethodGet, path, ""))
	}
	for method, params := range map[string]string{"tools/list": "{}", "resources/list": "{}", "resources/templates/list": "{}", "server/discover": "{}"} {
		told[method] = said(w, w.begins(name, http.MethodPost, "/mcp", statelessly(method, params), statelessHeaders(method, "")...))
	}
	return told
}

// What a team is told of the server doesn't change with what another one has in it.
func TestATeamIsToldAsIfThereWereNoOther(t *testing.T) {
	w := newTeams(t, nil)
	before, beforeA := w.seen("b"), w.seen("a")
	w.fill()
	after, changed := w.seen("b"), 0
	for what, now := range w.seen("a") {
		if now != beforeA[what] {
			changed++
		}
	}
	for what, now := range after {
		if before[what] != now {
			t.Errorf("%s was\n%s\nand is\n%s", what, before[what], now)
		}
	}
	if _, status := w.asks("operator", http.MethodGet, "/v1/a2a", ""); strings.Contains(status, `"push":0`) {
		t.Error("no receiver of a's has to be told of anything")
	}
	if changed < len(after)/2 {
		t.Errorf("a's own things change %d of %d answers to a", changed, len(after))
	}
}
