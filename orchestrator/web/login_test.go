package web_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
)

// cookieOf is the only cookie that an answer sets.
func cookieOf(t testing.TB, a answer) *http.Cookie {
	t.Helper()
	if all := a.Cookies(); len(all) == 1 {
		return all[0]
	}
	t.Fatalf("cookies: %q", a.Header["Set-Cookie"])
	return nil
}

func TestATokenSignsIn(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.get("/ui/runs?state=failed").leads(t, "./login?next=runs%3Fstate%3Dfailed")
	p.get("/ui/runs/x/events").leads(t, "../../login?next=runs%2Fx%2Fevents")
	p.post("/ui/runs", "act", "cancel").wants(t, 401, "Nobody is signed in")
	if a := p.get("/ui/nothing").wants(t, 404); strings.Contains(a.body, "Signed in") {
		t.Error("nobody is taken for the server")
	}
	p.get("/ui/login?next=runs/x").wants(t, 200, `name="next" value="runs/x"`)
	if a := p.post("/ui/login", "token", "wrong").wants(t, 401, "not this server"); a.Header["Set-Cookie"] != nil {
		t.Errorf("a wrong token gives a cookie: %q", a.Header["Set-Cookie"])
	}
	p.get("/ui/runs").wants(t, 303)
	p.post("/ui/login", "token", " "+token+"\n", "next", "runs?state=failed").leads(t, "./runs?state=failed")
	p.get("/ui/runs").wants(t, 200, "<h1>Runs</h1>")
}

func TestTheCookieOfASignIn(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	began := time.Now()
	plain := cookieOf(t, p.post("/ui/login", "token", token))
	if !plain.HttpOnly || plain.SameSite != http.SameSiteLaxMode || plain.Path != "" || plain.Domain != "" || plain.Secure ||
		!strings.HasPrefix(plain.Name, "aod_") {
		t.Errorf("cookie: %v", plain)
	}
	if lasts := plain.Expires.Sub(began); lasts < 12*time.Hour-time.Second || lasts > 12*time.Hour+testkit.Patience {
		t.Errorf("it lasts %v", lasts)
	}
	for _, header := range []string{"Origin: " + strings.Replace(p.url, "http:", "https:", 1), "X-Forwarded-Proto: https"} {
		sure := cookieOf(t, p.do(p.request("POST", "/ui/login", fields("token", token), header)))
		if !sure.Secure || sure.Name != "__Secure-"+plain.Name || !sure.HttpOnly || sure.Path != "" {
			t.Errorf("cookie for a browser that came by TLS, as %s says: %v", header, sure)
		}
	}
}

func TestACodeSignsInOnce(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	path := regexpIn(t, p.do(p.request("POST", "/v1/signin", nil, "Authorization: Bearer "+token)).wants(t, 201).body, `"path":"([^"]*)"`)
	p.get(path+"&next=//evil.example").leads(t, "./runs")
	p.get("/ui/runs").wants(t, 200)
	p.client = p.newBrowser()
	p.get(path).wants(t, 401, "used already", "aod ui")
	p.get("/ui/runs").wants(t, 303)
	p.get("/ui/login?code=wrong").wants(t, 401)
}

// What follows on a sign-in is an address of the page itself, whatever a link says.
func TestASignInLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	base, err := url.Parse(p.url + "/ui/login")
	must(t, err)
	for _, next := range []string{
		"//evil.example", "///evil.example", "/v1/runs", "https://evil.example", "https:evil.example", "javascript:alert(1)",
		`\\evil.example`, `/\evil.example`, `\evil.example`, "..", "../v1/runs", "runs/../../v1", "%2e%2e/v1", ".%2e/v1", "runs/%2E./../v1",
		"%2f%2fevil.example", "%5c%5cevil.example", "//u:p@evil.example", "\t//evil.example", " //evil.example", "runs\r\nX: y",
		"runs%0d%0aX: y", "%", "?x=//evil.example", "#//evil.example", ":80", "runs:80", "./https://evil.example",
	} {
		a := p.post("/ui/login", "token", token, "next", next).wants(t, 303)
		to, err := base.Parse(a.Header.Get("Location"))
		if err != nil || to.Host != base.Host || to.Scheme != "http" || !strings.HasPrefix(to.EscapedPath(), "/ui/") ||
			strings.Contains(to.Path, "..") || a.Header.Get("X") != "" {
			t.Errorf("%q leads to %q, %v", next, a.Header.Get("Location"), err)
		}
	}
}

func TestASignInEndsWithItsToken(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn(access.Read)
	p.begun()
	live, err := p.client.Do(p.request("GET", "/ui/live?page=runs", nil))
	must(t, err)
	defer live.Body.Close()
	if live.StatusCode != 200 {
		t.Fatal(live.Status)
	}
	must(t, p.tokens.Remove(string(access.Read)))
	began := time.Now()
	p.get("/ui/runs").leads(t, "./login?next=runs")
	p.get("/ui/live?page=runs").wants(t, 303)
	last, err := io.ReadAll(live.Body)
	if took := time.Since(began); err != nil || took > 10*time.Second || !strings.Contains(string(last), "revoked") {
		t.Errorf("the stream ended after %v: %v, %s", took, err, last)
	}
}

func TestASignInEndsWhenItsTokenExpires(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn(access.Read)
	p.get("/ui/runs").wants(t, 200)
	trusted.Expire(t, p.file, string(access.Read))
	p.get("/ui/runs").leads(t, "./login?next=runs")
}

func TestSigningOut(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	had := cookieOf(t, p.post("/ui/login", "token", token))
	p.get("/ui/runs").wants(t, 200, "Signed in", "Sign out")
	gone := cookieOf(t, p.post("/ui/logout").leads(t, "login"))
	if gone.Name != had.Name || gone.MaxAge >= 0 || gone.Value != "" {
		t.Errorf("cookie: %v", gone)
	}
	p.get("/ui/runs").wants(t, 303)
	p.get("/ui/runs", "Cookie: "+had.Name+"="+had.Value).wants(t, 303)
}

func TestOtherPagesChangeNothing(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	id := p.begun()
	for _, header := range []string{
		"Origin: https://evil.example", "Origin: null", "Origin: http://127.0.0.1:1", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site",
	} {
		for _, path := range []string{"/ui/runs/" + id + "/cancel", "/ui/login", "/ui/logout", "/ui/view", "/ui/runs"} {
			p.do(p.request("POST", path, fields("token", token), header)).wants(t, 403, "own page")
		}
	}
	p.get("/ui/runs", "Sec-Fetch-Site: cross-site").wants(t, 200) // a link of another page leads here
	for _, header := range []string{"Origin: " + p.url, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none"} {
		p.do(p.request("POST", "/ui/runs/"+id+"/cancel", fields(), header)).leads(t, "../"+id)
	}
}

func TestWhoMayOnlyReadCancelsNothing(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn(access.Read)
	id := p.begun()
	list, run := p.get("/ui/runs").wants(t, 200, id), p.get("/ui/runs/"+id).wants(t, 200, "is running")
	for _, text := range []string{">Cancel<", ">Run again<", "checkbox"} {
		if strings.Contains(list.body+run.body, text) {
			t.Errorf("%q is offered", text)
		}
	}
	p.post("/ui/runs/"+id+"/cancel").wants(t, 403, "You may not see or do this", "<h1>")
	p.post("/ui/runs/"+id+"/again").wants(t, 403)
	p.post("/ui/runs", "run", id, "act", "cancel").wants(t, 403)
	p.get("/ui/runs/"+id).wants(t, 200, "is running")
}

// A form that is sent twice does its work once.
func TestSendingAFormTwice(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	id := p.ran("", "")
	key := regexpIn(t, p.get("/ui/runs").body, `name="key" value="([^"]+)"`)
	for range 2 {
		p.post("/ui/runs", "run", id, "act", "again", "key", key, "next", "runs").leads(t, "./runs")
	}
	if n := strings.Count(p.get("/ui/runs").body, `<tr id="r-`); n != 2 {
		t.Errorf("%d runs", n)
	}
}

// A cookie is for the page alone, and a token for the API: a browser that has the one can't be made to send the other.
func TestACookieIsNoToken(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	had := cookieOf(t, p.post("/ui/login", "token", token))
	for _, path := range []string{"/v1/runs", "/v1/units", "/metrics", "/v1/events"} {
		p.get(path, "Cookie: "+had.Name+"="+had.Value).wants(t, 401)
	}
	p.do(p.request("POST", "/v1/signin", nil, "Cookie: "+had.Name+"="+had.Value)).wants(t, 401)
	p.client = p.newBrowser()
	p.get("/ui/runs", "Authorization: Bearer "+token).leads(t, "./login?next=runs")
	p.do(p.request("POST", "/ui/runs", fields("act", "cancel"), "Authorization: Bearer "+token)).wants(t, 401)
}
