package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/testing/issuertest"
	"github.com/agent-on-demand/aod/orchestrator/web"
)

// peopled are a page and the issuer at which people sign in.
func peopled(t *testing.T, redirect string) (*page, *issuertest.Issuer) {
	t.Helper()
	at := issuertest.New(t)
	at.Secret, at.Person = "s3cret-of-the-client", issuertest.Claims{"sub": "ada", "groups": []string{"a"}}
	people := issuer.New(issuer.Options{
		URL: at.URL, Audience: "api", ClientID: "cli", PageClient: "aod", Scopes: []string{"openid", "offline_access"},
		Secret: func() (secrets.Secret, error) { return secrets.Secret(at.Secret), nil },
		Claims: issuer.Claims{Team: "groups"}, Rules: issuer.Rules{Known: func() []string { return []string{"a", "b"} }, Default: []access.Scope{access.Read, access.Run}},
	})
	return newPageFor(t, web.Options{People: people, Redirect: redirect}), at
}

// back is the address by which the issuer sends a browser back that was sent there.
func (p *page) back(to string) string {
	p.t.Helper()
	answer, err := p.client.Get(to)
	must(p.t, err)
	answer.Body.Close()
	back, err := url.Parse(answer.Header.Get("Location"))
	must(p.t, err)
	if answer.StatusCode != http.StatusFound || back.Host != strings.TrimPrefix(p.url, "http://") {
		p.t.Fatalf("the issuer answers %s, and sends the browser to %q", answer.Status, back)
	}
	return back.RequestURI()
}

func TestPeopleSignInAtTheirIssuer(t *testing.T) {
	t.Parallel()
	p, at := peopled(t, "")
	p.get("/ui/login?next=runs%3Fstate%3Dfailed").wants(t, 200, "Sign in at "+strings.TrimPrefix(at.URL, "http://"), `href="./sso?next=runs%3fstate%3dfailed"`, `name="token"`)
	began := p.get("/ui/sso?next=runs%3Fstate%3Dfailed").wants(t, 303)
	kept, to := cookieOf(t, began), began.Header.Get("Location")
	if !kept.HttpOnly || kept.SameSite != http.SameSiteLaxMode || kept.Path != "" || time.Until(kept.Expires) > 11*time.Minute {
		t.Errorf("cookie: %v", kept)
	}
	if !strings.HasPrefix(to, at.URL+"/auth?") || strings.Contains(to, "offline") || strings.Contains(to, "s3cret") {
		t.Errorf("it leads to %s", to)
	}
	back := p.back(to)
	entered := p.get(back).leads(t, "./runs?state=failed")
	if names := len(entered.Cookies()); names != 2 || entered.Cookies()[0].MaxAge >= 0 {
		t.Errorf("cookies: %v", entered.Cookies())
	}
	p.get("/ui/runs").wants(t, 200, "user:ada")
	p.get("/ui/schedules").wants(t, 200)
	p.get(back).wants(t, 401, "didn&#39;t begin to sign in")
	p.end()
	p.start(strings.TrimPrefix(p.url, "http://")) // the session outlives the server
	p.get("/ui/runs").wants(t, 200, "user:ada")
	p.post("/ui/logout").leads(t, "login")
	p.get("/ui/runs").wants(t, 303)
}

// A sign-in is one browser's: what another one began, or nobody, lets nobody in.
func TestASignInElsewhereIsOfItsBrowser(t *testing.T) {
	t.Parallel()
	p, at := peopled(t, "")
	victim := p.client
	p.client = p.newBrowser()
	back := p.back(p.get("/ui/sso").wants(t, 303).Header.Get("Location"))
	p.client = victim
	p.get(back).wants(t, 401, "didn&#39;t begin")
	p.get("/ui/sso").wants(t, 303)
	p.get(back).wants(t, 401, "didn&#39;t begin") // it began one, which isn't this
	for _, query := range []string{"", "?state=&code=x", "?code=x", "?error=x"} {
		p.get("/ui/callback"+query).wants(t, 401)
	}
	own := p.get("/ui/sso").wants(t, 303).Header.Get("Location")
	state := regexpIn(t, own, `state=([^&]*)`)
	p.get("/ui/callback?state="+state+"&error=%3Cscript%3E").wants(t, 401, `has let nobody in: &#34;&lt;script&gt;&#34;`)
	own = p.get("/ui/sso").wants(t, 303).Header.Get("Location")
	p.get("/ui/callback?state="+regexpIn(t, own, `state=([^&]*)`)+"&code=made-up").wants(t, 401, "invalid_grant")
	if asked := at.Count("/token"); asked > 2 {
		t.Errorf("the issuer is asked %d times for what nobody began", asked)
	}
	p.get("/ui/runs").wants(t, 303)
}

// An ID token that isn't of this visit, or isn't good, signs nobody in, nor does one of somebody who is of no team.
func TestWhatTheIssuerGivesIsChecked(t *testing.T) {
	t.Parallel()
	p, at := peopled(t, "")
	for name, c := range map[string]struct {
		person issuertest.Claims
		status int
		says   string
	}{
		"another nonce":   {issuertest.Claims{"sub": "ada", "groups": "a"}, 401, "another sign-in"},
		"another client":  {issuertest.Claims{"sub": "ada", "groups": "a", "aud": "api"}, 401, "somebody else"},
		"expired":         {issuertest.Claims{"sub": "ada", "groups": "a", "exp": 1}, 401, "expired"},
		"of no team":      {issuertest.Claims{"sub": "ada", "groups": "vpn"}, 403, "no team"},
		"a name of bytes": {issuertest.Claims{"sub": "<b>\x00", "groups": "a"}, 401, "subject"},
	} {
		at.Lock()
		at.Person, at.Nonce = c.person, ""
		if name == "another nonce" {
			at.Nonce = "another"
		}
		at.Unlock()
		back := p.back(p.get("/ui/sso").wants(t, 303).Header.Get("Location"))
		if a := p.get(back).wants(t, c.status, c.says); len(a.Cookies()) != 1 {
			t.Errorf("%s: cookies %v", name, a.Cookies())
		}
	}
	at.Lock()
	at.Person, at.Nonce, at.Secret = issuertest.Claims{"sub": "ada", "groups": "a"}, "", "changed"
	at.Unlock()
	if p.opts.People == nil {
		t.Fatal("no issuer")
	}
	newPage(t).get("/ui/sso").wants(t, 404)
	newPage(t).get("/ui/callback").wants(t, 404)
}

// Where the issuer sends browsers back is what the operator says, or the address by which one came; no link changes it.
func TestTheIssuerSendsBrowsersBackHere(t *testing.T) {
	t.Parallel()
	to := func(p *page, headers ...string) string {
		at, err := url.Parse(p.get("/ui/sso?next=//evil.example&redirect_uri=https://evil.example", headers...).wants(t, 303).Header.Get("Location"))
		must(t, err)
		return at.Query().Get("redirect_uri")
	}
	p, _ := peopled(t, "")
	if got := to(p); got != p.url+"/ui/callback" {
		t.Error(got)
	}
	if got := to(p, "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example"); got != strings.Replace(p.url, "http:", "https:", 1)+"/ui/callback" {
		t.Error(got)
	}
	r := p.request("GET", "/ui/sso", nil)
	r.Host = "evil.example"
	p.do(r).wants(t, 403)
	said, _ := peopled(t, "https://aod.example.com/x/ui/callback")
	if got := to(said); got != "https://aod.example.com/x/ui/callback" {
		t.Error(got)
	}
	if c := cookieOf(t, said.get("/ui/sso")); !c.Secure || !strings.HasPrefix(c.Name, "__Secure-") {
		t.Errorf("cookie: %v", c)
	}
}

// A JWT is a token at the page, too; its session ends when it does.
func TestATokenOfTheIssuerSignsIn(t *testing.T) {
	t.Parallel()
	p, at := peopled(t, "")
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	token := at.Token(issuertest.Claims{"aud": "api", "exp": end.Unix()})
	c := cookieOf(t, p.post("/ui/login", "token", token).leads(t, "./runs"))
	if !c.Expires.Equal(end) {
		t.Errorf("it lasts until %v, want %v", c.Expires, end)
	}
	p.get("/ui/runs").wants(t, 200, "user:ada")
	p.client = p.newBrowser()
	path := regexpIn(t, p.do(p.request("POST", "/v1/signin", nil, "Authorization: Bearer "+token)).wants(t, 201).body, `"path":"([^"]*)"`)
	p.get(path).leads(t, "./runs")
	p.get("/ui/runs").wants(t, 200, "user:ada")
	p.client = p.newBrowser()
	p.post("/ui/login", "token", at.Token(issuertest.Claims{"aud": "api", "groups": "vpn"})).wants(t, 403, "no team")
	p.post("/ui/login", "token", at.Token(nil)).wants(t, 401, "somebody else") // it is for the page's client
}

func TestThePageWhoseIssuerIsAway(t *testing.T) {
	t.Parallel()
	p, at := peopled(t, "")
	at.Lock()
	at.Down = true
	at.Unlock()
	p.get("/ui/sso?next=units").wants(t, 503, "doesn&#39;t answer", `name="next" value="units"`)
	p.post("/ui/login", "token", token, "next", "units").leads(t, "./units")
}
