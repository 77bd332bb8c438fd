package remote

import (
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestConnectionsAreKeptAndClosed(t *testing.T) {
	a := newAgent(t, says(200, good), (*httptest.Server).Start)
	b := newBench(t, a.URL, "")
	asks := func(want int32) {
		t.Helper()
		if got, _ := b.ends(); got.Outcome != api.Success {
			t.Fatalf("%+v", got.Failure)
		}
		if n := a.opened.Load(); n != want {
			t.Errorf("%d connections were opened, want %d", n, want)
		}
	}
	asks(1)
	asks(1)
	b.load(a.URL, "  task_type: OTHER\n") // a newer version with the same address
	a.answers(says(200, strings.Replace(good, "WORDS", "OTHER", 1)))
	asks(1)
	b.load(a.URL+"/below", "")
	a.answers(says(200, good))
	asks(2)
	testkit.Eventually(t, "that of the older address is closed", func() bool { return a.closed.Load() == 1 })
	if err := b.kind.Close(); err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, "they are closed", func() bool { return a.closed.Load() == a.opened.Load() })
	asks(3) // it may be asked all the same
	if err := b.kind.Close(); err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, "that is closed as well", func() bool { return a.closed.Load() == a.opened.Load() })
}

func TestTheConnectionOfABrokenAnswerIsNotUsedAgain(t *testing.T) {
	a := newAgent(t, nil, (*httptest.Server).Start)
	b := newBench(t, a.URL, "")
	for n, says := range []answer{cutOff(good[:20]), says(200, strings.Repeat("x", 5<<20)), says(200, good)} {
		a.answers(says)
		b.ends()
		if got := a.opened.Load(); got != int32(n+1) {
			t.Errorf("after answer %d: %d connections", n, got)
		}
	}
}

func TestWhomItTrusts(t *testing.T) {
	a := newAgent(t, says(200, good), (*httptest.Server).StartTLS)
	plain := newAgent(t, says(200, good), (*httptest.Server).Start)
	old := newAgent(t, says(200, good), func(s *httptest.Server) {
		s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
		s.StartTLS()
	})
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}))
	port := a.URL[strings.LastIndex(a.URL, ":"):]
	for _, c := range []struct {
		name, url, ca string
		trusts        bool
		says          string
	}{
		{"nobody of whom nobody knows", a.URL, "", false, "certificate"},
		{"whom its unit knows", a.URL, ca, true, ""},
		{"nobody of another name", "https://localhost" + port, ca, false, "certificate"},
		{"nobody who speaks no TLS", strings.Replace(plain.URL, "http:", "https:", 1), "", false, "TLS"},
		{"nobody who speaks only an old TLS", old.URL, ca, false, "TLS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, plain.URL, "")
			more := ""
			if c.ca != "" {
				b.file["ca.pem"], more = c.ca, "  ca_file: ca.pem\n"
			}
			b.load(c.url, more)
			before := plain.requests()
			got, _ := b.ends()
			if c.trusts {
				wants(t, got, api.Success, "", "", "")
				return
			}
			wants(t, got, api.SystemError, api.CategoryPermanent, "remote_untrusted", c.says)
			if !strings.Contains(got.Failure.Hint, "ca_file") || plain.requests() != before {
				t.Errorf("hint %q, it was asked: %v", got.Failure.Hint, plain.requests() != before)
			}
		})
	}
	t.Run("not whom it knew before", func(t *testing.T) {
		b := newBench(t, plain.URL, "")
		b.file["ca.pem"] = ca
		b.load(a.URL, "  ca_file: ca.pem\n")
		if got, _ := b.ends(); got.Outcome != api.Success {
			t.Fatalf("%+v", got.Failure)
		}
		b.load(a.URL, "")
		got, _ := b.ends()
		wants(t, got, api.SystemError, api.CategoryPermanent, "remote_untrusted", "certificate")
	})
}

func TestNobodyIsThere(t *testing.T) {
	b := newBench(t, "http://"+testkit.Nobody(t), "")
	got, _ := b.ends()
	wants(t, got, api.SystemError, api.CategoryTransient, "unavailable", "refused")
	b.load("http://aod-no-such-host.invalid", "  plain_http: true\n")
	if got, _ := b.ends(); got.Outcome != api.SystemError || got.Failure.Category != api.CategoryTransient {
		t.Errorf("%+v %+v", got, got.Failure)
	}
}

// auths are the ways in which an agent learns who asks, and what it is sent.
var auths = map[string]struct{ header, want string }{
	"{secret: token}":                {"Authorization", "Bearer s3cret-of-ours"},
	"{secret: token, scheme: Token}": {"Authorization", "Token s3cret-of-ours"},
	"{secret: token, header: X-Key}": {"X-Key", "s3cret-of-ours"},
}

// TestASecretIsToldToNobodyElse has agents repeat what they were sent, wherever they can.
func TestASecretIsToldToNobodyElse(t *testing.T) {
	for auth, sent := range auths {
		for _, stream := range []string{"", "  stream: true\n"} {
			a := newAgent(t, nil, (*httptest.Server).Start)
			b := newBench(t, a.URL, stream+"  auth: "+auth+"\n")
			write(t, filepath.Join(b.secrets, "token"), "s3cret-of-ours\n")
			for name, text := range map[string]string{
				"a failure":   `{"request_id":"$ID","task_type":"WORDS","status":"error","ok":false,"outputs":{},"error":"the token $TOKEN is over","warnings":["$TOKEN"]}`,
				"a refusal":   `{"request_id":"$ID","ok":false,"outputs":{},"warnings":["the token $TOKEN is over"]}`,
				"a warning":   `{"request_id":"$ID","task_type":"WORDS","status":"ok","outputs":{"words":3},"warnings":["the token $TOKEN is over"]}`,
				"a violation": `{"request_id":"$TOKEN","task_type":"$TOKEN","status":"$TOKEN","outputs":{"$TOKEN":"$TOKEN"}}`,
				"outputs":     `{"request_id":"$ID","task_type":"WORDS","status":"ok","outputs":{"words":"$TOKEN"}}`,
				"a page":      `<html>$TOKEN</html>`,
			} {
				text = strings.ReplaceAll(text, "$TOKEN", sent.want)
				status := 200
				if name == "a refusal" {
					status = 401
				}
				a.answers(says(status, text))
				if stream != "" && status == 200 {
					a.answers(with("Content-Type", "text/event-stream", says(200, "event: progress\ndata: {\"step\":\""+sent.want+"\",\"message\":\""+sent.want+"\"}\n\nevent: final\ndata: "+text+"\n\n")))
				}
				b.events = nil
				got, x := b.ends()
				shown := told(got, x)
				for _, e := range b.events {
					if e.Progress != nil {
						shown += e.Progress.Step + e.Progress.Message
					}
				}
				if strings.Contains(shown, "s3cret") {
					t.Errorf("%s, %s: the user is told %s", auth, name, shown)
				}
				if said := name == "a failure" || name == "a refusal" || name == "a warning"; said && !strings.Contains(shown, "is over") {
					t.Errorf("%s, %s: the agent's own words are missing: %s", auth, name, shown)
				}
				if _, header := a.last(); header.Get(sent.header) != sent.want {
					t.Errorf("%s: it was sent %v", auth, header)
				}
			}
		}
	}
}

func TestASecretThatCantBeSent(t *testing.T) {
	a := newAgent(t, says(200, good), (*httptest.Server).Start)
	b := newBench(t, a.URL, "  auth: {secret: token}\n")
	file := filepath.Join(b.secrets, "token")
	for name, spoil := range map[string]func(){
		"it is missing":          func() {},
		"it has lines":           func() { write(t, file, "s3cret\nof two") },
		"it has other letters":   func() { write(t, file, "s3crét") },
		"it has a NUL":           func() { write(t, file, "s3cret\x00") },
		"others can read it":     func() { write(t, file, "s3cret"); _ = os.Chmod(file, 0o644) },
		"it is a link elsewhere": func() { _ = os.Symlink("/etc/hostname", file) },
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(file)
			spoil()
			got, x := b.ends()
			if got.Outcome != api.SystemError || got.Failure.Category != api.CategoryPermanent || got.Failure.Kind != api.KindSecretUnavailable || x.State() != api.Starting {
				t.Errorf("%+v %+v, it is %s", got, got.Failure, x.State())
			}
			if strings.Contains(told(got, x), "s3cr") || a.requests() > 0 {
				t.Errorf("%d requests, the user is told %s", a.requests(), told(got, x))
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
