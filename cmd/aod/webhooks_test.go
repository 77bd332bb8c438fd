package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestWebhooksByCommand(t *testing.T) {
	var heard, status atomic.Int64
	status.Store(200)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		heard.Add(1)
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(receiver.Close)
	_, port, _ := net.SplitHostPort(receiver.Listener.Addr().String())
	w := newWalled(t, func(c *config.Config) { c.Webhooks.Private = []string{"hook.example=127.0.0.1"} })
	url := "http://hook.example:" + port + "/in"
	secret, said := w.says("webhook", "add", url, "--event", "run.completed")
	if !strings.HasPrefix(secret, "whsec_") || strings.Count(secret, "\n") != 1 || !strings.Contains(said, "the webhook is 0") {
		t.Errorf("%q, %q", secret, said)
	}
	file := filepath.Join(t.TempDir(), "secret")
	w.must(os.WriteFile(file, []byte(secret), 0o600))
	stdout, _ := w.says("webhook", "add", url, "--secret-file", file, "--json")
	var second api.Webhook
	w.must(json.Unmarshal([]byte(stdout), &second))
	if second.Secret+"\n" != secret || len(second.Events) != len(api.WebhookEvents()) {
		t.Errorf("%+v", second)
	}
	w.keys["operator"] = w.key
	w.begun("operator", "x")
	testkit.Eventually(t, "both hear of the run's end", func() bool { return heard.Load() == 2 })
	testkit.Eventually(t, "the list says so", func() bool {
		table, _ := w.says("webhook", "ls")
		return strings.Count(table, "delivered (200)") == 2 && strings.Contains(table, "its team: run.completed")
	})
	if stdout, _ := w.says("webhook", "test", second.ID); !strings.HasPrefix(stdout, "delivered (200) after ") {
		t.Error(stdout)
	}
	status.Store(500)
	if code, stdout, _ := command(t, t.Context(), "webhook", "test", second.ID, "--json"); code != 1 || !strings.HasPrefix(stdout, `{"outcome":"refused","status":500,`) {
		t.Errorf("%d %s", code, stdout)
	}
	fresh, said := w.says("webhook", "rotate", second.ID, "--grace", "10m")
	if !strings.HasPrefix(fresh, "whsec_") || fresh == secret || !strings.Contains(said, "rotated the webhook "+second.ID) {
		t.Errorf("%q, %q", fresh, said)
	}
	if back, _ := w.says("webhook", "rotate", second.ID, "--secret-file", file); back != secret {
		t.Errorf("%q, want %q", back, secret)
	}
	_, _ = w.says("webhook", "rm", second.ID)
	for _, wrong := range [][]string{
		{"add"}, {"add", "http://127.0.0.1/x"}, {"add", url, "--event", "x"}, {"add", url, "--secret-file", "/nowhere"}, {"rm", second.ID}, {"rm", "../x"}, {"test"}, {"rotate"}, {"rotate", second.ID}, {"rotate", second.ID, "--secret-file", "/nowhere"},
	} {
		if code, stdout, stderr := command(t, t.Context(), append([]string{"webhook"}, wrong...)...); code != 2 || stdout != "" {
			t.Errorf("%q: code %d, %q, %s", wrong, code, stdout, stderr)
		}
	}
}

func TestTheWebhooksOfARevokedTokenAreCountedAndRemoved(t *testing.T) {
	w := newWalled(t, func(c *config.Config) { c.Webhooks.Private = []string{"hook.example=127.0.0.1"} })
	w.inTeam("ada", "a", access.Run, access.Read)
	if code, answer := w.asks("ada", http.MethodPost, "/v1/webhooks", `{"url":"http://hook.example:9/in"}`); code != http.StatusCreated {
		t.Fatal(code, answer)
	}
	_, said := w.says("token", "rm", "ada")
	contains(t, said, "1 webhook made with it")
	_, said = w.says("token", "rm", "ada", "--stop")
	contains(t, said, "stopped 1 webhook made with it")
	if stdout, _ := w.says("webhook", "ls", "--json"); stdout != "" {
		t.Error(stdout)
	}
}

func TestWithoutWebhooksNoneIsMade(t *testing.T) {
	w := newWalled(t, func(c *config.Config) { c.Webhooks.Enabled = false })
	if code, answer := w.asks("", http.MethodPost, "/v1/webhooks", `{"url":"https://example.com/in"}`); code != http.StatusUnauthorized {
		t.Error(code, answer)
	}
	code, _, stderr := command(t, t.Context(), "webhook", "add", "https://example.com/in")
	if code == 0 || !strings.Contains(stderr, "webhooks.enabled") {
		t.Error(code, stderr)
	}
}
