package issuer

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/testing/issuertest"
)

type claims = issuertest.Claims

// over is an Issuer that takes a test's at its word.
func over(url string) *Issuer {
	return New(Options{
		URL: url, Audience: "aod", ClientID: "aod", Scopes: []string{"openid"},
		Claims: Claims{Team: "groups", Scope: "realm_access.roles", Group: "groups"},
		Rules:  Rules{Known: func() []string { return []string{"a", "b"} }, Scopes: map[string][]access.Scope{"runner": {access.Run, access.Read}}},
	})
}

func TestATokenOfTheIssuerSaysWhoBearsIt(t *testing.T) {
	t.Parallel()
	at := issuertest.New(t)
	i := over(at.URL)
	for range 2 {
		p, err := i.Bearer(t.Context(), at.Token(claims{"sub": "auth0|ada", "aud": []string{"other", "aod"}, "groups": []any{"b", "a", "b", 1, "\x00"}}))
		want := Person{Issuer: at.URL, Subject: "auth0|ada", Teams: []string{"a", "b"}, Groups: []string{"a", "b"}}
		p.Until = time.Time{}
		if diff := cmp.Diff(want, p, cmp.AllowUnexported(Person{})); diff != "" || err != nil {
			t.Error(diff, err)
		}
		at.Add("two") // an issuer begins to sign with another key that it has shown for a while
		i.last.Store(nil)
		i.next = time.Time{}
	}
}

// hostile are tokens that aren't good, by what is wrong with them.
func hostile(t *testing.T, at *issuertest.Issuer) map[string]string {
	t.Helper()
	good := at.Token(nil)
	part := strings.Split(good, ".")
	b64 := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	at.AddKey("rsa", key)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	must(t, err)
	asSecret := func(secret []byte) string {
		return issuertest.Sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: secret, KeyID: "rsa"}}, at.Claims(nil))
	}
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	now := time.Now()
	return map[string]string{
		"alg none":            b64(`{"alg":"none"}`) + "." + part[1] + ".",
		"alg None":            b64(`{"alg":"None","kid":"one"}`) + "." + part[1] + "." + part[2],
		"HS256 of the PEM":    asSecret(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		"HS256 of the DER":    asSecret(public),
		"another key":         issuertest.Sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: stranger, KeyID: "rsa"}}, at.Claims(nil)),
		"its own key":         issuertest.Sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: stranger}, at.Claims(nil)),
		"an unknown key":      issuertest.Sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: stranger, KeyID: "x"}}, at.Claims(nil)),
		"other claims":        part[0] + "." + b64(`{"sub":"eve"}`) + "." + part[2],
		"no signature":        part[0] + "." + part[1] + ".",
		"wrong audience":      at.Token(claims{"aud": "other"}),
		"no audience":         at.Token(claims{"aud": nil}),
		"other issuer":        at.Token(claims{"iss": "https://evil.example"}),
		"no issuer":           at.Token(claims{"iss": nil}),
		"expired":             at.Token(claims{"exp": now.Unix()}),
		"no end":              at.Token(claims{"exp": nil}),
		"an end that is none": at.Token(claims{"exp": "soon"}),
		"not before":          at.Token(claims{"nbf": now.Add(2 * time.Minute).Unix()}),
		"of the future":       at.Token(claims{"iat": now.Add(2 * time.Minute).Unix()}),
		"no subject":          at.Token(claims{"sub": nil}),
		"an empty subject":    at.Token(claims{"sub": ""}),
		"a subject's newline": at.Token(claims{"sub": "ada\nx"}),
		"a subject's blank":   at.Token(claims{"sub": "ada run"}),
		"a subject's umlaut":  at.Token(claims{"sub": "ädä"}),
		"a long subject":      at.Token(claims{"sub": strings.Repeat("a", 256)}),
		"a subject that is 1": at.Token(claims{"sub": 1}),
		"oversized":           at.Token(claims{"x": strings.Repeat("a", maxToken)}),
		"no JSON":             part[0] + "." + b64("{") + "." + part[2],
		"dots":                "..",
	}
}

func TestATokenThatIsNotGoodIsRefused(t *testing.T) {
	t.Parallel()
	at := issuertest.New(t)
	i := over(at.URL)
	for name, token := range hostile(t, at) {
		p, err := i.Bearer(t.Context(), token)
		if !fault.Is(err, fault.Unauthorized) || p.Subject != "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for name, with := range map[string]claims{
		"a little ahead": {"nbf": time.Now().Add(30 * time.Second).Unix(), "iat": time.Now().Add(30 * time.Second).Unix()},
		"by RS256":       {},
	} {
		if _, err := i.Bearer(t.Context(), at.Token(with)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// However many tokens have keys that nobody knows, the issuer is asked now and then; one that rotates its keys is followed.
func TestTheIssuerIsAskedNowAndThen(t *testing.T) {
	t.Parallel()
	at := issuertest.New(t)
	i := over(at.URL)
	old := at.Token(nil)
	bears := func(token string) error {
		t.Helper()
		_, err := i.Bearer(t.Context(), token)
		return err
	}
	must(t, bears(old))
	stranger := issuertest.New(t)
	stranger.Rotate("unknown")
	for range 50 {
		if err := bears(stranger.Token(nil)); !fault.Is(err, fault.Unauthorized) {
			t.Fatal(err)
		}
	}
	if asked := at.Count("/keys"); asked != 1 {
		t.Errorf("it was asked %d times", asked)
	}
	i.next = time.Time{} // as after ten seconds
	at.Rotate("two")
	must(t, bears(at.Token(nil)))
	if err := bears(old); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a token of a key that is shown no more: %v", err)
	}
	if asked := at.Count("/keys"); asked != 2 {
		t.Errorf("after the rotation it was asked %d times", asked)
	}
	at.Lock()
	at.Down, i.next = true, time.Time{}
	at.Unlock()
	k := *i.last.Load()
	k.at = time.Now().Add(-keysLast)
	i.last.Store(&k)
	must(t, bears(at.Token(nil))) // it doesn't answer now, and its keys stand
	k.at = time.Now().Add(-keysStand)
	i.last.Store(&k)
	if err := bears(at.Token(nil)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a day after its last answer: %v", err)
	}
	if asked := at.Count("/.well-known/openid-configuration"); asked != 3 {
		t.Errorf("it is asked %d times while it is down", asked)
	}
}

func TestAnIssuerThatIsIll(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	ill := map[string]http.HandlerFunc{
		"endless": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxAnswer+1)) },
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"hangs": func(_ http.ResponseWriter, r *http.Request) { <-hangs },
	}
	for name, handler := range ill {
		server := httptest.NewServer(handler)
		i := over(server.URL)
		i.client.Timeout = 50 * time.Millisecond
		if _, err := i.Bearer(t.Context(), issuertest.New(t).Token(nil)); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "hangs" {
			close(hangs)
		}
		server.Close()
	}
	says := map[string]map[string]any{
		"another issuer": {"issuer": "https://evil.example"}, "keys elsewhere": {"jwks_uri": "http://192.0.2.1/keys"},
		"keys of a file": {"jwks_uri": "file:///etc/passwd"},
	}
	for name, say := range says {
		at := issuertest.New(t)
		at.Says = say
		if _, err := over(at.URL).Bearer(t.Context(), at.Token(nil)); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := over("http://192.0.2.1").Bearer(t.Context(), issuertest.New(t).Token(nil)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an issuer elsewhere without TLS: %v", err)
	}
}

// While an issuer doesn't answer, the pauses between two questions grow.
func TestThePausesGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := over("http://192.0.2.1") // it is refused before it is asked
		asked := 0
		for range 3600 {
			before := i.next
			_, _ = i.now(t.Context(), "")
			if i.next != before {
				asked++
			}
			time.Sleep(time.Second)
		}
		if asked < 25 || asked > 40 {
			t.Errorf("it was asked %d times in an hour", asked)
		}
	})
}

func TestWhatAPersonMayDo(t *testing.T) {
	t.Parallel()
	run := []access.Scope{access.Run}
	rules := Rules{Known: func() []string { return []string{"a", "b", "c"} }, Scopes: map[string][]access.Scope{"runner": run, "boss": {access.Admin, access.Run}}, Limits: access.Limits{Rate: 7}}
	mapped, open := rules, rules
	mapped.Teams, open.Default = map[string]string{"4711": "c", "4712": "gone"}, run
	for name, c := range map[string]struct {
		rules Rules
		p     Person
		want  Grant
		kind  fault.Kind
	}{
		"two teams": {rules, Person{Subject: "u", Teams: []string{"b", "a", "vpn"}, Scopes: []string{"runner"}, Groups: []string{"g"}}, Grant{Name: "user:u", Scopes: run, Teams: []string{"a", "b"}, Groups: []string{"g"}, Limits: rules.Limits}, 0},
		"boss":      {rules, Person{Subject: "u", Teams: []string{"a"}, Scopes: []string{"boss", "runner"}}, Grant{Name: "user:u", Scopes: []access.Scope{access.Admin, access.Run}, Teams: []string{"a"}, Limits: rules.Limits}, 0},
		"mapped":    {mapped, Person{Subject: "u", Teams: []string{"4711", "a", "4712"}, Scopes: []string{"runner"}}, Grant{Name: "user:u", Scopes: run, Teams: []string{"c"}, Limits: rules.Limits}, 0},
		"default":   {open, Person{Subject: "u", Teams: []string{"a"}}, Grant{Name: "user:u", Scopes: run, Teams: []string{"a"}, Limits: rules.Limits}, 0},
		"no team":   {open, Person{Subject: "u"}, Grant{}, fault.Forbidden},
		"unknown":   {open, Person{Subject: "u", Teams: []string{"default", "A", "x"}}, Grant{}, fault.Forbidden},
		"no scope":  {rules, Person{Subject: "u", Teams: []string{"a"}, Scopes: []string{"admin"}}, Grant{}, fault.Forbidden},
		"no name":   {open, Person{Subject: "a b", Teams: []string{"a"}}, Grant{}, fault.Unauthorized},
	} {
		got, err := c.rules.Grant(c.p)
		if diff := cmp.Diff(c.want, got); diff != "" || c.kind == 0 && err != nil || c.kind != 0 && !fault.Is(err, c.kind) {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestAClaimIsFound(t *testing.T) {
	t.Parallel()
	all := map[string]any{
		"team": "a", "groups": []any{"x", "/y z", " ", 3.0, "\u202e"}, "realm_access": map[string]any{"roles": []any{"r"}},
		"https://acme.example/teams": []any{"url"}, "resource.x": map[string]any{"roles": "deep"}, "n": 3.0,
	}
	for name, want := range map[string]string{
		"team": "a", "claims.team": "a", "groups": "/y z|x", "realm_access.roles": "r", "https://acme.example/teams": "url",
		"resource.x.roles": "deep", "n": "", "": "", "none": "", "team.x": "", "...": "", "realm_access": "",
	} {
		if got := strings.Join(valuesOf(all, name), "|"); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func FuzzBearer(f *testing.F) {
	at := issuertest.New(f)
	i := over(at.URL)
	f.Add(at.Token(nil))
	f.Add("e30.e30.e30")
	fuzzbound.Run(f, func(t *testing.T, text string) {
		if p, err := i.Bearer(t.Context(), text); err == nil && p.Subject != "ada" || err != nil && !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

func FuzzClaims(f *testing.F) {
	f.Add(`{"a":{"b":["x"]},"a.b":"y"}`, "a.b")
	fuzzbound.Run(f, func(t *testing.T, text, name string) {
		var all map[string]any
		if len(text) > maxToken || json.Unmarshal([]byte(text), &all) != nil {
			return
		}
		for _, value := range valuesOf(all, name) {
			if !api.IsGroup(value) {
				t.Errorf("%q", value)
			}
		}
	})
}

// While the issuer hangs, one asks it, and those who know enough go on.
func TestNobodyWaitsForAnIssuerThatHangs(t *testing.T) {
	t.Parallel()
	at := issuertest.New(t)
	i := over(at.URL)
	token := at.Token(nil)
	_, err := i.Bearer(t.Context(), token)
	must(t, err)
	k := *i.last.Load()
	k.at = time.Now().Add(-keysLast)
	i.last.Store(&k)
	i.turn <- struct{}{} // somebody asks
	_, err = i.Bearer(t.Context(), token)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	stranger := issuertest.New(t)
	stranger.Rotate("unknown")
	if _, err := i.Bearer(ctx, stranger.Token(nil)); err == nil || ctx.Err() == nil {
		t.Errorf("a key that isn't known isn't waited for: %v", err)
	}
	<-i.turn
}

func FuzzParseKeys(f *testing.F) {
	f.Add(`{"kty":"RSA","n":"AQ","e":"AQAB"}`)
	fuzzbound.Run(f, func(_ *testing.T, text string) {
		_, _ = parseKeys(keySet{Keys: []json.RawMessage{json.RawMessage(text)}})
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
