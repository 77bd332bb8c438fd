package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// lastWord is what a command that makes a token prints in the end.
func lastWord(stdout string) string {
	words := strings.Fields(stdout)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// says runs a command that has to succeed.
func (w *walled) says(args ...string) (stdout, stderr string) {
	w.Helper()
	code, stdout, stderr := command(w.T, w.Context(), args...)
	if code != 0 {
		w.Fatalf("%q: code %d: %s", args, code, stderr)
	}
	return stdout, stderr
}

func TestTokensByCommand(t *testing.T) {
	w := newWalled(t, nil)
	file := filepath.Join(w.data, "server", layout.Tokens)
	stdout, _ := w.says("token", "add", "ci", "--scope", "run,read", "--expires", "90d", "--unit", "writer", "--team", "a,b", "--rate", "600")
	w.keys["first"] = lastWord(stdout)
	stdout, _ = w.says("token", "rotate", "ci")
	w.keys["second"] = lastWord(stdout)
	for _, name := range []string{"first", "second"} {
		if code, answer := w.asks(name, http.MethodGet, "/v1/whoami", ""); code != 200 || !strings.Contains(answer, `"identity":"token:ci"`) {
			t.Errorf("the %s one: %d %s", name, code, answer)
		}
	}
	table, _ := w.says("token", "ls")
	contains(t, table, "EXPIRES", "LAST USED", "UNITS", "writer", "600/min", time.Now().Add(90*24*time.Hour).Format("2006-01-"), "never")
	if raw, err := os.ReadFile(file); err != nil || strings.Contains(string(raw), "used") {
		t.Errorf("the tokens' file: %v, %s", err, raw)
	}
	listed, _ := w.says("token", "ls", "--json", "--server", w.url)
	var token api.Token
	w.must(json.Unmarshal([]byte(listed), &token))
	if token.LastUsedAt == nil || time.Since(*token.LastUsedAt) > 2*time.Minute || token.GraceUntil == nil || token.ExpiresAt == nil || token.Rate != 600 {
		t.Errorf("listed by the server: %+v", token)
	}
	_, _ = w.says("token", "rotate", "ci", "--grace", "0")
	if code, answer := w.asks("second", http.MethodGet, "/v1/whoami", ""); code != 401 || !strings.Contains(answer, "was rotated") {
		t.Errorf("without a grace: %d %s", code, answer)
	}
	for _, wrong := range [][]string{
		{"add", "x", "--scope", "run", "--expires", "soon"}, {"add", "x", "--scope", "run", "--expires", "2001-01-01"}, {"rotate", "nobody"}, {"rotate", "ci", "--grace", "1y"}, {"rm", "nobody"},
	} {
		if code, stdout, stderr := command(t, t.Context(), append([]string{"token"}, wrong...)...); code != 2 || stdout != "" {
			t.Errorf("%q: code %d, %q, %s", wrong, code, stdout, stderr)
		}
	}
}

func TestTokensOfATeamByCommandAndAPI(t *testing.T) {
	w := newWalled(t, nil)
	stdout, _ := w.says("token", "add", "boss", "--scope", "admin", "--team", "a")
	t.Setenv("AOD_SERVER", w.url)
	t.Setenv("AOD_TOKEN", lastWord(stdout))
	stdout, _ = w.says("token", "add", "ada", "--scope", "run,read")
	ada := lastWord(stdout)
	scheduler, _ := orchestrator.FeatureOf[*schedules.Scheduler](w.service)
	ctx := access.WithGrant(t.Context(), access.Grant{Name: "ada", Scopes: []access.Scope{access.Run}, Teams: []string{"a"}})
	_, _, err := scheduler.Put(ctx, "nightly", api.ScheduleSpec{Unit: "writer", Every: "1h"}, nil)
	w.must(err)
	if code, _, stderr := command(t, t.Context(), "token", "add", "eve", "--scope", "run", "--team", "b"); code == 0 || !strings.Contains(stderr, "a team that isn't yours") {
		t.Errorf("code %d: %s", code, stderr)
	}
	w.says("token", "add", "bob", "--scope", "run,read")
	_, stderr := w.says("token", "rm", "ada", "--give", "bob")
	contains(t, stderr, "ada is revoked", "1 schedule given to bob", "nothing goes on that was made with it")
	if got, err := scheduler.Get(trusted.Context(w), "a.nightly"); err != nil || got.By != "bob" {
		t.Errorf("it is %q's, %v", got.By, err)
	}
	if code, _, stderr := command(t, t.Context(), "token", "rm", "bob", "--give", "ada"); code == 0 || !strings.Contains(stderr, `no token "ada"`) {
		t.Errorf("code %d: %s", code, stderr)
	}
	table, _ := w.says("token", "ls")
	contains(t, table, "boss", "bob")

	shown, _ := w.says("whoami")
	contains(t, shown, "server    "+w.url+", aod ", "identity  token:boss", "scopes    admin", "teams     a\n", "expires   never")
	t.Setenv("AOD_TOKEN", ada)
	if code, _, stderr := command(t, t.Context(), "whoami"); code == 0 || !strings.Contains(stderr, "revoked") {
		t.Errorf("code %d: %s", code, stderr)
	}
	t.Setenv("AOD_TOKEN", w.key)
	t.Setenv("AOD_TEAM", "b")
	shown, _ = w.says("whoami", "--json")
	var me api.Whoami
	w.must(json.Unmarshal([]byte(shown), &me))
	if len(me.Teams) != 1 || me.Teams[0] != "b" || me.Identity != "" || me.Version == "" {
		t.Errorf("in a team: %+v", me)
	}
	t.Setenv("AOD_TEAM", "")
	if code, _, stderr := command(t, t.Context(), "token", "add", "here", "--scope", "run", "--data", w.data); code != 0 {
		t.Errorf("--data says more than AOD_SERVER: code %d: %s", code, stderr)
	}
	if all, err := w.tokens.List(); err != nil || len(all) != 3 || all[2].Name != "here" {
		t.Errorf("%+v, %v", all, err)
	}
}

// A token that is limited to one unit runs no other by any protocol.
func TestATokenIsLimitedToItsUnitsByEveryProtocol(t *testing.T) {
	w := newWalled(t, func(c *config.Config) {
		for name, text := range writerFiles("other") {
			write(t, text, c.Units[0], "other", name)
		}
	})
	w.add("wide", access.Run, access.Read)
	key, err := w.tokens.Add(access.Grant{Name: "narrow", Scopes: []access.Scope{access.Run, access.Read}, Units: []string{"other"}})
	w.must(err)
	w.keys["narrow"] = key
	tries := func(name string) {
		w.byMCP(name, "tools/call", noRun)
		for _, call := range w.bindings() {
			_, _ = call(name, "SendMessage", "")
		}
		w.asks(name, http.MethodPost, "/agents/writer/run/sync", `{"request_id":"r","task_type":"WRITER","inputs":{"text":"x"}}`)
		w.asks(name, http.MethodPost, "/execute", `{"capsule":"writer","input":{}}`)
		w.asks(name, http.MethodPost, "/v1/runs", `{"unit":"writer"}`)
	}
	runs := func() int {
		page, err := w.service.Runs.List(trusted.Context(w), api.Filter{})
		w.must(err)
		return len(page.Runs)
	}
	tries("narrow")
	if n := runs(); n != 0 {
		t.Errorf("it began %d runs", n)
	}
	if _, card := w.asks("narrow", http.MethodGet, "/.well-known/agent-card.json", ""); strings.Contains(card, `"writer"`) || !strings.Contains(card, `"other"`) {
		t.Errorf("its card: %s", card)
	}
	if _, tools := w.asks("narrow", http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, w.mcpSession("narrow")...); strings.Contains(tools, `"writer"`) || !strings.Contains(tools, `"other"`) {
		t.Errorf("its tools: %s", tools)
	}
	if code, answer := w.asks("narrow", http.MethodPost, "/v1/runs?wait=1m", `{"unit":"other"}`); code != http.StatusOK {
		t.Errorf("its own: %d %s", code, answer)
	}
	before := runs()
	tries("wide")
	testkit.Eventually(t, "the other one begins some", func() bool { return runs() > before })
}
