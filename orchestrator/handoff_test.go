package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// script is the input of the unit "caller": whom it calls, one after the other or all at
// once, before it ends.
type script struct {
	Mark   string   `json:"mark,omitempty"`
	Target string   `json:"target,omitempty"` // default caller
	Calls  []script `json:"calls,omitempty"`
	AtOnce bool     `json:"at_once,omitempty"`
	Until  string   `json:"until,omitempty"` // a gate that it waits for before it ends
	File   string   `json:"file,omitempty"`  // that it hands to each callee, and gives back

	Asks []modelAsk `json:"asks,omitempty"` // of a model, before the calls or beside them
}

var callerFiles = map[string]string{
	"Dockerfile": "FROM " + dockertest.Image + "\nCMD [\"caller\"]\n",
	"tools.yaml": "- {name: again, capsule: caller}\n- {name: stranger, capsule: nobody}\n",
	"agent.yaml": "name: caller\nrecursion: 16\nlimits: {timeout: 2m}\n",
	"schema.json": `{
	  "input": {"type": "object", "properties": {
	    "mark": {"type": "string"}, "target": {"type": "string"}, "calls": {"type": "array"}, "at_once": {"type": "bool"}, "asks": {"type": "array"},
	    "until": {"type": "string"}, "file": {"type": "string"}, "doc": {"type": "string", "format": "file_path"}
	  }, "additionalProperties": false},
	  "output": {"type": "object", "properties": {"doc": {"type": "string", "format": "file_path"}}}
	}`,
}

// newCallFixture is a fixture with the unit "caller" beside "worker".
func newCallFixture(t *testing.T, change ...func(*settings)) *fixture {
	t.Helper()
	return newFixture(t, append([]func(*settings){func(o *settings) {
		for name, content := range callerFiles {
			write(t, filepath.Join(o.Sources[0], "caller", name), content)
		}
	}}, change...)...)
}

// callerProgram does what its script says, over the capsule API as a container sees it.
func (w *fixture) callerProgram(ctx context.Context, dir map[string]string, input []byte) int {
	var s script
	if json.Unmarshal(input, &s) != nil {
		return 99
	}
	w.mu.Lock()
	w.started[s.Mark]++
	w.mu.Unlock()
	api := apiClient(filepath.Join(dir["/run/aod"], "aod.sock"))
	var all sync.WaitGroup
	if s.AtOnce {
		all.Go(func() { w.askAll(ctx, api, s) })
	} else {
		w.askAll(ctx, api, s)
	}
	for i, call := range s.Calls {
		do := func() { w.call(ctx, api, dir, s, i, call) }
		if s.AtOnce {
			all.Go(do)
		} else {
			do()
		}
	}
	all.Wait()
	if s.Until != "" {
		select {
		case <-w.gate(s.Until):
		case <-ctx.Done():
			return 137
		}
	}
	if ctx.Err() != nil {
		return 137 // killed: it writes nothing any more
	}
	result := "{}"
	if s.File != "" {
		raw, err := os.ReadFile(filepath.Join(dir["/io/input"], s.File))
		if err != nil {
			raw = nil
		}
		_ = os.WriteFile(filepath.Join(dir["/io"], "output", s.File), append(raw, '+'), 0o600)
		result = fmt.Sprintf(`{"doc":%q}`, s.File)
	}
	_ = os.WriteFile(filepath.Join(dir["/io"], "output.json"), []byte(result), 0o600)
	return 0
}

func apiClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			dir, err := os.Open(filepath.Dir(socket)) // its path is too long for an address here
			if err != nil {
				return nil, err
			}
			defer dir.Close()
			return (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket)))
		},
	}}
}

// call makes one handoff as the Python client does: again with the same key until there is
// an answer.
func (w *fixture) call(ctx context.Context, api *http.Client, dir map[string]string, s script, i int, call script) {
	target := call.Target
	if target == "" {
		target = "caller"
	}
	call.Target = ""
	raw, _ := json.Marshal(call)
	var args map[string]any
	_ = json.Unmarshal(raw, &args)
	if s.File != "" {
		_ = os.WriteFile(filepath.Join(dir["/io/handoff/outgoing"], s.File), []byte("from "+s.Mark), 0o600)
		args["file"], args["doc"] = s.File, s.File
	}
	body, _ := json.Marshal(map[string]any{"target": target, "args": args})
	ask := asking{w: w, api: api, key: fmt.Sprintf("%s-%d", s.Mark, i)}
	var answer string
	if i%2 == 0 {
		answer = ask.until(ctx, http.MethodPost, "/handoff", body)
	} else { // as the Python client does
		var started struct {
			ID string `json:"handoff_id"`
		}
		answer = ask.until(ctx, http.MethodPost, "/handoff?wait=false", body)
		_, told, _ := strings.Cut(answer, " ")
		_ = json.Unmarshal([]byte(told), &started)
		for strings.HasPrefix(answer, "202 ") {
			answer = ask.until(ctx, http.MethodGet, "/handoff/"+started.ID+"?wait=30ms", nil)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[s.Mark] = append(w.answers[s.Mark], answer)
}

// asking is one call's way to ask.
type asking struct {
	w   *fixture
	api *http.Client
	key string
}

// until asks again until there is an answer, and returns it behind its status.
func (a asking) until(ctx context.Context, method, path string, body []byte) string {
	for ctx.Err() == nil {
		req, _ := http.NewRequestWithContext(ctx, method, "http://aod"+path, bytes.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		if a.key != "" {
			req.Header.Set("Idempotency-Key", a.key)
		}
		resp, err := a.api.Do(req)
		if err != nil {
			time.Sleep(5 * time.Millisecond) // the orchestrator is away
			continue
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
			time.Sleep(5 * time.Millisecond) // it is going away
			continue
		}
		return fmt.Sprintf("%d %s", resp.StatusCode, answer)
	}
	return ""
}

// chain is a script that calls itself n times, one below the other.
func chain(n int) script {
	s := script{Mark: fmt.Sprint("link", n)}
	if n > 1 {
		s.Calls = []script{chain(n - 1)}
	}
	if n == 5 { // one link calls in the other way
		s.Calls = append([]script{{Mark: "aside"}}, s.Calls...)
	}
	return s
}

func (w *fixture) submitScript(s script) string {
	w.t.Helper()
	return w.submitTo("caller", s)
}

func depthOf(calls []api.Call) int {
	deepest := 0
	for _, c := range calls {
		deepest = max(deepest, 1+depthOf(c.Calls))
	}
	return deepest
}

func TestHandoffs(t *testing.T) {
	t.Parallel()
	t.Run("a chain of ten with a single slot comes to its end", func(t *testing.T) {
		w := newCallFixture(t, func(o *settings) { o.Concurrency = 1 })
		record := w.await(w.submitScript(chain(10)))
		if record.Outcome != api.Success || depthOf(record.Calls) != 9 {
			t.Errorf("record %s", show(record))
		}
		keepsSchema(t, record)
		for n := 1; n <= 10; n++ {
			if got := w.starts(fmt.Sprint("link", n)); got != 1 {
				t.Errorf("link %d started %d times", n, got)
			}
		}
	})
	t.Run("twenty calls at once with four slots", func(t *testing.T) {
		w := newCallFixture(t)
		fan := script{Mark: "fan", AtOnce: true}
		for n := range 20 {
			fan.Calls = append(fan.Calls, script{Mark: fmt.Sprint("leaf", n)})
		}
		record := w.await(w.submitScript(fan))
		if record.Outcome != api.Success || len(record.Calls) != 20 {
			t.Errorf("record %s", show(record))
		}
		for _, answer := range w.answers["fan"] {
			if !strings.HasPrefix(answer, "200 ") || !strings.Contains(answer, `"success":true`) {
				t.Errorf("answer %s", answer)
			}
		}
	})
	t.Run("files go along and come back", func(t *testing.T) {
		w := newCallFixture(t)
		id := w.submitScript(script{Mark: "a", File: "doc.txt", Calls: []script{{Mark: "b"}}, Until: "look"})
		w.until(id, func(r api.Record) bool { return w.answered("a") == 1 })
		dir := filepath.Join(w.service.runPath(id), "1", "incoming")
		if raw, err := os.ReadFile(filepath.Join(dir, "doc.txt")); err != nil || string(raw) != "from a+" {
			t.Errorf("in incoming: %q, %v", raw, err)
		}
		w.open("look")
		w.await(id)
	})
	t.Run("what isn't granted or isn't there is refused", func(t *testing.T) {
		w := newCallFixture(t)
		w.await(w.submitScript(script{Mark: "a", Calls: []script{{Target: "worker"}, {Target: "nobody"}}}))
		got := w.answers["a"]
		if len(got) != 2 || !strings.HasPrefix(got[0], "403 ") || !strings.HasPrefix(got[1], "404 ") {
			t.Errorf("answers %q", got)
		}
	})
	t.Run("the operator may add to what is granted, and take from it", func(t *testing.T) {
		w := newCallFixture(t, func(o *settings) {
			o.Units = map[string]units.Settings{"caller": {Given: unit.Given{MayCall: []string{"worker"}, MayNotCall: []string{"caller"}}}}
		})
		w.await(w.submitScript(script{Mark: "a", Calls: []script{{Target: "worker", Mark: "x"}, {Mark: "b"}}}))
		got := w.answers["a"]
		if len(got) != 2 || !strings.HasPrefix(got[0], "200 ") || !strings.HasPrefix(got[1], "403 ") || w.starts("b") != 0 {
			t.Errorf("answers %q", got)
		}
	})
	t.Run("the end of a caller is the end of its calls", func(t *testing.T) {
		w := newCallFixture(t, func(o *settings) { o.Concurrency, o.MemoryBytes = 20, 1<<40 })
		tree := script{Mark: "root", AtOnce: true}
		for n := range 3 {
			branch := script{Mark: fmt.Sprint("branch", n), AtOnce: true}
			for m := range 4 {
				branch.Calls = append(branch.Calls, script{Mark: fmt.Sprint("leaf", n, m), Until: "never"})
			}
			tree.Calls = append(tree.Calls, branch)
		}
		id := w.submitScript(tree)
		within(t, func() bool { return w.programs() == 16 }, func() string { return fmt.Sprint(w.programs(), " run") })
		if _, err := w.service.Cancel(trusted.Context(t), id, "enough"); err != nil {
			t.Fatal(err)
		}
		record := w.await(id)
		if record.Outcome != api.WasCancelled || len(record.Calls) != 3 {
			t.Errorf("record %s", show(record))
		}
		for _, c := range record.Calls {
			if c.Outcome != api.WasCancelled {
				t.Errorf("call %+v", c)
			}
		}
		keepsSchema(t, record)
	})
	t.Run("calls that outlived their caller's container end with it", func(t *testing.T) {
		w := newCallFixture(t)
		id := w.submitScript(script{Mark: "p", Calls: []script{{Mark: "q", Until: "never"}}})
		within(t, func() bool { return w.starts("q") == 1 }, func() string { return "the call didn't start" })
		w.stop()
		if err := runtime.RemoveAll(trusted.Context(t), w.engine, id, w.service.home.Owner); err != nil {
			t.Fatal(err)
		}
		w.breaks("Probe", fault.New(fault.Unavailable, "the engine is away")) // so that the caller has no API yet
		w.start()
		if _, err := w.service.Cancel(trusted.Context(t), id, "enough"); err != nil {
			t.Fatal(err)
		}
		w.breaks("Probe", nil)
		if record := w.await(id); record.Outcome != api.WasCancelled || len(record.Calls) != 1 || record.Calls[0].Outcome != api.WasCancelled {
			t.Errorf("record %s", show(record))
		}
	})
	t.Run("a chain goes on over restarts, each link once", func(t *testing.T) {
		w := newCallFixture(t, func(o *settings) { o.Concurrency = 2 })
		s := script{Mark: "c1", Calls: []script{{Mark: "c2", Calls: []script{{Mark: "c3", Until: "go"}}}}}
		id := w.submitScript(s)
		within(t, func() bool { return w.starts("c3") == 1 }, func() string { return "the last link didn't start" })
		for range 3 {
			w.stop()
			w.start()
		}
		w.open("go")
		record := w.await(id)
		if record.Outcome != api.Success || depthOf(record.Calls) != 2 {
			t.Errorf("record %s", show(record))
		}
		for _, mark := range []string{"c1", "c2", "c3"} {
			if w.starts(mark) != 1 {
				t.Errorf("%s started %d times", mark, w.starts(mark))
			}
		}
	})
}

func (w *fixture) answered(mark string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.answers[mark])
}

// programs returns how many programs have begun.
func (w *fixture) programs() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, starts := range w.started {
		n += starts
	}
	return n
}

// Without a Service it is the same: the calls of a run live with it.
func TestHandoffsOfAnAttachedRun(t *testing.T) {
	t.Parallel()
	w := newCallFixture(t)
	dir := filepath.Join(w.opts.Sources[0], "caller")
	load := func(context.Context, string) (*unit.Unit, error) {
		c, err := capsule.Load(dir)
		if err != nil {
			return nil, err
		}
		return unit.Of(c), nil
	}
	data := t.TempDir()
	var latest atomic.Pointer[Local]
	runs := func(ctx context.Context, s script) api.Record {
		t.Helper()
		raw, _ := json.Marshal(s)
		input, err := contract.Decode(raw, contract.DefaultMaxBytes)
		if err != nil {
			t.Fatal(err)
		}
		u, err := load(ctx, "caller")
		if err != nil {
			t.Fatal(err)
		}
		o := newLocal(t, container.New(w.engine, container.Options{}), Options{Home: data})
		latest.Store(o)
		ended, err := o.Run(ctx, Request{Request: run.Request{Unit: u, Input: input}, OutDir: filepath.Join(t.TempDir(), "out"), Find: load})
		if err := errors.Join(err, o.Close()); err != nil {
			t.Fatal(err)
		}
		assertNothingLeft(t, w.engine, o)
		keepsSchema(t, ended.Record)
		return ended.Record
	}
	t.Run("a chain", func(t *testing.T) {
		if record := runs(trusted.Context(t), chain(5)); record.Outcome != api.Success || depthOf(record.Calls) != 4 {
			t.Errorf("record %s", show(record))
		}
	})
	t.Run("with files", func(t *testing.T) {
		record := runs(trusted.Context(t), script{Mark: "f", File: "doc.txt", Calls: []script{{Mark: "g"}}})
		if record.Outcome != api.Success || len(record.Calls) != 1 || record.Calls[0].Files != 1 || !strings.Contains(w.answers["f"][0], "/io/handoff/incoming/doc.txt") {
			t.Errorf("%q: %s", w.answers["f"], show(record))
		}
	})
	t.Run("with more at once than a server lets wait", func(t *testing.T) {
		fan := script{Mark: "wide", AtOnce: true}
		for n := range 130 {
			fan.Calls = append(fan.Calls, script{Mark: fmt.Sprint("wide", n), Until: "wide"})
		}
		go func() {
			defer w.open("wide")
			testkit.Within(testkit.Patience, func() bool {
				l := latest.Load()
				if l == nil {
					return false
				}
				_, waiting := l.queue.Counts()
				return waiting["caller"] > 120
			})
		}()
		record := runs(trusted.Context(t), fan)
		if record.Outcome != api.Success || len(record.Calls) != 130 {
			t.Fatalf("%d calls: %s", len(record.Calls), record.Outcome)
		}
		for _, call := range record.Calls {
			if call.Outcome != api.Success {
				t.Errorf("call %s: %s %s", call.ID, call.Outcome, call.ErrorKind)
			}
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(trusted.Context(t))
		go func() {
			defer cancel()
			testkit.Within(testkit.Patience, func() bool { return w.starts("y") > 0 })
		}()
		record := runs(ctx, script{Mark: "x", Calls: []script{{Mark: "y", Until: "never"}}})
		if record.Outcome != api.WasCancelled || len(record.Calls) != 1 || record.Calls[0].Outcome != api.WasCancelled {
			t.Errorf("record %s", show(record))
		}
	})
}
