package httpapi

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// limited returns a server and the headers of a token with limits and of one without.
func limited(t *testing.T, limits access.Limits) (s *server, ci, free string) {
	t.Helper()
	tokens := access.NewTokens(filepath.Join(t.TempDir(), "tokens.json"))
	s = newServer(t, func(o *Options) { o.Tokens = tokens })
	for header, with := range map[*string]access.Limits{&ci: limits, &free: {}} {
		name := map[bool]string{true: "ci", false: "free"}[header == &ci]
		made, err := tokens.Add(access.Grant{Name: name, Scopes: []access.Scope{access.Run, access.Read}, Limits: with})
		must(t, err)
		*header = "Authorization: Bearer " + made
	}
	return s, ci, free
}

func TestATokenHasARate(t *testing.T) {
	t.Parallel()
	s, ci, free := limited(t, access.Limits{Rate: 2})
	s.do("GET", "/v1/runs", "", ci).wants(t, 200)
	s.do("POST", "/v1/prune", "", ci).wants(t, 403) // what is refused counts as well
	for _, path := range []string{"/v1/runs", "/v1/nothing"} {
		a := s.do("GET", path, "", ci).wants(t, 429)
		p := decode[httpwire.Problem](t, a)
		later, err := strconv.Atoi(a.Header.Get("Retry-After"))
		if p.Code != "busy" || !strings.Contains(p.Detail, "2 in a minute") || a.Header.Get("Content-Type") != "application/problem+json" || err != nil || later < 1 || later > 30 {
			t.Errorf("%v %+v", a.Header, p)
		}
	}
	s.do("GET", "/health", "", ci).wants(t, 200)
	for range 5 {
		s.do("GET", "/v1/runs", "", free).wants(t, 200)
		s.do("GET", "/v1/runs", "").wants(t, 200)
	}
	s.until(func() bool { return strings.Contains(s.log.String(), `"status":429,`) })
	if log := s.log.String(); !strings.Contains(log, `"token":"ci"`) {
		t.Errorf("the log says\n%s", log)
	}
}

func TestATokenHasSoManyRunsAtOnce(t *testing.T) {
	t.Parallel()
	s, ci, free := limited(t, access.Limits{Runs: 1})
	const slow = `{"unit":"actor","input":{"do":"wait"}}`
	first := decode[api.Record](t, s.do("POST", "/v1/runs", slow, ci, "Idempotency-Key: same").wants(t, 202))
	a := s.do("POST", "/v1/runs", slow, ci).wants(t, 429)
	if p := decode[httpwire.Problem](t, a); p.Code != "busy" || !strings.Contains(p.Detail, `the token "ci" may have 1 of its runs going on`) || !strings.Contains(p.Hint, "--runs") || a.Header.Get("Retry-After") == "" {
		t.Errorf("%+v", p)
	}
	s.do("POST", "/v1/runs", slow, ci, "Idempotency-Key: same").wants(t, 202) // it is none of its own
	s.do("POST", "/v1/runs?wait=3m", `{"unit":"actor","input":{}}`, free).wants(t, 200)
	s.run(`{"do":"files"}`)
	_, err := s.svc.Cancel(trusted.Context(t), first.ID, "enough")
	must(t, err)
	s.until(func() bool {
		return s.do("POST", "/v1/runs?wait=3m", `{"unit":"actor","input":{}}`, ci).StatusCode == 200
	})
	for range 3 { // whoever is told of the end may go on at once
		s.do("POST", "/v1/runs?wait=3m", `{"unit":"actor","input":{}}`, ci).wants(t, 200)
	}
}
