package httpapi

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/internal/testing/issuertest"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// claims are those of a token of an issuer.
type claims = issuertest.Claims

// peopled is a server with an issuer, and the teams a and b.
func peopled(t *testing.T) (*server, *issuertest.Issuer) {
	t.Helper()
	at := issuertest.New(t)
	people := issuer.New(issuer.Options{
		URL: at.URL, Audience: "aod", ClientID: "aod", Scopes: []string{"openid"},
		Claims: issuer.Claims{Team: "groups", Scope: "roles", Group: "groups"},
		Rules: issuer.Rules{
			Known: func() []string { return []string{"a", "b"} }, Default: []access.Scope{access.Read, access.Run}, Limits: access.Limits{Rate: 100},
			Scopes: map[string][]access.Scope{"admins": {access.Admin}},
		},
	})
	tokens := access.NewTokens(filepath.Join(t.TempDir(), "tokens.json"))
	return newServer(t, func(o *Options) { o.People, o.Tokens = people, tokens }), at
}

// of bears a token of a person of teams.
func of(at *issuertest.Issuer, subject string, teams ...string) string {
	return bears(at.Token(claims{"sub": subject, "groups": teams}))
}

func TestWhoBearsATokenOfTheIssuerIsAPerson(t *testing.T) {
	t.Parallel()
	s, at := peopled(t)
	ada, bob := of(at, "ada", "a", "leads"), of(at, "bob", "b")
	me := decode[api.Whoami](t, s.do("GET", "/v1/whoami", "", ada).wants(t, 200))
	if me.Identity != "user:ada" || strings.Join(me.Teams, ",") != "a" || strings.Join(me.Groups, ",") != "a,leads" || strings.Join(me.Scopes, ",") != "read,run" {
		t.Errorf("ada is %+v", me)
	}
	run := s.run(`{}`, ada)
	if run.By != "user:ada" || *run.Owner != (api.Owner{Team: "a", Identity: "user:ada"}) {
		t.Errorf("her run is of %q, %+v", run.By, run.Owner)
	}
	s.do("GET", "/v1/runs/"+run.ID, "", ada).wants(t, 200)
	s.do("GET", "/v1/runs/"+run.ID, "", of(at, "eve", "a")).wants(t, 200)
	s.do("GET", "/v1/runs/"+run.ID, "", bob).wants(t, 404)
	if page := decode[api.Page](t, s.do("GET", "/v1/runs", "", bob).wants(t, 200)); len(page.Runs) != 0 {
		t.Errorf("bob sees %+v", page.Runs)
	}
	both := of(at, "eve", "b", "a")
	if other := s.run(`{}`, both, "Aod-Team: b"); other.Owner.Team != "b" {
		t.Errorf("it is of %+v", other.Owner)
	}
	s.do("GET", "/v1/runs", "", both, "Aod-Team: c").wants(t, 403)
	s.do("GET", "/v1/audit", "", ada).wants(t, 403)
	boss := bears(at.Token(claims{"sub": "boss", "groups": "a", "roles": "admins"}))
	if a := s.do("GET", "/v1/audit?by=user:ada", "", boss).wants(t, 200); !strings.Contains(a.body, `"object":"`+run.ID) {
		t.Errorf("the audit: %s", a.body)
	}
	s.do("DELETE", "/v1/tokens/x", "", boss).wants(t, 404)
	made := decode[struct{ Token string }](t, s.do("POST", "/v1/tokens", `{"name":"ci","scopes":["run"]}`, boss).wants(t, 201))
	if ci := decode[api.Whoami](t, s.do("GET", "/v1/whoami", "", bears(made.Token)).wants(t, 200)); ci.ExpiresAt != nil || ci.Rate != 100 || ci.Teams[0] != "a" {
		t.Errorf("the token of a person's: %+v", ci)
	}
	s.do("POST", "/v1/tokens", `{"name":"x","scopes":["run"],"teams":["b"]}`, boss).wants(t, 403)
}

func TestWhoIsNoPersonOfTheServerIsRefused(t *testing.T) {
	t.Parallel()
	s, at := peopled(t)
	for name, c := range map[string]struct {
		claims claims
		status int
		says   string
	}{
		"no team":        {claims{"sub": "ada"}, 403, "no team"},
		"no team's name": {claims{"sub": "ada", "groups": "default"}, 403, "no team"},
		"expired":        {claims{"sub": "ada", "groups": "a", "exp": time.Now().Unix() - 1}, 401, "expired"},
		"another server": {claims{"sub": "ada", "groups": "a", "aud": "x"}, 401, "somebody else"},
		"a bad name":     {claims{"sub": "a\r\nb", "groups": "a"}, 401, "subject"},
	} {
		a := s.do("GET", "/v1/runs", "", bears(at.Token(c.claims))).wants(t, c.status)
		p := decode[httpwire.Problem](t, a)
		if !strings.Contains(p.Detail, c.says) || p.Hint == "" || (c.status == 401) != strings.Contains(a.Header.Get("WWW-Authenticate"), "invalid_token") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	s.do("GET", "/healthz", "", bears("x.y.z")).wants(t, 200)
	if strings.Contains(s.log.String(), "eyJ") {
		t.Error("a token is in the log")
	}
}

func TestAServerWhoseIssuerIsAwayGoesOn(t *testing.T) {
	t.Parallel()
	s, at := peopled(t)
	at.Lock()
	at.Down = true
	at.Unlock()
	ada := of(at, "ada", "a")
	s.do("GET", "/v1/runs", "", ada).wants(t, 503)
	s.do("GET", "/v1/runs", "").wants(t, 200)
	if a := s.do("GET", "/v1/login", "", "Authorization: -").wants(t, 200); !strings.Contains(a.body, `"client_id":"aod"`) || !strings.Contains(a.body, at.URL) {
		t.Error(a.body)
	}
	newServer(t, nil).do("GET", "/v1/login", "", "Authorization: -").wants(t, 404)
}

func TestWhatIsOpenEndsWhenThePersonsTokenExpires(t *testing.T) {
	t.Parallel()
	s, at := peopled(t)
	run := decode[api.Record](t, s.do("POST", "/v1/runs", `{"unit":"actor","input":{"do":"wait"}}`, of(at, "ada", "a")).wants(t, 202)).ID
	short := at.Token(claims{"sub": "ada", "groups": "a", "exp": time.Now().Add(3 * time.Second).Unix()})
	body := s.listen("/v1/runs/"+run+"/events", short).Body
	began := time.Now()
	raw, err := io.ReadAll(body)
	if took := time.Since(began); err != nil || !strings.Contains(string(raw), "it expired at") || took > 3*time.Second+5*grantLook {
		t.Errorf("it ended after %v with %v, and %q", took, err, raw)
	}
	ctx, err := s.api.Authorize(t.Context(), at.Token(claims{"sub": "ada", "groups": "a", "exp": time.Now().Add(2 * time.Second).Unix()}), "a")
	must(t, err)
	<-ctx.Done()
	if _, err := s.api.Authorize(t.Context(), short, ""); !fault.Is(err, fault.Unauthorized) {
		t.Error("an expired token may call")
	}
}

// A person asks no oftener than they may, with however many tokens.
func TestTheRateIsThePersons(t *testing.T) {
	t.Parallel()
	s, at := peopled(t)
	status := 200
	for asked := 0; status != 429 && asked < 2000; asked++ { // a part of what may be asked is back meanwhile
		status = s.do("GET", "/v1/whoami", "", bears(at.Token(claims{"sub": "ada", "groups": "a", "jti": time.Now().UnixNano()}))).StatusCode
	}
	if status != 429 {
		t.Error("no request was refused")
	}
	s.do("GET", "/v1/whoami", "", of(at, "bob", "b")).wants(t, 200)
}
