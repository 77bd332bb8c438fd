package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/testing/issuertest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// aLogin is a user of this machine, before a server with an issuer.
type aLogin struct {
	*walled
	at *issuertest.Issuer
}

func newLogin(t *testing.T) aLogin {
	t.Helper()
	_, data := alone(t)
	at := issuertest.New(t)
	at.Person = issuertest.Claims{"sub": "ada", "groups": []string{"a"}}
	w := newWalledAt(t, data, peopled(at))
	t.Setenv("AOD_SERVER", w.url)
	return aLogin{w, at}
}

var signInAt = regexp.MustCompile(`sign in at (http\S+)`)

// logsIn has the command sign in, and a browser do what it is told. It returns the code and what was told.
func (l aLogin) logsIn(browser func(address string), args ...string) (code int, told string) {
	l.Helper()
	log := &testkit.Log{}
	over := make(chan int, 1)
	go func() {
		out := &ui.Output{Writer: log, FD: -1}
		a := newApp(strings.NewReader(""), out, out)
		over <- a.run(l.Context(), append([]string{"login", "--print"}, args...))
	}()
	if browser != nil {
		testkit.Eventually(l, "it tells where to sign in", func() bool { return signInAt.MatchString(log.String()) })
		browser(signInAt.FindStringSubmatch(log.String())[1])
	}
	return <-over, log.String()
}

// follows opens an address as a browser does.
func (l aLogin) follows(address string) {
	l.Helper()
	answer, err := http.Get(address)
	l.must(err)
	defer answer.Body.Close()
	raw, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		l.Errorf("the browser is told %d %s", answer.StatusCode, raw)
	}
}

// file is the one of the sign-in, and what is in it.
func (l aLogin) file() (path string, kept map[string]any) {
	l.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "aod", "logins", "*.json"))
	l.must(err)
	if len(found) != 1 {
		l.Fatalf("files: %q", found)
	}
	raw, err := os.ReadFile(found[0])
	l.must(err)
	l.must(json.Unmarshal(raw, &kept))
	return found[0], kept
}

func TestSomebodySignsInByCommand(t *testing.T) {
	l := newLogin(t)
	code, told := l.logsIn(func(address string) {
		back := regexp.MustCompile(`localhost%3A(\d+)`).FindStringSubmatch(address)[1]
		for _, stranger := range []string{"?code=x&state=y", "?error=access_denied", ""} { // it isn't the one that is awaited
			if answer, err := http.Get("http://localhost:" + back + "/callback" + stranger); err != nil || answer.StatusCode != http.StatusBadRequest {
				t.Errorf("%q: %v %v", stranger, answer, err)
			}
		}
		l.follows(address)
	})
	if code != 0 || !strings.Contains(told, "signed in at "+l.url+" as user:ada, in a") {
		t.Fatalf("code %d: %s", code, told)
	}
	path, _ := l.file()
	for at, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(at); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", at, info.Mode(), err)
		}
	}
	shown, _ := l.says("whoami")
	contains(t, shown, "identity  user:ada", "teams     a", "groups    a")
	shown, _ = l.says("run", "writer", "--json")
	contains(t, shown, `"by":"user:ada"`)
	t.Setenv("AOD_TOKEN", l.key)
	if shown, _ = l.says("whoami"); strings.Contains(shown, "user:ada") {
		t.Error("AOD_TOKEN doesn't come first")
	}
	t.Setenv("AOD_TOKEN", "")
	if good := l.at.Refreshes(); good != 1 {
		t.Errorf("%d refresh tokens are good", good)
	}
	if _, told := l.says("logout"); told != "" || l.at.Refreshes() != 0 {
		t.Errorf("%d refresh tokens are good still: %s", l.at.Refreshes(), told)
	}
	if shown, _ = l.says("whoami"); strings.Contains(shown, "user:ada") { // the server's own, of the data directory
		t.Errorf("after that: %s", shown)
	}
	if _, told := l.says("logout"); !strings.Contains(told, "nobody was signed in") {
		t.Error(told)
	}
}

// A sign-in is forgotten here, also where the issuer isn't there, or takes nothing back.
func TestALogoutNeedsNoIssuer(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*issuertest.Issuer)
		told   string
	}{
		"is down":             {func(at *issuertest.Issuer) { at.Down = true }, "the issuer wasn't told"},
		"takes nothing back":  {func(at *issuertest.Issuer) { at.Says["revocation_endpoint"] = "" }, ""},
		"has it go elsewhere": {func(at *issuertest.Issuer) { at.Says["revocation_endpoint"] = "http://issuer.example/revoke" }, "the issuer wasn't told"},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLogin(t)
			if code, told := l.logsIn(l.follows); code != 0 {
				t.Fatal(told)
			}
			path, _ := l.file()
			l.at.Lock()
			if l.at.Says == nil {
				l.at.Says = map[string]any{}
			}
			c.change(l.at)
			l.at.Unlock()
			if _, told := l.says("logout"); !strings.Contains(told, c.told) || (told == "") != (c.told == "") {
				t.Errorf("it is told %q", told)
			}
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("the sign-in is there: %v", err)
			}
		})
	}
}

func TestASignInIsRefreshedOnce(t *testing.T) {
	l := newLogin(t)
	l.at.Lasts = 30 * time.Second // less than what a token has to last
	if code, told := l.logsIn(l.follows); code != 0 {
		t.Fatal(told)
	}
	_, before := l.file()
	asked := l.at.Count("/token")
	l.at.Lock()
	l.at.Lasts = time.Hour
	l.at.Unlock()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if code, _, stderr := command(t, t.Context(), "whoami"); code != 0 {
				t.Error(stderr)
			}
		})
	}
	all.Wait()
	_, after := l.file()
	if n := l.at.Count("/token") - asked; n != 1 || before["refresh_token"] == after["refresh_token"] || before["token"] == after["token"] {
		t.Errorf("it was refreshed %d times: %v", n, after)
	}
}

func TestASignInThatIsOverSaysSo(t *testing.T) {
	l := newLogin(t)
	l.at.Lasts = 30 * time.Second
	if code, told := l.logsIn(l.follows); code != 0 {
		t.Fatal(told)
	}
	l.at.Forget()
	l.says("whoami") // the token is good for a while
	path, kept := l.file()
	kept["expires_at"] = time.Now().Add(-time.Second)
	raw, err := json.Marshal(kept)
	l.must(err)
	l.must(os.WriteFile(path, raw, 0o600))
	if code, _, told := command(t, t.Context(), "ps"); code == 0 || !strings.Contains(told, "is over") || !strings.Contains(told, "aod login --server "+l.url) {
		t.Errorf("code %d: %s", code, told)
	}
	l.at.Lock()
	l.at.Down = true
	l.at.Unlock()
	if code, _, told := command(t, t.Context(), "ps"); code == 0 || !strings.Contains(told, "doesn't answer") {
		t.Errorf("code %d: %s", code, told)
	}
	l.must(os.WriteFile(path, []byte("{"), 0o600))
	if code, _, told := command(t, t.Context(), "ps"); code == 0 || !strings.Contains(told, "can't be read") {
		t.Errorf("code %d: %s", code, told)
	}
}

func TestWhoCannotSignInIsToldWhy(t *testing.T) {
	l := newLogin(t)
	l.at.Person = issuertest.Claims{"sub": "eve", "groups": []string{"vpn"}}
	if code, told := l.logsIn(l.follows); code == 0 || !strings.Contains(told, "no team") || !strings.Contains(told, "oidc.team") {
		t.Errorf("of no team: code %d: %s", code, told)
	}
	code, told := l.logsIn(func(address string) {
		query := regexp.MustCompile(`redirect_uri=([^&]*).*state=([^&]*)`).FindStringSubmatch(address)
		back := strings.NewReplacer("%3A", ":", "%2F", "/").Replace(query[1])
		l.follows(back + "?error=access_denied%0a%1b[31m&state=" + query[2])
	})
	if code == 0 || !strings.Contains(told, `access_denied\n\x1b`) {
		t.Errorf("refused there: code %d: %q", code, told)
	}
	if found, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "aod", "logins", "*.json")); len(found) != 0 {
		t.Errorf("kept: %q", found)
	}
	s := newFakeServer(t)
	if code, _, told := command(t, t.Context(), "login", "--server", s.URL); code == 0 {
		t.Errorf("a server without people: %s", told)
	}
}

// The page of a server as `aod serve` wires it.
func TestSomebodySignsInAtThePage(t *testing.T) {
	l := newLogin(t)
	jar, err := cookiejar.New(nil)
	l.must(err)
	browser := &http.Client{Jar: jar}
	answer, err := browser.Get(l.url + "/ui/sso?next=units")
	l.must(err)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || answer.Request.URL.Path != "/ui/units" || !strings.Contains(string(raw), "user:ada") {
		t.Errorf("it leads to %s: %s %s", answer.Request.URL, answer.Status, raw)
	}
	if n := l.at.Count("/auth"); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
}

func TestSomebodySignsInByADevice(t *testing.T) {
	l := newLogin(t)
	if code, told := l.logsIn(nil, "--device"); code != 0 || !strings.Contains(told, "/activate and give the code ABCD-EFGH") || !strings.Contains(told, "as user:ada") {
		t.Errorf("code %d: %s", code, told)
	}
	l.at.Lock()
	l.at.Says = map[string]any{"device_authorization_endpoint": nil}
	l.at.Unlock()
	if code, told := l.logsIn(nil, "--device"); code == 0 || !strings.Contains(told, "leave out --device") {
		t.Errorf("code %d: %s", code, told)
	}
}

// A run is followed to its end by whose token ends before: it is refreshed, and the stream goes on.
func TestAStreamOutlivesTheTokenOfASignIn(t *testing.T) {
	l := newLogin(t)
	l.at.Lasts = 62 * time.Second
	if code, told := l.logsIn(l.follows); code != 0 {
		t.Fatal(told)
	}
	path, kept := l.file()
	kept["token"] = l.at.Token(issuertest.Claims{"exp": time.Now().Add(3 * time.Second).Unix()})
	kept["expires_at"] = time.Now().Add(62 * time.Second) // it ends before the user thinks, and the server says so
	raw, err := json.Marshal(kept)
	l.must(err)
	l.must(os.WriteFile(path, raw, 0o600))
	var id string
	over := make(chan string, 1)
	go func() {
		_, stdout, stderr := command(t, t.Context(), "run", "writer", "--set", "text=wait", "--json")
		over <- stdout + stderr
	}()
	began := time.Now()
	testkit.Eventually(t, "it runs", func() bool {
		_, answer := l.asksAs(l.key, "/v1/runs?active=true")
		var page struct{ Runs []struct{ ID string } }
		_ = json.Unmarshal([]byte(answer), &page)
		if len(page.Runs) == 1 {
			id = page.Runs[0].ID
		}
		return id != ""
	})
	testkit.Eventually(t, "the token is over", func() bool { return time.Since(began) > 6*time.Second })
	select {
	case told := <-over:
		t.Fatalf("it was cut off: %s", told)
	default:
	}
	l.keys["operator"] = l.key
	if code, answer := l.asks("operator", http.MethodPost, "/v1/runs/"+id+"/cancel", ""); code/100 != 2 {
		t.Fatalf("%d %s", code, answer)
	}
	if told := <-over; !strings.Contains(told, `"cancelled"`) {
		t.Errorf("it is told %s", told)
	}
}

// asksAs asks for something with a token.
func (l aLogin) asksAs(token, path string) (int, string) {
	l.keys["as"] = token
	return l.asks("as", http.MethodGet, path, "")
}
