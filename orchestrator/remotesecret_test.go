package orchestrator

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// withSecret gives a Service the secret "token" and returns where it lies.
func withSecret(t *testing.T, value string) (change func(*settings), path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "secrets", "token")
	write(t, path, value)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(o *settings) { o.Secrets = filepath.Dir(path) }, path
}

func TestAnAgentElsewhereLearnsWhoAsks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ auth, header, want string }{
		{"{secret: token}", "Authorization", "Bearer s3cret"},
		{"{secret: token, scheme: Token}", "Authorization", "Token s3cret"},
		{"{secret: token, header: x-api-key}", "X-Api-Key", "s3cret"},
		{`{secret: token, header: Authorization, scheme: ""}`, "Authorization", "s3cret"},
	} {
		change, _ := withSecret(t, "s3cret\n")
		w, agent := newFarFixture(t, "  auth: "+c.auth+"\n", change)
		if record := w.await(w.ask("a")); record.Outcome != api.Success {
			t.Fatal(show(record))
		}
		if got := agent.lastHeader()[c.header]; len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %q", c.auth, got)
		}
	}
}

func TestASecretIsReadAtEachCall(t *testing.T) {
	t.Parallel()
	change, path := withSecret(t, "old")
	w, agent := newFarFixture(t, "  auth: {secret: token}\n", change)
	w.await(w.ask("a"))
	write(t, path, "new")
	if w.await(w.ask("a")); agent.lastHeader().Get("Authorization") != "Bearer new" {
		t.Errorf("got %q", agent.lastHeader())
	}
	for name, spoil := range map[string]func() error{
		"others can read it": func() error { return os.Chmod(path, 0o644) },
		"it has lines":       func() error { return os.WriteFile(path, []byte("a\nnew"), 0o600) },
		"it is gone":         func() error { return os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			before := len(agent.requests())
			record := w.await(w.ask("a"))
			e := record.Error
			if record.Outcome != api.SystemError || e.Category != api.CategoryPermanent || e.Kind != "secret_unavailable" || e.Hint == "" || record.Retries != 0 || len(agent.requests()) != before {
				t.Errorf("%d requests, record %s", len(agent.requests())-before, show(record))
			}
			_ = os.WriteFile(path, []byte("new"), 0o600)
			_ = os.Chmod(path, 0o600)
		})
	}
}

func TestAnUploadGetsNoSecret(t *testing.T) {
	t.Parallel()
	change, _ := withSecret(t, "s3cret")
	w, agent := newFarFixture(t, "", change, func(o *settings) {
		o.Egress = egress.New(egress.Options{Private: []outside.Exception{{Host: "near.example", Addr: netip.MustParseAddr("127.0.0.1")}}})
	})
	w.noEngine()
	address := strings.Replace(agent.URL, "127.0.0.1", "near.example", 1) + "\n  plain_http: true"
	upload := func(more string) error {
		var archive bytes.Buffer
		out := tar.NewWriter(&archive)
		for name, content := range map[string]string{
			"agent.yaml": "name: uploaded\nkind: remote\nremote:\n  url: " + address + "\n" + more, "schema.json": wordsSchema,
		} {
			_ = out.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))})
			_, _ = out.Write([]byte(content))
		}
		_ = out.Close()
		_, _, err := w.service.Units.Put(trusted.Context(t), "uploaded", &archive)
		return err
	}
	if err := upload("  auth: {secret: token}\n"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("it is taken with a secret: %v", err)
	}
	near := address
	address = agent.URL
	if err := upload(""); !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "public address") || fault.Public(err).Hint == "" {
		t.Errorf("it is taken with an address of this machine: %v", err)
	}
	address = near
	if err := upload(""); err != nil {
		t.Fatal(err)
	}
	record, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "uploaded"})
	if err != nil {
		t.Fatal(err)
	}
	if record = w.await(record.ID); record.Outcome != api.Success {
		t.Error(show(record))
	}
}

func TestAnAgentElsewhereIsTrustedByItsCertificate(t *testing.T) {
	t.Parallel()
	certificate := func(s *httptest.Server) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	}
	agent := newFarAgent(t, (*httptest.Server).StartTLS)
	w, plain := newFarFixture(t, "")
	dir := filepath.Join(w.opts.Sources[0], "words")
	ends := func(t *testing.T, url, more string, outcome api.Outcome, kind, says string) {
		t.Helper()
		writeWords(t, dir, url, more)
		record := w.await(w.ask("a"))
		if record.Outcome != outcome || record.Retries != 0 {
			t.Fatal(show(record))
		}
		if e := record.Error; kind != "" && (e.Kind != kind || e.Category != api.CategoryPermanent || !strings.Contains(e.Message, says) || !strings.Contains(e.Hint, "ca_file")) {
			t.Error(show(record))
		}
	}
	t.Run("one of an unknown authority isn't", func(t *testing.T) {
		ends(t, agent.URL, "", api.SystemError, "remote_untrusted", "certificate")
	})
	t.Run("one in its directory is", func(t *testing.T) {
		write(t, filepath.Join(dir, "ca.pem"), string(certificate(agent.Server)))
		ends(t, agent.URL, "  ca_file: ca.pem\n", api.Success, "", "")
	})
	t.Run("an agent that speaks no TLS isn't", func(t *testing.T) {
		ends(t, strings.Replace(plain.URL, "http:", "https:", 1), "", api.SystemError, "remote_untrusted", "TLS")
	})
}

// leaks are agents that put a text everywhere.
func leaks(canary string) map[string]func(http.ResponseWriter, agenthttp.Request) {
	return map[string]func(http.ResponseWriter, agenthttp.Request){
		"a success":      says(200, `{"request_id":"$ID","status":"ok","outputs":{"words":3,"`+canary+`":"`+canary+`"},"warnings":["`+canary+`"],"provenance":{"x":"`+canary+`"}}`),
		"a failure":      says(200, `{"request_id":"$ID","ok":false,"error":"`+canary+`","warnings":["`+canary+`"]}`),
		"a refusal":      says(422, `{"request_id":"$ID","ok":false,"outputs":{},"warnings":["`+canary+`"]}`),
		"an error":       says(500, `{"request_id":"$ID","status":"error","error":{"code":"`+canary+`","message":"`+canary+`"}}`),
		"a validator":    says(422, `{"detail":[{"loc":["`+canary+`"],"msg":"`+canary+`"}]}`),
		"an odd status":  says(200, `{"request_id":"$ID","status":"`+canary+`","ok":true,"outputs":{"words":3}}`),
		"an odd failure": says(200, `{"request_id":"$ID","status":"`+canary+`"}`),
		"busy":           says(503, canary),
		"broken outputs": says(200, `{"request_id":"$ID","status":"ok","outputs":{"words":"`+canary+`"}}`),
		"a broken rule":  says(200, `{"request_id":"`+canary+`","status":"`+canary+`"}`),
		"no JSON":        says(200, canary),
		"a stream":       streams(`{"step":"` + canary + `","message":"` + canary + `"}`),
		"a cut": func(w http.ResponseWriter, asked agenthttp.Request) {
			says(200, canary)(w, asked)
			cutsOff(w, asked)
		},
	}
}

func TestNothingOfACallElsewhereReachesALog(t *testing.T) {
	t.Parallel()
	const canary = "canary-7f3a"
	for _, stream := range []string{"", "  stream: true\n"} {
		var log lockedBuffer
		change, path := withSecret(t, canary+"-secret")
		w, agent := newFarFixture(t, stream+"  auth: {secret: token}\nretries: 1\n", change, func(o *settings) {
			o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		var called string
		for name, answer := range leaks(canary) {
			agent.answers(answer)
			record := w.await(w.ask(canary))
			called = record.ID
			if text := show(record); strings.Contains(text, canary+"-secret") {
				t.Errorf("%s: the record has the secret: %s", name, text)
			}
		}
		if err := os.WriteFile(path, []byte(canary+"-secret\x00"), 0o600); err != nil {
			t.Fatal(err)
		}
		record := w.await(w.ask("a"))
		if text := show(record); strings.Contains(text, canary) || record.Error == nil {
			t.Errorf("a secret that is none is shown: %s", text)
		}
		got := log.String()
		if strings.Contains(got, canary) {
			t.Errorf("the log tells what it must not:\n%s", got)
		}
		if !strings.Contains(got, "agent called") || !strings.Contains(got, "request_id="+called) {
			t.Errorf("the log tells of no call:\n%s", got)
		}
	}
}

func TestARecordHasNoSecretThatAnAgentRepeats(t *testing.T) {
	t.Parallel()
	const secret = "hunter-4711"
	change, _ := withSecret(t, secret)
	w, agent := newFarFixture(t, "  auth: {secret: token}\nretries: 0\n", change)
	for name, answer := range map[string]func(http.ResponseWriter, agenthttp.Request){
		"its reason":      says(200, `{"request_id":"$ID","ok":false,"error":"bad `+secret+`"}`),
		"its code":        says(200, `{"request_id":"$ID","ok":false,"error":{"code":"BAD_`+secret+`","message":"m"}}`),
		"its status":      says(200, `{"request_id":"$ID","status":"bad-`+secret+`"}`),
		"its odd success": says(200, `{"request_id":"$ID","status":"`+secret+`","ok":true,"outputs":{"words":3}}`),
		"a validator":     says(401, `{"detail":[{"loc":["`+secret+`"],"msg":"bad `+secret+`"}]}`),
		"its warnings":    says(200, `{"request_id":"$ID","status":"ok","outputs":{"words":3},"warnings":["`+secret+`"]}`),
	} {
		agent.answers(answer)
		if text := show(w.await(w.ask("a"))); strings.Contains(text, secret) || !strings.Contains(text, "[secret]") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
