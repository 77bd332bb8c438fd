package capsuleapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/handofftest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

type problem = httpwire.Problem

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

const callee = handofftest.Callee

var idOf = handofftest.ID

// harness is a caller with its directories, and an orchestrator that is made up.
type harness struct {
	t      testing.TB
	dir    string
	caller handoff.Caller
	limits handoff.Limits
	runs   *handofftest.Runs
	calls  handoff.Runs // in place of runs; nil: they are
	log    *testkit.Log
	h      *Handler
}

func newWorld(t testing.TB) *harness {
	t.Helper()
	w := &harness{t: t, dir: t.TempDir(), runs: handofftest.NewRuns(t), log: &testkit.Log{}}
	for _, dir := range []string{"io/handoff/outgoing", "io/handoff/incoming", "placed", "results"} {
		must(t, os.MkdirAll(filepath.Join(w.dir, dir), 0o777))
	}
	w.caller = handoff.Caller{
		Run: idOf(1), Root: idOf(1), Unit: "caller",
		Path:   []handoff.Step{{Run: idOf(1), Unit: "caller"}},
		Grants: []string{"callee", "missing", "caller"}, Tree: handoff.NewTree(),
		Outgoing: w.path("io/handoff/outgoing"), Incoming: w.path("io/handoff/incoming"), Placed: w.path("placed"),
	}
	w.runs.Add("callee", callee)
	w.runs.Add("caller", callee)
	w.renew()
	return w
}

// renew makes the handler again, as a new process would.
func (w *harness) renew() {
	calls := w.calls
	if calls == nil {
		calls = w.runs
	}
	w.h = NewHandler(w.caller, calls, w.limits, slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		ArtifactMount(w.runs.Artifact), MessageMount(w.runs.Messages))
}

func (w *harness) path(rel string) string { return filepath.Join(w.dir, rel) }

// out writes a file into the caller's outgoing directory.
func (w *harness) out(name, content string) { write(w.t, w.path("io/handoff/outgoing/"+name), content) }

// made makes an output file of a callee's.
func (w *harness) made(run, name, content string) handoff.Output {
	path := filepath.Join(w.dir, "results", run, name)
	write(w.t, path, content)
	sum := sha256.Sum256([]byte(content))
	return handoff.Output{Name: name, Path: path, SizeBytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
}

func (w *harness) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Content-Type" {
			r.Header.Del(name)
		}
		r.Header.Add(name, value)
	}
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	return rec
}

// call hands off to the callee, and wants an answer of the status.
func (w *harness) call(status int, args string, headers ...string) finished {
	w.t.Helper()
	return answered[finished](w.t, w.do("POST", "/handoff", `{"target":"callee","args":`+args+`}`, headers...), status)
}

func answered[T any](t testing.TB, rec *httptest.ResponseRecorder, status int) T {
	t.Helper()
	if rec.Code != status {
		t.Fatalf("status %d, want %d: %s", rec.Code, status, rec.Body)
	}
	var v T
	if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v in %q", err, rec.Body)
	}
	return v
}

func write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func read(t testing.TB, path string) string {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	raw, err := io.ReadAll(f)
	must(t, err)
	return string(raw)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// spent is how many calls the tree counts below the caller: one less than the limit under which one more
// may be made.
func (w *harness) spent() int {
	caller := []handoff.Step{{Run: w.caller.Run}}
	for n := 1; ; n++ {
		if w.caller.Tree.Spend(caller, handoff.Limits{Calls: n}) == nil {
			w.caller.Tree.Restore(handoff.BudgetCalls, w.caller.Run, int64(n-1))
			return n - 1
		}
	}
}

var _ http.Handler = (*Handler)(nil)
