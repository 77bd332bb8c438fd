package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// named is a server with tokens with names, and the file in which they are.
func named(t *testing.T) (s *server, tokens *access.Tokens, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "tokens.json")
	tokens = access.NewTokens(file)
	return newServer(t, func(o *Options) { o.Tokens = tokens }), tokens, file
}

// makes has a token made, and returns the header that bears it.
func makes(t *testing.T, tokens *access.Tokens, g access.Grant) string {
	t.Helper()
	made, err := tokens.Add(g)
	must(t, err)
	return bears(made)
}

func bears(token string) string { return "Authorization: Bearer " + token }

func TestWhatIsOpenEndsWhenItsTokenExpiresOrIsRotated(t *testing.T) {
	t.Parallel()
	s, tokens, file := named(t)
	ends := map[string]string{"expired": `the token "expired" expired at 20`, "rotated": `the token "rotated" was rotated`}
	run, bodies, holds := s.begin(), map[string]io.Reader{}, map[string]string{}
	for name := range ends {
		holds[name] = makes(t, tokens, access.Grant{Name: name, Scopes: []access.Scope{access.Read, access.Run}})
		bodies[name] = s.listen("/v1/runs/"+run+"/events", strings.TrimPrefix(holds[name], bears(""))).Body
	}
	next, err := tokens.Rotate("rotated", time.Hour)
	must(t, err)
	for _, holder := range []string{holds["rotated"], bears(next)} {
		if me := decode[api.Whoami](t, s.do("GET", "/v1/whoami", "", holder).wants(t, 200)); me.Identity != "token:rotated" {
			t.Errorf("within the grace it is %+v", me)
		}
	}
	next, err = tokens.Rotate("rotated", 0)
	must(t, err)
	trusted.Expire(t, file, "expired")
	began := time.Now()
	for name, why := range ends {
		body, err := io.ReadAll(bodies[name])
		if err != nil || !strings.Contains(string(body), "\n: "+why) {
			t.Errorf("%s: it ended with %v, and %q", name, err, body)
		}
		a := s.do("GET", "/v1/runs", "", holds[name]).wants(t, 401)
		if p := decode[httpwire.Problem](t, a); !strings.HasPrefix(p.Detail, why) || strings.Contains(p.Detail, "revoked") || !strings.Contains(a.Header.Get("WWW-Authenticate"), "invalid_token") {
			t.Errorf("%s: its next request is refused with %+v", name, p)
		}
	}
	if took := time.Since(began); took > 10*grantLook {
		t.Errorf("they ended after %v", took)
	}
	s.do("GET", "/v1/runs", "", bears(next)).wants(t, 200)
}

func TestWhoami(t *testing.T) {
	t.Parallel()
	s, tokens, _ := named(t)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	ada := makes(t, tokens, access.Grant{
		Name: "ada", Scopes: []access.Scope{access.Upload}, Teams: []string{"a", "b"}, Units: []string{"x"}, Limits: access.Limits{Rate: 600, Runs: 5}, Expires: until,
	})
	who := func(headers ...string) string {
		me := decode[api.Whoami](t, s.do("GET", "/v1/whoami", "", headers...).wants(t, 200))
		at := "never"
		if me.ExpiresAt != nil {
			at = fmt.Sprint(me.ExpiresAt.Equal(until))
		}
		return fmt.Sprint(me.Name, me.Identity, me.Scopes, me.Teams, me.Units, me.Rate, me.Runs, " ", at, " ", me.Version)
	}
	for want, headers := range map[string][]string{
		"adatoken:ada[upload] [a b] [x] 600 5 true 1.2.3": {ada},
		"adatoken:ada[upload] [b] [x] 600 5 true 1.2.3":   {ada, "Aod-Team: b"},
		"[admin] [] [] 0 0 never 1.2.3":                   nil,
		"[admin] [c] [] 0 0 never 1.2.3":                  {"Aod-Team: c"},
	} {
		if got := who(headers...); !strings.Contains(got, want) {
			t.Errorf("%q is %q, want %q", headers, got, want)
		}
	}
	s.do("GET", "/v1/whoami", "", ada, "Aod-Team: c").wants(t, 403)
	s.do("GET", "/v1/whoami", "", "Authorization: -").wants(t, 401)
	open := newServer(t, func(o *Options) { o.Token, o.NoAuth = "", true })
	if me := decode[api.Whoami](t, open.do("GET", "/v1/whoami", "").wants(t, 200)); me.Identity != "" || len(me.Scopes) != 1 {
		t.Errorf("where none is needed: %+v", me)
	}
	open.do("GET", "/v1/tokens", "").wants(t, 404)
}

func TestTokensAreManagedByAPI(t *testing.T) {
	t.Parallel()
	s, tokens, _ := named(t)
	made := func(a answer) string {
		if cache := a.Header.Get("Cache-Control"); cache != "no-store" {
			t.Errorf("Cache-Control %q", cache)
		}
		return bears(decode[struct{ Token string }](t, a).Token)
	}
	list := func(headers ...string) (names []string) {
		for _, token := range decode[struct{ Tokens []api.Token }](t, s.do("GET", "/v1/tokens", "", headers...).wants(t, 200)).Tokens {
			names = append(names, fmt.Sprint(token.Name, token.Teams, token.LastUsedAt != nil, token.GraceUntil != nil))
		}
		return names
	}
	boss := made(s.do("POST", "/v1/tokens", `{"name":"boss","scopes":["admin"],"teams":["a"],"expires":"90d"}`).wants(t, 201))
	makes(t, tokens, access.Grant{Name: "theirs", Scopes: []access.Scope{access.Run}, Teams: []string{"b"}})
	ada := made(s.do("POST", "/v1/tokens", `{"name":"ada","scopes":["run,read"],"rate":60,"runs":2}`, boss).wants(t, 201))
	if me := decode[api.Whoami](t, s.do("GET", "/v1/whoami", "", ada).wants(t, 200)); fmt.Sprint(me.Scopes, me.Teams, me.Rate, me.Runs) != "[run read] [a] 60 2" || me.ExpiresAt == nil {
		t.Errorf("what was made is %+v", me)
	}
	if got := fmt.Sprint(list(boss)); got != "[boss[a] true false ada[a] true false]" {
		t.Errorf("the team's: %s", got)
	}
	for body, status := range map[string]int{
		`{"name":"n","scopes":["run"],"teams":["b"]}`: 403, `{"name":"n","scopes":["metrics"]}`: 403, `{"name":"theirs","scopes":["run"]}`: 409,
		`{"name":"N","scopes":["run"]}`: 422, `{"name":"n"}`: 422, `{"name":"n","scopes":["write"]}`: 422, `{"name":"n","scopes":["run"],"expires":"soon"}`: 422,
		`{"name":"n","scopes":["run"],"more":1}`: 400, `{"name":"n","scopes":["run"],"expires":"91d"}`: 403,
	} {
		s.do("POST", "/v1/tokens", body, boss).wants(t, status)
	}
	for _, asked := range []string{"POST /v1/tokens/NAME/rotate", "DELETE /v1/tokens/NAME"} {
		method, path, _ := strings.Cut(asked, " ")
		hidden := decode[httpwire.Problem](t, s.do(method, strings.Replace(path, "NAME", "theirs", 1), "", boss).wants(t, 404))
		none := decode[httpwire.Problem](t, s.do(method, strings.Replace(path, "NAME", "nobody", 1), "", boss).wants(t, 404))
		if strings.ReplaceAll(hidden.Detail, "theirs", "nobody") != none.Detail || hidden.Hint != none.Hint {
			t.Errorf("%s tells %+v, and of none %+v", asked, hidden, none)
		}
		s.do(method, strings.Replace(path, "NAME", "ada", 1), "", ada).wants(t, 403)
	}
	again := made(s.do("POST", "/v1/tokens/ada/rotate", "", boss).wants(t, 200))
	if got := fmt.Sprint(list(boss)); got != "[boss[a] true false ada[a] true true]" {
		t.Errorf("in the grace: %s", got)
	}
	s.do("POST", "/v1/tokens/ada/rotate", `{"grace":"800h"}`, boss).wants(t, 422)
	s.do("GET", "/v1/whoami", "", ada).wants(t, 200)
	last := made(s.do("POST", "/v1/tokens/ada/rotate", `{"grace":"0"}`, boss).wants(t, 200))
	s.do("GET", "/v1/whoami", "", ada).wants(t, 401)
	s.do("GET", "/v1/whoami", "", again).wants(t, 401)
	s.do("GET", "/v1/whoami", "", last).wants(t, 200)
	s.do("DELETE", "/v1/tokens/ada", "", boss).wants(t, 200)
	s.do("GET", "/v1/whoami", "", last).wants(t, 401)
	if got := list(); len(got) != 2 {
		t.Errorf("all: %q", got)
	}
	if log := s.log.String(); strings.Contains(log, strings.TrimPrefix(last, bears(""))) {
		t.Error("the log has a token")
	}
}

func TestSchedulesAreGivenToAnotherToken(t *testing.T) {
	t.Parallel()
	s, tokens, _ := named(t)
	run := []access.Scope{access.Run, access.Read}
	ada := makes(t, tokens, access.Grant{Name: "ada", Scopes: run})
	bob := makes(t, tokens, access.Grant{Name: "bob", Scopes: run, Teams: []string{"b", "default"}})
	makes(t, tokens, access.Grant{Name: "eve", Scopes: run, Teams: []string{"b"}})
	makes(t, tokens, access.Grant{Name: "narrow", Scopes: run, Units: []string{"other"}})
	makes(t, tokens, access.Grant{Name: "reader", Scopes: []access.Scope{access.Read}})
	for i := range 3 {
		s.do("PUT", fmt.Sprintf("/v1/schedules/n%d", i), `{"unit":"actor","input":{"do":"files"},"every":"1h","note":"keep"}`, ada).wants(t, 201)
	}
	s.do("PUT", "/v1/schedules/bobs", `{"unit":"actor","input":{"do":"files"},"every":"1h"}`, bob, "Aod-Team: default").wants(t, 201)
	for to, status := range map[string]int{"eve": 409, "narrow": 409, "reader": 409, "nobody": 404, "ada": 422} {
		s.do("DELETE", "/v1/tokens/ada?give="+to, "").wants(t, status)
	}
	s.do("GET", "/v1/whoami", "", ada).wants(t, 200) // nothing was done
	removed := decode[api.RemovedToken](t, s.do("DELETE", "/v1/tokens/ada?give=bob", "").wants(t, 200))
	if removed != (api.RemovedToken{Name: "ada", Given: 3}) {
		t.Errorf("removed %+v", removed)
	}
	for _, schedule := range decode[api.SchedulePage](t, s.do("GET", "/v1/schedules", "").wants(t, 200)).Schedules {
		if schedule.By != "bob" || schedule.Next == nil || schedule.Problem != "" {
			t.Errorf("it is %+v", schedule)
		}
	}
	got := decode[api.Schedule](t, s.do("GET", "/v1/schedules/n1", "").wants(t, 200))
	record := decode[api.Record](t, s.do("POST", "/v1/schedules/n1/run?wait=3m", "").wants(t, 200))
	if got.Note != "keep" || string(got.Input) != `{"do":"files"}` || record.By != "bob" || record.Outcome != api.Success {
		t.Errorf("it is %+v, and its run %+v", got, record)
	}
}

func TestATokenIsLimitedToUnits(t *testing.T) {
	t.Parallel()
	s, tokens, _ := named(t)
	s.addSizer()
	s.do("PUT", "/v1/units/uploaded", archive(t, "uploaded"), "Content-Type: application/x-tar").wants(t, 201)
	wide := makes(t, tokens, access.Grant{Name: "wide", Scopes: []access.Scope{access.Run, access.Read}})
	ci := makes(t, tokens, access.Grant{Name: "ci", Scopes: []access.Scope{access.Run, access.Read, access.Upload}, Units: []string{"actor"}})
	foreign := decode[api.Record](t, s.do("POST", "/v1/runs?wait=3m", `{"unit":"uploaded"}`, wide).wants(t, 200))
	s.do("PUT", "/v1/schedules/foreign", `{"unit":"uploaded","every":"1h"}`, wide).wants(t, 201)

	s.run(`{"do":"files"}`, ci)
	s.do("PUT", "/v1/schedules/own", `{"unit":"actor","every":"1h"}`, ci).wants(t, 201)
	units := decode[struct{ Units []api.Unit }](t, s.do("GET", "/v1/units", "", ci).wants(t, 200))
	if len(units.Units) != 1 || units.Units[0].Name != "actor" {
		t.Errorf("it knows %+v", units)
	}
	for _, path := range []string{"/v1/stats", "/v1/pool", "/capsules"} {
		if a := s.do("GET", path, "", ci).wants(t, 200); strings.Contains(a.body, "uploaded") {
			t.Errorf("%s tells it %s", path, a.body)
		}
	}
	none := s.do("POST", "/v1/runs", `{"unit":"nothing"}`, ci).wants(t, 404)
	if hidden := s.do("POST", "/v1/runs", `{"unit":"uploaded"}`, ci).wants(t, 404); strings.ReplaceAll(hidden.body, "uploaded", "nothing") != none.body {
		t.Errorf("it is told %s, and of none %s", hidden.body, none.body)
	}
	for asked, c := range map[string]struct {
		body   string
		status int
	}{
		"POST /v1/runs/" + foreign.ID + "/rerun": {"", 404}, "GET /v1/units/uploaded": {"", 404}, "GET /v1/units/uploaded/versions": {"", 404},
		"GET /capsules/uploaded/schema": {"", 404}, "POST /v1/au/sizer": {"text", 404}, "GET /v1/units/sizer/card": {"", 404},
		"PUT /v1/schedules/other": {`{"unit":"uploaded","every":"1h"}`, 404}, "POST /v1/schedules/foreign/run": {"", 404},
		"POST /v1/sessions": {`{"unit":"uploaded"}`, 404}, "POST /agents/uploaded/run/sync": {asks("uploaded", `{}`), 404},
		"DELETE /v1/units/uploaded": {"", 404}, "POST /v1/units/uploaded/rollback": {`{"version":"x"}`, 404},
	} {
		method, path, _ := strings.Cut(asked, " ")
		if a := s.do(method, path, c.body, ci); a.StatusCode != c.status || !strings.Contains(a.body, "no unit") && !strings.Contains(a.body, "no such") {
			t.Errorf("%s: %d %s", asked, a.StatusCode, a.body)
		}
	}
	s.do("PUT", "/v1/units/mine", archive(t, "mine"), "Content-Type: application/x-tar", ci).wants(t, http.StatusForbidden)
	write(t, filepath.Join(s.sources, "talker", "Dockerfile"), "FROM base:1\n")
	write(t, filepath.Join(s.sources, "talker", "agent.yaml"), "name: talker\nkind: agent\nagent: {command: [talk], mode: interactive, protocol: acp}\nsession: {keep_alive: true}\n")
	session := decode[api.Session](t, s.do("POST", "/v1/sessions", `{"unit":"talker"}`, wide).wants(t, 201))
	s.do("POST", "/v1/sessions/"+session.ID+"/messages", `{"message":"hello"}`, ci).wants(t, http.StatusForbidden)

	// also what another team has, for one that sees all
	_, _, err := scheduleHandlers{svc: s.svc}.feature().Put(access.WithGrant(t.Context(), access.Grant{Name: "a", Scopes: []access.Scope{access.Run}, Teams: []string{"a"}}),
		"of-a", api.ScheduleSpec{Unit: "sizer", Every: "1h"}, nil)
	must(t, err)
	boss := makes(t, tokens, access.Grant{Name: "boss", Scopes: []access.Scope{access.Admin}, Units: []string{"actor"}})
	s.do("POST", "/v1/schedules/a.of-a/run", "", boss).wants(t, 404)
	executed := s.do("POST", "/execute", `{"capsule":"uploaded","input":{}}`, ci)
	if !strings.Contains(executed.body, "there is no unit") {
		t.Errorf("execute: %s", executed.body)
	}
}
