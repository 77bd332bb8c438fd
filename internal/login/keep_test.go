package login

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A sign-in is for its own server: what is kept of one goes to no other.
func TestASignInIsForItsServer(t *testing.T) {
	t.Parallel()
	k := Keep{filepath.Join(t.TempDir(), "logins")}
	must(t, k.Put(Kept{Server: "https://aod.example.com/x", Token: "secret"}))
	for server, want := range map[string]string{
		"https://aod.example.com/x": "secret", "https://AOD.example.com:443/x/": "secret", "https://aod.example.com": "",
		"http://aod.example.com/x": "", "https://aod.example.com:8443/x": "", "https://evil.example/x": "", "": "", "%": "",
	} {
		if got, err := k.Token(t.Context(), server); got != want || err != nil {
			t.Errorf("%s: %q, %v", server, got, err)
		}
	}
	must(t, os.Rename(k.file("https://aod.example.com/x"), k.file("https://evil.example")))
	if got, err := k.Token(t.Context(), "https://evil.example"); got != "" || err != nil {
		t.Errorf("a file that was moved: %q, %v", got, err)
	}
	if _, was, err := k.Remove("https://aod.example.com/x"); was || err != nil {
		t.Error(was, err)
	}
}

func TestWhichTokenIsKept(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	id := "x." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":4102444800}`)) + ".y"
	given := issuer.Tokens{Access: "access", ID: id, Refresh: "refresh", Expires: at}
	k, err := Of("http://127.0.0.1", api.Login{}, given)
	if err != nil || k.Token != "access" || !k.Expires.Equal(at) || k.Refresh != "refresh" {
		t.Errorf("%+v, %v", k, err)
	}
	k, err = Of("http://127.0.0.1", api.Login{IDToken: true}, given)
	if err != nil || k.Token != id || k.Expires.Unix() != 4102444800 {
		t.Errorf("%+v, %v", k, err)
	}
	if err := k.take(issuer.Tokens{ID: id}); err != nil || k.Refresh != "refresh" {
		t.Errorf("no new refresh token: %+v, %v", k, err)
	}
	if _, err := Of("http://127.0.0.1", api.Login{IDToken: true}, issuer.Tokens{Access: "access"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("no ID token: %v", err)
	}
}

func FuzzEndOf(f *testing.F) {
	f.Add("x.eyJleHAiOjF9.y")
	fuzzbound.Run(f, func(_ *testing.T, text string) { endOf(text) })
}
