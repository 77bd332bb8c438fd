package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/access"
)

// asked makes a request with a token, "" for none, and returns its status, its header Retry-After and its body.
func (s *server) asked(method, path, token, body string) (status int, later, said string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Retry-After"), string(raw)
}

// madeToken makes a token as an operator does.
func (s *server) madeToken(args ...string) string {
	s.t.Helper()
	code, out, told := command(s.t, s.t.Context(), append([]string{"--data", s.data, "token", "add"}, args...)...)
	if code != 0 {
		s.t.Fatal(told)
	}
	return strings.TrimSpace(out)
}

// Rates and tokens of single agents, and limits of tokens, hold on the real server.
func TestSingleAgentsHaveRules(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "aod.yaml")
	write(t, `unit:
  hidden: {a2a: {private: true, tokens: [friend]}}
  closed: {a2a: {tokens: [friend]}}
  off: {a2a: {enabled: false}}
  slow: {a2a: {rate: 1, burst: 1}}
`, file)
	s := newInside(t, "--config", file)
	for _, unit := range []string{"hidden", "closed", "off", "slow", "plain"} {
		s.addWorker(unit, "")
	}
	s.start()
	friend, other := s.madeToken("friend", "--scope", "run"), s.madeToken("other", "--scope", "run")
	card, tasks := "/.well-known/agent-card.json", "/tasks"
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/a2a/hidden" + card, "", 404},
		{"/a2a/hidden" + card, other, 404},
		{"/a2a/hidden" + card, friend, 200},
		{"/a2a/hidden" + tasks, other, 404},
		{"/a2a/hidden" + tasks, friend, 200},
		{"/a2a/hidden" + tasks, s.token, 200},
		{"/a2a/closed" + card, "", 200},
		{"/a2a/closed" + tasks, other, 403},
		{"/a2a/closed" + tasks, friend, 200},
		{"/a2a/off" + card, s.token, 404},
		{"/a2a/off" + tasks, s.token, 404},
		{"/a2a/plain" + tasks, other, 200},
	} {
		if status, _, said := s.asked("GET", c.path, c.token, ""); status != c.want {
			t.Errorf("%s with %.8q: %d %s", c.path, c.token, status, said)
		}
	}
	for token, want := range map[string]string{"": "closed plain slow", friend: "closed hidden plain slow", other: "closed plain slow"} {
		_, _, said := s.asked("GET", card, token, "")
		if got := skillsOf(t, said); got != want {
			t.Errorf("the card of all units has %s for %.8q, want %s", got, token, want)
		}
	}
	const hello = `{"message":{"messageId":"%","role":"ROLE_USER","parts":[{"data":{"mark":1}}]},"configuration":{"returnImmediately":true}}`
	if status, _, said := s.asked("POST", "/a2a/slow/message:send", friend, strings.Replace(hello, "%", "1", 1)); status != 200 {
		t.Errorf("the first message: %d %s", status, said)
	}
	if status, later, said := s.asked("POST", "/a2a/slow/message:send", s.token, strings.Replace(hello, "%", "2", 1)); status != 429 || later == "" || !strings.Contains(said, "RetryInfo") {
		t.Errorf("the second message: %d, %q, %s", status, later, said)
	}
	hasty := s.madeToken("hasty", "--scope", "run", "--rate", "1") // what it may is back in a minute
	s.asked("GET", "/a2a/plain"+tasks, hasty, "")
	rpc := `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}`
	if status, later, said := s.asked("POST", "/a2a/plain", hasty, rpc); status != 429 || later == "" || !strings.Contains(said, `"code":-32000`) || !strings.Contains(said, "retryDelay") {
		t.Errorf("over the token's rate: %d, %q, %s", status, later, said)
	}
}

// skillsOf lists the names of the skills of a card.
func skillsOf(t *testing.T, card string) string {
	t.Helper()
	var document struct{ Skills []struct{ Name string } }
	if err := json.Unmarshal([]byte(card), &document); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, skill := range document.Skills {
		names = append(names, skill.Name)
	}
	return strings.Join(names, " ")
}

func TestWhoMayAskAnAgent(t *testing.T) {
	t.Parallel()
	rules := a2aRules{"shut": {Tokens: []string{"friend"}, Enabled: true}, "for-all": {Enabled: true}}
	as := func(name string, scopes ...access.Scope) context.Context {
		return access.WithGrant(t.Context(), access.Grant{Name: name, Scopes: scopes})
	}
	for who, c := range map[string]struct {
		ctx  context.Context //nolint:containedctx // it is what is tried
		want bool
	}{
		"the named one":                 {as("friend", access.Run), true},
		"another":                       {as("other", access.Run), false},
		"another that may do all":       {as("other", access.Admin), false},
		"the server's own":              {as("", access.Admin), true},
		"nobody":                        {as(""), false},
		"everybody where none is asked": {as("", access.Admin), true},
		"who forgot to say so":          {t.Context(), false},
	} {
		if err := rules.admits(c.ctx, "shut"); (err == nil) != c.want {
			t.Errorf("%s: %v", who, err)
		}
		for _, unit := range []string{"for-all", "without-rules"} {
			if err := rules.admits(c.ctx, unit); err != nil && who != "nobody" && who != "who forgot to say so" {
				t.Errorf("%s asks %s: %v", who, unit, err)
			}
		}
	}
	if rate := (a2aRules{"a": {Rate: config.UnitsOwn, Burst: 3}}).rates(7)["a"]; rate.Minute != 7 || rate.Burst != 3 {
		t.Errorf("%+v", rate)
	}
}
