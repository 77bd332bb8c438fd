package httpapi

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/protocol/a2a"
	"github.com/agent-on-demand/aod/orchestrator/protocol/agents"
)

var scopeRow = regexp.MustCompile("(?m)^\\| (`(?:[A-Z]+ )?/[^|]*) \\| (read|run|upload|admin|metrics|approve|read or approve|any|none) \\|$")

// guideScopes reads the guides' tables: the scope by "METHOD /path", "" where any token will do, or
// none is needed.
func guideScopes(t *testing.T) map[string]access.Scope {
	t.Helper()
	api, err := os.ReadFile("../../docs/server-api.md")
	must(t, err)
	a2a, err := os.ReadFile("../../docs/a2a.md")
	must(t, err)
	scopes := map[string]access.Scope{}
	for _, row := range scopeRow.FindAllStringSubmatch(string(api)+string(a2a), -1) {
		for route := range strings.SplitSeq(row[1], ", ") {
			scope := access.Scope(strings.TrimPrefix(strings.TrimPrefix(row[2], "none"), "any"))
			if scope == "read or approve" {
				scope = access.Questions
			}
			scopes[strings.Trim(route, "`")] = scope
		}
	}
	return scopes
}

// also are the scopes that have what another one has.
var also = map[access.Scope][]access.Scope{
	access.Metrics: {access.Read}, access.Approve: {access.Run}, access.Questions: {access.Read, access.Approve},
}

const agentCard = "/agent-card.json"

// a2aMounts are the addresses of A2A; what answers there is of no matter.
func a2aMounts() []Mount {
	nothing := http.NotFoundHandler()
	return []Mount{{Patterns: a2a.RESTPatterns(), Handler: nothing}, {Patterns: a2a.RPCPatterns(), Handler: nothing}, {Patterns: a2a.CardPatterns(), Handler: nothing, Open: true}}
}

// Each route answers a token of each scope as the guide's table says.
func TestEachRouteNeedsTheScopeThatTheGuideSays(t *testing.T) {
	t.Parallel()
	tokens := access.NewTokens(filepath.Join(t.TempDir(), "tokens.json"))
	made := map[access.Scope]string{}
	for _, scope := range access.Scopes {
		token, err := tokens.Add(access.Grant{Name: "only-" + string(scope), Scopes: []access.Scope{scope}})
		must(t, err)
		made[scope] = token
	}
	a, err := New(&orchestrator.Service{}, Options{Token: token, Tokens: tokens, Mounts: append(mountsOf(&orchestrator.Service{}, agents.Options{}), a2aMounts()...)})
	must(t, err)
	said := guideScopes(t)
	var served []string
	for pattern, r := range a.routes.known {
		method, path, _ := strings.Cut(pattern, " ")
		if method == http.MethodHead {
			continue
		}
		name := method + " " + template(path)
		if strings.Contains(path, "/a2a/:") || strings.HasSuffix(path, agentCard) { // of all methods
			name = strings.Replace(template(path), "/{name}", "/", 1)
		}
		served = append(served, name)
		needs, known := said[name]
		if !known {
			t.Errorf("the guide's table doesn't have %s", name)
			continue
		}
		if r.scope != needs {
			t.Errorf("%s needs %q, the guide says %q", name, r.scope, needs)
		}
		if needs == "" {
			continue
		}
		for _, scope := range access.Scopes {
			request := request(method, path, "")
			request.Host = "localhost"
			request.Header.Set("Authorization", "Bearer "+made[scope])
			answer := record(a.Handler(), request)
			allowed := scope == needs || scope == access.Admin || slices.Contains(also[needs], scope)
			if refused := answer.Code == http.StatusForbidden; refused == allowed || answer.Code == http.StatusUnauthorized {
				t.Errorf("%s with a token of the scope %s: %d", name, scope, answer.Code)
			}
			named := strings.Replace(string(needs), "questions", "read", 1)
			if !allowed && !strings.Contains(answer.Body.String(), "lacks the scope "+named) {
				t.Errorf("%s with a token of the scope %s: %s", name, scope, answer.Body)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if !slices.Contains(served, name) {
			t.Errorf("the guide's table has %s, which isn't served", name)
		}
	}
}

func TestATokenWithAName(t *testing.T) {
	t.Parallel()
	tokens := access.NewTokens(filepath.Join(t.TempDir(), "tokens.json"))
	s := newServer(t, func(o *Options) { o.Tokens = tokens })
	made, err := tokens.Add(access.Grant{Name: "ci", Scopes: []access.Scope{access.Run}})
	must(t, err)
	ci := "Authorization: Bearer " + made
	run := s.run(`{"do":"files"}`, ci)
	if run.By != "ci" {
		t.Errorf("its run is by %q", run.By)
	}
	if stored := s.record(run.ID); stored.By != "ci" {
		t.Errorf("stored is by %q", stored.By)
	}
	if again := decode[api.Record](t, s.do("POST", "/v1/runs/"+run.ID+"/rerun?wait=3m", "", ci).wants(t, 200)); again.By != "ci" {
		t.Errorf("a rerun is by %q", again.By)
	}
	if own := s.run(`{"do":"files"}`); own.By != "" {
		t.Errorf("a run with the server's own token is by %q", own.By)
	}
	for by, want := range map[string]int{"ci": 2, "ada": 0, "": 3} {
		page := decode[api.Page](t, s.do("GET", "/v1/runs?made_by="+by, "").wants(t, 200))
		counts := decode[api.Facet](t, s.do("GET", "/v1/runs/counts?by=unit&made_by="+by, "").wants(t, 200))
		if len(page.Runs) != want || counts.Runs != int64(want) {
			t.Errorf("%d runs made by %q are listed, and %d counted, of %d", len(page.Runs), by, counts.Runs, want)
		}
	}
	refused := decode[httpwire.Problem](t, s.do("GET", "/v1/runs", "", ci).wants(t, 403))
	if refused.Code != "forbidden" || !strings.Contains(refused.Hint, "--scope read") {
		t.Errorf("refused with %+v", refused)
	}
	s.do("GET", "/v1/nothing", "", ci).wants(t, 404)
	s.until(func() bool { return strings.Contains(s.log.String(), `"status":403,`) })
	if log := s.log.String(); !strings.Contains(log, `"token":"ci"`) || strings.Contains(log, made) {
		t.Errorf("the log says\n%s", log)
	}
	must(t, tokens.Remove("ci"))
	if a := s.do("POST", "/v1/runs", `{"unit":"actor"}`, ci).wants(t, 401); !strings.Contains(a.Header.Get("WWW-Authenticate"), "invalid_token") {
		t.Errorf("revoked: %v", a.Header)
	}
}
