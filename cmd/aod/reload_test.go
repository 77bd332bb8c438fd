package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/testing/issuertest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// What is set holds without another start, and nothing of it where something is wrong.
func TestAServerReadsItsSettingsAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.addCaller("hello", "echo '{}' > /io/output.json")
	file := filepath.Join(t.TempDir(), "aod.yaml")
	write(t, "queue: 7\nteams: {a: {queued: 5}}\n", file)
	s.flags = append(s.flags, "--config", file)
	s.start()
	rules := func() (rules []string) {
		for line := range strings.Lines(s.aod("usage", "--left", "--json")) {
			var q api.Quota
			if err := json.Unmarshal([]byte(line), &q); err != nil {
				t.Fatal(err)
			}
			rules = append(rules, q.Rule+" "+q.Limit.String())
		}
		return rules
	}
	if record := s.await(s.call("hello", "{}")); record.TimeoutMS != (5 * time.Minute).Milliseconds() { // the unit is known now
		t.Errorf("a run has %d ms", record.TimeoutMS)
	}
	write(t, "queue: 8\nteams: {a: {queued: 6}, b: {sessions: 2}}\nunit: {hello: {timeout: 90s, max_stdin: 1MiB}}\n", file)
	said := strings.Fields(s.aod("config", "reload"))
	for _, want := range []string{"teams.a.queued", "teams.b.sessions", "unit.hello.timeout", "queue", "unit.hello.max_stdin"} {
		if !slices.Contains(said, want) {
			t.Errorf("it doesn't tell of %s: %q", want, said)
		}
	}
	if got := rules(); !slices.Equal(got, []string{"teams.a.queued 6", "teams.b.sessions 2"}) {
		t.Errorf("%q", got)
	}
	if record := s.await(s.call("hello", "{}")); record.TimeoutMS != (90 * time.Second).Milliseconds() {
		t.Errorf("a run has %d ms", record.TimeoutMS)
	}
	write(t, "queue: 9\nteams: {a: {queued: 1, slot: 2}}\nunit: {hello: {timeout: soon}}\n", file)
	said2, code := s.command("config", "reload")
	if code != 2 || !strings.Contains(said2, file+":2") || !strings.Contains(said2, file+":3") || !strings.Contains(said2, "did you mean slots?") {
		t.Errorf("of a broken file it says, with %d: %s", code, said2)
	}
	if got := rules(); !slices.Equal(got, []string{"teams.a.queued 6", "teams.b.sessions 2"}) {
		t.Errorf("a broken file has changed it to %q", got)
	}
	write(t, "queue: 8\nteams: {c: {slots: 3}}\n", file)
	if err := s.process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the signal counts", func() bool { return slices.Equal(rules(), []string{"teams.c.slots 3"}) })
	testkit.Eventually(t, "the audit has a row of both", func() bool {
		rows := 0
		for line := range strings.Lines(s.aod("audit", "--json")) {
			if strings.Contains(line, `"reload"`) && strings.Contains(line, `"operator"`) {
				rows++
			}
		}
		return rows == 2
	})
}

// What people may do, and whether receivers are told, is read again, too.
func TestPeopleAndWebhooksAreReadAgain(t *testing.T) {
	at := issuertest.New(t)
	w := newWalled(t, peopled(at))
	w.keys["operator"], w.keys["ada"] = w.key, at.Token(issuertest.Claims{"sub": "ada", "groups": []string{"a"}})
	const hook = `{"url": "https://hook.test/in"}`
	asks := func(when string, begin, add int, said string) {
		t.Helper()
		if status, answer := w.asks("ada", http.MethodPost, "/v1/runs", `{"unit": "writer", "input": {}}`); status != begin {
			t.Errorf("%s: a run is %d %s", when, status, answer)
		}
		if status, answer := w.asks("operator", http.MethodPost, "/v1/webhooks", hook); status != add || !strings.Contains(answer, said) {
			t.Errorf("%s: a webhook is %d %s", when, status, answer)
		}
	}
	reads := func(change func(*config.Config)) {
		t.Helper()
		next := *w.file
		change(&next)
		w.file = &next
		if status, answer := w.asks("operator", http.MethodPost, "/v1/config/reload", ""); status != http.StatusOK || strings.Contains(answer, `"restart":["`) {
			t.Fatalf("%d %s", status, answer)
		}
	}
	asks("at first", http.StatusAccepted, http.StatusUnprocessableEntity, "webhook_private")
	reads(func(c *config.Config) {
		c.OIDC.Scopes, c.Webhooks.Private = map[string]string{"a": "read"}, []string{"hook.test=127.0.0.1"}
	})
	asks("then", http.StatusForbidden, http.StatusCreated, "whsec_")
	reads(func(c *config.Config) { c.Webhooks.Enabled = false })
	asks("without webhooks", http.StatusForbidden, http.StatusNotImplemented, "webhooks.enabled")
}

func TestWhatHoldsAtOnceIsToldFromWhatDoesNot(t *testing.T) {
	t.Parallel()
	read := func(text string) *config.Config {
		file := filepath.Join(t.TempDir(), "aod.yaml")
		write(t, text, file)
		c, err := config.Load(config.Options{File: file, Getenv: func(string) string { return "" }, Data: "/data"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const model = "providers: {p: {kind: compatible, base_url: https://p.example.com}}\nmodels: {m: {use: [p/x], price: {input: %}}}\n"
	before := read("listen: 127.0.0.1:1\nmodel_cost: 1\n" + strings.ReplaceAll(model, "%", "1"))
	change := before.Again(read("listen: 127.0.0.1:2\nmodel_cost: 2\npolicy: {memory: 1GiB}\nunit: {u: {a2a: {rate: 2}, network: none}}\n" + strings.ReplaceAll(model, "%", "2")))
	for _, key := range []string{"model_cost", "models", "policy.memory", "unit.u.network"} {
		if !slices.Contains(change.Changed, key) {
			t.Errorf("%s isn't in %q", key, change.Changed)
		}
	}
	if !slices.Equal(change.Restart, []string{"listen", "unit.u.a2a.rate"}) {
		t.Errorf("%q", change.Restart)
	}
	if c := change.Config; c.Listen != "127.0.0.1:1" || c.ModelCost != 2e9 || c.Models["m"].Price.Input != 2e9 {
		t.Errorf("%s %s %+v", c.Listen, c.ModelCost, c.Models)
	}
	const people = "teams: {r: {}}\noidc: {issuer: https://id.example.com, audience: aod, team: groups, rate: %, scopes: {default: [read], claim: @, map: {g: run}}}\n"
	oidc := func(rate, claim string) *config.Config {
		return read(strings.NewReplacer("%", rate, "@", claim).Replace(people))
	}
	change = oidc("1", "groups").Again(oidc("2", "groups"))
	if !slices.Equal(change.Changed, []string{"oidc.rate"}) || len(change.Restart) > 0 || change.Config.OIDC.Rate != 2 {
		t.Errorf("of people: %+v, rate %d", change, change.Config.OIDC.Rate)
	}
	change = oidc("1", "groups").Again(oidc("2", "roles")) // the map is of other claims
	if len(change.Changed) > 0 || !slices.Equal(change.Restart, []string{"oidc.rate", "oidc.scopes.claim"}) || change.Config.OIDC.Rate != 1 {
		t.Errorf("of another claim: %+v, rate %d", change, change.Config.OIDC.Rate)
	}
	if same := change.Config.Again(change.Config); len(same.Changed)+len(same.Restart) > 0 {
		t.Errorf("%+v", same)
	}
}
