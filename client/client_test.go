package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

const runID = "01999999-aaaa-7bbb-8ccc-dddddddddddd"

// serve returns a client of a server that answers with the handler. The client waits
// for nothing between its tries.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return connect(t, server.URL)
}

func connect(t *testing.T, address string) *Client {
	t.Helper()
	transport := newTransport(nil)
	t.Cleanup(transport.CloseIdleConnections)
	c, err := New(Options{Server: address, Token: "secret", HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	c.conn.pause = func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
	return c
}

// answer is a handler that always says the same.
func answer(status int, media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// cut ends the connection without an end of the answer.
func cut(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func wantFault(t *testing.T, err error, kind fault.Kind, text string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("error of kind %v: %v, want %v", fault.KindOf(err), err, kind)
	}
	public := fault.Public(err)
	if all := public.Msg + " " + public.Hint; !strings.Contains(all, text) {
		t.Errorf("it says %q, without %q", all, text)
	}
}

func TestNewRefusesWhatIsNoServer(t *testing.T) {
	for address, want := range map[string]string{
		"":                           "not the address",
		"localhost:8080":             "not the address",
		"ftp://host":                 "not the address",
		"http://":                    "not the address",
		"http://a\x7fb":              "can't be read",
		"http://user:hunter2@host":   "must not hold a password",
		"http://host/?token=hunter2": "goes on after its path",
		"http://host/#x":             "goes on after its path",
	} {
		_, err := New(Options{Server: address})
		wantFault(t, err, fault.Input, want)
		if strings.Contains(want, "password") && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the password is shown: %v", err)
		}
	}
	_, err := New(Options{Server: "http://host", Token: "two\nlines"})
	wantFault(t, err, fault.Input, "the token")
}

func TestAServerMayLieBelowAPath(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.Path }))
	defer server.Close()
	if err := connect(t, server.URL+"/aod/").Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asked != "/aod/readyz" {
		t.Errorf("asked for %q", asked)
	}
}

func TestARefusalIsTheServersOwnFault(t *testing.T) {
	want := fault.New(fault.Conflict, "it has ended").WithHint("start another").
		WithFindings([]fault.Finding{{File: "agent.yaml", Line: 3, Message: "wrong"}})
	body, err := json.Marshal(httpwire.Problem{Title: "conflict", Detail: want.Msg, Code: "conflict", Hint: want.Hint, Findings: want.Findings})
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, answer(409, "application/problem+json; charset=utf-8", string(body)))
	_, err = c.Runs.Cancel(t.Context(), runID, "")
	var got *fault.Error
	if !errors.As(err, &got) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnswersThatNoServerOfOursGives(t *testing.T) {
	cases := []struct {
		name    string
		handler http.HandlerFunc
		kind    fault.Kind
		text    string
	}{
		{"an error page of a proxy", answer(403, "text/html", "<h1>no</h1>"), fault.Unavailable, "403 without a reason"},
		{"a gateway without its server", answer(502, "text/html", "bad"), fault.Unavailable, "502 without a reason"},
		{"a problem without a code", answer(400, "application/problem+json", `{"title":"x"}`), fault.Unavailable, "without a reason"},
		{"a problem that isn't JSON", answer(400, "application/problem+json", `{`), fault.Unavailable, "without a reason"},
		{"a problem without an end", answer(400, "application/problem+json", `{"code":"`+strings.Repeat("x", 2<<20)), fault.Unavailable, "without a reason"},
		{"a kind of a newer version", answer(400, "application/problem+json", `{"code":"eaten","title":"eaten by a dog"}`), fault.Unsupported, "eaten by a dog"},
		{"a page instead of a record", answer(200, "text/html", "<html>"), fault.Unavailable, "can't be understood"},
		{"a record without an id", answer(200, "application/json", "{}"), fault.Unavailable, "can't be understood"},
		{"an id that leads elsewhere", answer(200, "application/json", `{"id":"../../x"}`), fault.Unavailable, "can't be understood"},
		{"an answer without an end", func(w http.ResponseWriter, _ *http.Request) {
			for chunk := strings.Repeat(" ", 1<<20); ; {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		}, fault.TooLarge, "larger than 64 MiB"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := serve(t, c.handler).Runs.Get(t.Context(), runID)
			wantFault(t, err, c.kind, c.text)
		})
	}
}

func TestTheTokenGoesNowhereElse(t *testing.T) {
	var stolen string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = "asked " + r.Header.Get("Authorization") }))
	defer thief.Close()
	var sent string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	})
	_, err := c.Runs.Get(t.Context(), runID)
	wantFault(t, err, fault.Unsupported, "name that server itself")
	if sent != "Bearer secret" {
		t.Errorf("sent %q", sent)
	}
	if stolen != "" {
		t.Errorf("the redirect was followed: %s", stolen)
	}
}

func TestARedirectOnTheSameServerIsRefusedToo(t *testing.T) {
	var asked int
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "/login", http.StatusFound)
	})
	_, err := c.Units.List(t.Context())
	wantFault(t, err, fault.Unsupported, "sends us elsewhere")
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestAServerThatIsAway(t *testing.T) {
	away := "http://" + testkit.Nobody(t)
	_, err := connect(t, away).Units.List(t.Context())
	wantFault(t, err, fault.Unavailable, "is aod serve running at "+away+"?")
}

func TestALostAnswerIsAskedForAgain(t *testing.T) {
	var asked int
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < callTries {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"units":`)
			cut(w)
		}
		_, _ = io.WriteString(w, `{"units":[{"name":"hello"}]}`)
	})
	units, err := c.Units.List(t.Context())
	if err != nil || len(units) != 1 || units[0].Name != "hello" {
		t.Fatalf("units %v, error %v", units, err)
	}
}

func TestWhoeverLetsGoIsToldThat(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := c.Runs.Get(ctx, runID); !errors.Is(err, context.Canceled) || fault.KindOf(err) != fault.Cancelled {
		t.Errorf("error %v", err)
	}
}

func TestIDsAreCheckedBeforeTheyArePartOfAPath(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	for _, id := range []string{"", ".", "..", "../units", "a/b", "a?b", "a b", "é", strings.Repeat("a", 200)} {
		_, err := c.Runs.Get(t.Context(), id)
		wantFault(t, err, fault.Input, "not the id of a run")
	}
	for _, name := range []string{"", "..", "a/b", "A"} {
		_, err := c.Units.Schema(t.Context(), name)
		wantFault(t, err, fault.Input, "")
	}
}

// writeRecord writes a run's record as a server does.
func writeRecord(w io.Writer, state string) {
	_, _ = fmt.Fprintf(w, `{"id":%q,"unit":"hello","state":%q,"outcome":null}`, runID, state)
}
