package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/testing/issuertest"
)

// peopled has a server take an issuer at its word: groups are teams, and everybody may do everything in them.
func peopled(at *issuertest.Issuer) func(*config.Config) {
	return func(c *config.Config) {
		c.OIDC = config.OIDCConfig{
			Issuer: at.URL, Audience: "aod", ClientID: "aod", PageClient: "aod", LoginScopes: []string{"openid", "offline_access"}, Team: "groups", Group: "groups",
			ScopeClaim: "groups", Scopes: map[string]string{"a": "read,run,upload,admin", "b": "read,run,upload,admin"},
		}
		c.Teams = map[string]config.TeamConfig{"a": {}, "b": {}}
	}
}

// People of two teams see what their own has, by every protocol.
func TestNoProtocolTellsAPersonOfAnotherTeam(t *testing.T) {
	at := issuertest.New(t)
	w := newTeams(t, peopled(at))
	for _, team := range []string{"a", "b"} {
		w.keys[team] = at.Token(issuertest.Claims{"sub": team + "-person", "groups": []string{team, "vpn"}})
	}
	own := w.run("writer", "", isOver)
	if by := w.record(own).By; by != "user:a-person" {
		t.Errorf("it is of %q", by)
	}
	told := 0
	for call, ask := range w.taskCalls() {
		foreign, none := ask("b", own), ask("b", noRun)
		if strings.ReplaceAll(foreign, own, noRun) != none {
			t.Errorf("%s: b is told %s, of no run %s", call, foreign, none)
		}
		if mine := ask("a", own); strings.ReplaceAll(mine, own, noRun) != ask("a", noRun) {
			told++
		}
	}
	if told < 20 {
		t.Errorf("a is told of the run by %d calls only", told)
	}
	for _, path := range []string{"/v1/runs", "/v1/usage?by=identity", "/v1/audit"} {
		if code, answer := w.asks("b", http.MethodGet, path, ""); code != 200 || strings.Contains(answer, "a-person") || strings.Contains(answer, own) {
			t.Errorf("%s: %d %s", path, code, answer)
		}
		if _, answer := w.asks("a", http.MethodGet, path, ""); !strings.Contains(answer, "user:a-person") {
			t.Errorf("%s: a is told %s", path, answer)
		}
	}
	w.keys["nobody"] = at.Token(issuertest.Claims{"groups": "vpn"})
	if code, answer := w.asks("nobody", http.MethodGet, "/v1/runs", ""); code != 403 || !strings.Contains(answer, "oidc.team") {
		t.Errorf("who is of no team is told %d %s", code, answer)
	}
}
