package agenthttp

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
)

func TestTheTokenGoesToTheAgentAlone(t *testing.T) {
	var elsewhere atomic.Int32
	other := agenttest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	for _, c := range []struct {
		name, header, want string
	}{{"", "Authorization", "Bearer s3cret"}, {"X-API-Key", "X-API-Key", "s3cret"}} {
		var got []string
		mux := http.NewServeMux()
		mux.HandleFunc(SyncPath, func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.Header.Get(c.header))
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
		})
		mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.Header.Get(c.header))
			r.URL.Path = SyncPath
			agenttest.Good().ServeHTTP(w, r)
		})
		mux.HandleFunc(StreamPath, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other+StreamPath, http.StatusTemporaryRedirect)
		})
		agent := newClient(t, Options{URL: agenttest.Serve(t, mux), Token: "s3cret", TokenHeader: c.name})
		if _, err := agent.Run(t.Context(), asked); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{c.want, c.want}, got); diff != "" {
			t.Error(diff)
		}
		if _, err := agent.Stream(t.Context(), asked, func(Event) {}); !fault.Is(err, fault.Unsupported) {
			t.Error(err)
		}
	}
	if elsewhere.Load() > 0 {
		t.Error("the other origin was asked")
	}
}

func TestARedirectThatDropsTheBodyIsNotFollowed(t *testing.T) {
	var seen []string
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method)
		http.Redirect(w, r, "/moved", http.StatusFound)
	})
	if _, err := c.Run(t.Context(), asked); !fault.Is(err, fault.Unsupported) || len(seen) != 1 {
		t.Errorf("%v %v", seen, err)
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"agent.example.com":         "https://agent.example.com",
		"agent.example.com:8443/x/": "https://agent.example.com:8443/x/",
		"http://127.0.0.2:8000":     "http://127.0.0.2:8000",
		"http://[::1]:8000":         "http://[::1]:8000",
		"http://localhost":          "http://localhost",
	} {
		if c, err := New(Options{URL: address}); err != nil || c.far.Base.String() != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, wrong := range []string{"", "http://agent.example.com", "http://10.0.0.1", "ftp://a", "https://u:hunter2@a", "https://a?b", "https://a#b", "https://\x00"} {
		if _, err := New(Options{URL: wrong}); !fault.Is(err, fault.Input) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if _, err := New(Options{URL: "http://agent.example.com", PlainHTTP: true}); err != nil {
		t.Error(err)
	}
	if _, err := New(Options{URL: "https://a", Token: "a\nb"}); !fault.Is(err, fault.Input) {
		t.Error(err)
	}
}

func TestTLSIsVerified(t *testing.T) {
	s := httptest.NewTLSServer(agenttest.Good())
	t.Cleanup(s.Close)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	c := newClient(t, Options{URL: s.URL})
	if _, err := c.Run(t.Context(), asked); !fault.Is(err, fault.Unavailable) || !errors.Is(err, ErrCertificate) {
		t.Error(err)
	}
	c = newClient(t, Options{URL: strings.Replace(agenttest.Serve(t, agenttest.Good()), "http:", "https:", 1)})
	if _, err := c.Run(t.Context(), asked); !fault.Is(err, fault.Unavailable) || !errors.Is(err, ErrHandshake) {
		t.Error(err)
	}
	strict := httptest.NewUnstartedServer(agenttest.Good())
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12, MinVersion: tls.VersionTLS12}
	strict.Config.ErrorLog = s.Config.ErrorLog
	strict.StartTLS()
	t.Cleanup(strict.Close)
	c = newClient(t, Options{URL: strict.URL, HTTP: strict.Client()}) // which has none
	if _, err := c.Run(t.Context(), asked); !fault.Is(err, fault.Unavailable) || !errors.Is(err, ErrHandshake) {
		t.Error(err)
	}
	c = newClient(t, Options{URL: s.URL, HTTP: s.Client()})
	if _, err := c.Run(t.Context(), asked); err != nil {
		t.Error(err)
	}
}

func TestASecretIsShownToNobody(t *testing.T) {
	s := Secret("hunter2")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "options", Options{Token: s})
	raw, err := json.Marshal(map[string]any{"token": s})
	shown := fmt.Sprintf("%s %v %+v %#v %q %s %s", s, s, Options{Token: s}, Options{Token: s}, s, raw, log.String())
	if strings.Contains(shown, "hunter2") || err != nil {
		t.Errorf("%s %v", shown, err)
	}
}
