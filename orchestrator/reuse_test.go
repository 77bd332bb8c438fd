package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// errand is the input of the unit "several".
type errand struct {
	Mark  string `json:"mark"`
	Until string `json:"until,omitempty"` // a gate that it waits for before its result
	After string `json:"after,omitempty"` // a gate that it waits for when that is posted
	Exit  int    `json:"exit,omitempty"`
	Bad   bool   `json:"bad,omitempty"`  // its result breaks the contract
	Mute  bool   `json:"mute,omitempty"` // it doesn't end its part of the log
	Link  bool   `json:"link,omitempty"` // it rebuilds /io
	Chat  bool   `json:"chat,omitempty"` // it writes when its run is over
	Post  bool   `json:"post,omitempty"` // its result, also where it isn't told that it may
}

const severalSchema = `{"input": {"type": "object"}, "output": {"type": "object", "properties": {
  "mark": {"type": "string"}, "count": {"type": "int"}, "seen": {"type": "list"}}, "required": ["count"]}}`

// newSeveral is a fixture with the unit "several", whose containers serve so many runs each. Its
// program is loaded and waits for the first.
func newSeveral(t *testing.T, agent string) *fixture {
	t.Helper()
	w := newFixture(t, func(o *settings) {
		for name, content := range map[string]string{
			"Dockerfile": "FROM " + dockertest.Image + "\nCMD [\"several\"]\n", "tools.yaml": "[]\n", "schema.json": severalSchema,
			"agent.yaml": "name: several\nlimits: {timeout: 20s}\nwarm: 1\n" + agent,
		} {
			write(t, filepath.Join(o.Sources[0], "several", name), content)
		}
		o.Containers.Pool.Size = 8
	})
	if record := w.await(w.send(errand{Mark: "cold"})); record.Outcome != api.Success || record.Container.Served != 0 {
		t.Fatal(show(record))
	}
	w.lone()
	return w
}

func (w *fixture) send(e errand) string {
	w.t.Helper()
	return w.submitTo("several", e)
}

// shelved are the loaded sandboxes that wait for the unit's runs.
func (w *fixture) shelved() (ids []string) {
	for _, pooled := range w.service.Figures.Pool().Units {
		for _, waiting := range pooled.Waiting {
			if pooled.Unit == "several" && waiting.Loaded {
				ids = append(ids, waiting.Container)
			}
		}
	}
	return ids
}

// lone returns when one sandbox waits, and sees to it that no other comes.
func (w *fixture) lone() string {
	w.t.Helper()
	w.refills(true)
	within(w.t, func() bool { return len(w.shelved()) > 0 }, func() string { return "no sandbox waits" })
	w.refills(false)
	within(w.t, func() bool { return w.service.Figures.Pool().Units[0].Starting == 0 }, func() string { return "another one is being started" })
	return w.shelved()[0]
}

// back waits until a sandbox waits again.
func (w *fixture) back() {
	w.t.Helper()
	within(w.t, func() bool { return len(w.shelved()) == 1 }, func() string { return "it didn't come back" })
}

// begun returns when a run's program has its errand, and has left what it leaves. A record tells that it
// runs before that, since its sandbox was loaded ahead.
func (w *fixture) begun(id, mark string) {
	w.t.Helper()
	w.until(id, running)
	within(w.t, func() bool {
		left, _ := filepath.Glob(filepath.Join(w.opts.Home, "runs", id, "1", "io", "output", "left-by-"+mark))
		return len(left) == 1
	}, func() string { return "the program doesn't begin" })
}

// refills lets the pool start sandboxes, or not.
func (w *fixture) refills(may bool) {
	until := time.Time{}
	if !may {
		until = time.Now().Add(time.Hour)
	}
	w.inContainers.Pool().Pause("several", until)
}

// containers counts what the engine has.
func (w *fixture) containers() int {
	refs, err := w.engine.ContainersByLabel(trusted.Context(w.t), map[string]string{runtime.LabelRun: ""})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(refs)
}

// text is a run's log.
func (w *fixture) text(id string) (lines []string) {
	for entry, err := range w.service.Feed.Log(trusted.Context(w.t), id, api.LogFilter{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		lines = append(lines, entry.Text)
	}
	slices.Sort(lines) // the two streams come as they like
	return lines
}

// told is the output of a run of "several".
type told struct {
	Mark  string   `json:"mark"`
	Count int      `json:"count"`
	Seen  []string `json:"seen"`
}

func toldBy(t *testing.T, r api.Record) (out told) {
	t.Helper()
	if r.Outcome != api.Success || json.Unmarshal(r.Output, &out) != nil {
		t.Fatal(show(r))
	}
	return out
}

// severalProgram serves one run after the other, for as long as it may, and leaves something
// everywhere.
func (w *fixture) severalProgram(ctx context.Context, dir map[string]string, stdout, stderr io.Writer) int {
	api := apiAt(dir["/run/aod"])
	for count := 1; ; count++ {
		run, more := api.ask(ctx)
		var e errand
		raw, err := os.ReadFile(filepath.Join(dir["/io"], "input.json"))
		if err != nil || json.Unmarshal(raw, &e) != nil {
			return 99
		}
		out := told{Mark: e.Mark, Count: count, Seen: w.leave(dir, e)}
		fmt.Fprintln(stdout, "out of "+e.Mark)
		fmt.Fprint(stderr, "err of "+e.Mark)
		if e.Until != "" && !w.passes(ctx, e.Until) {
			return 137
		}
		result, _ := json.Marshal(out)
		if e.Bad {
			result = []byte(`{"mark": 1}`)
		}
		if !more && !e.Post || e.Exit != 0 {
			_ = os.WriteFile(filepath.Join(dir["/io"], "output.json"), result, 0o600)
			return e.Exit
		}
		if !e.Mute {
			fmt.Fprintln(stdout, capsuleapi.EndLine(run))
			fmt.Fprintln(stderr, capsuleapi.EndLine(run))
		}
		_ = os.Remove(filepath.Join(dir["/io"], "input.json"))
		if !api.post(ctx, result) { // as the library does
			_ = os.WriteFile(filepath.Join(dir["/io"], "output.json"), result, 0o600)
			return 0
		}
		if e.Chat {
			fmt.Fprintln(stdout, "nobody's")
		}
		if e.After != "" && !w.passes(ctx, e.After) {
			return 137
		}
	}
}

func (w *fixture) passes(ctx context.Context, gate string) bool {
	select {
	case <-w.gate(gate):
		return true
	case <-ctx.Done():
		return false
	}
}

// leave returns what an earlier run has left, and leaves as much itself.
func (w *fixture) leave(dir map[string]string, e errand) (seen []string) {
	seen = []string{}
	for _, target := range []string{"/io", "/io/input", "/workspace", "/io/handoff/outgoing", "/io/handoff/incoming"} {
		entries, _ := os.ReadDir(dir[target])
		for _, entry := range entries {
			if target != "/io" || !slices.Contains([]string{"input", "output", "handoff", "input.json"}, entry.Name()) {
				seen = append(seen, target+"/"+entry.Name())
			}
		}
	}
	for _, at := range []string{dir["/io"], dir["/workspace"], dir["/io/handoff/outgoing"], filepath.Join(dir["/io"], "output")} {
		_ = os.WriteFile(filepath.Join(at, "left-by-"+e.Mark), []byte("of "+e.Mark), 0o600)
	}
	if e.Link {
		_ = os.Rename(filepath.Join(dir["/io"], "handoff"), filepath.Join(dir["/io"], "elsewhere"))
		_ = os.Symlink("elsewhere", filepath.Join(dir["/io"], "handoff"))
	}
	return seen
}

// programAPI is the capsule API as a program has it.
type programAPI struct{ client http.Client }

func apiAt(dir string) programAPI {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(dir, "aod.sock"))
	}
	return programAPI{http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// ask waits for a run. It returns its id and whether others may follow.
func (a programAPI) ask(ctx context.Context) (run string, more bool) {
	for ctx.Err() == nil {
		resp, err := a.do(ctx, http.MethodGet, "/invocation", "")
		if err == nil && resp.StatusCode == http.StatusOK {
			n, _ := strconv.Atoi(resp.Header.Get("AOD-Remaining"))
			return resp.Header.Get("AOD-Run"), n > 0
		}
		time.Sleep(5 * time.Millisecond) // as the library does
	}
	return "", false
}

func (a programAPI) post(ctx context.Context, result []byte) bool {
	resp, err := a.do(ctx, http.MethodPost, "/invocation/result", string(result))
	return err == nil && resp.StatusCode == http.StatusNoContent
}

func (a programAPI) do(ctx context.Context, method, target, body string) (*http.Response, error) {
	req, _ := http.NewRequestWithContext(ctx, method, "http://aod"+target, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return resp, err
}

func TestOneContainerServesAsManyRunsAsItsUnitSays(t *testing.T) {
	t.Parallel()
	w := newSeveral(t, "reuse: 3\n")
	first := w.lone()
	var runs []string
	for n := 1; n <= 3; n++ {
		mark := fmt.Sprint("run", n)
		id := w.send(errand{Mark: mark, Chat: true})
		record := w.await(id)
		if diff := cmp.Diff(told{mark, n, []string{}}, toldBy(t, record)); diff != "" {
			t.Error(diff)
		}
		if record.Container.ID != first || record.Container.Served != n || record.Usage != nil || len(record.Warnings) > 0 {
			t.Error(show(record))
		}
		if waits := len(w.shelved()); waits != 1 && n < 3 || waits != 0 && n == 3 {
			t.Errorf("after run %d, %d wait", n, waits)
		}
		runs = append(runs, id)
	}
	for n, id := range runs {
		mark := fmt.Sprint("run", n+1)
		if diff := cmp.Diff([]string{"err of " + mark, "out of " + mark}, w.text(id)); diff != "" {
			t.Error(diff)
		}
		record, _ := w.service.Runs.Get(trusted.Context(t), id)
		if len(record.Files) != 1 || w.content(record) != "of "+mark {
			t.Error(show(record))
		}
		if record.Log.Bytes != int64(len("out of run1\nerr of run1")) {
			t.Error(show(record))
		}
	}
	w.lone()
	if record := w.await(w.send(errand{Mark: "run4"})); toldBy(t, record).Count != 1 || record.Container.ID == first {
		t.Error(show(record))
	}
}

func TestRunsAtOnceHaveContainersOfTheirOwnForAsLongAsTheyLast(t *testing.T) {
	t.Parallel()
	w := newSeveral(t, "reuse: 4\n")
	w.refills(true)
	const callers, calls = 3, 12
	records := make([][]api.Record, callers)
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			for i := range calls {
				records[n] = append(records[n], w.await(w.send(errand{Mark: fmt.Sprint("run", n*calls+i), Chat: i%3 == 0})))
			}
		})
	}
	all.Wait()
	served := map[string]map[int]bool{} // by container
	for n, record := range slices.Concat(records...) {
		out, mark, at := toldBy(t, record), fmt.Sprint("run", n), record.Container
		if out.Mark != mark || len(out.Seen) > 0 || out.Count != max(at.Served, 1) || at.Served > 4 || served[at.ID][at.Served] {
			t.Errorf("%+v of %+v", out, at)
		}
		if diff := cmp.Diff([]string{"err of " + mark, "out of " + mark}, w.text(record.ID)); diff != "" || w.content(record) != "of "+mark {
			t.Error(diff)
		}
		if served[at.ID] == nil {
			served[at.ID] = map[int]bool{}
		}
		served[at.ID][at.Served] = true
	}
	if len(served) == callers*calls {
		t.Error("none was used again")
	}
	t.Logf("%d runs in %d containers", callers*calls, len(served))
}

// content is that of a run's one file.
func (w *fixture) content(r api.Record) string {
	raw, err := os.ReadFile(w.service.Runs.FilePath(r.ID, r.Files[0].Name))
	if err != nil {
		w.t.Error(err)
	}
	return string(raw)
}

func TestAContainerWhoseRunDidNotEndWellServesNoOther(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		errand  errand
		outcome api.Outcome
	}{
		{"one that failed", errand{Mark: "a", Exit: 3}, api.CapsuleError},
		{"one whose posted result breaks the contract", errand{Mark: "a", Bad: true}, api.ContractViolation},
		{"one that was cancelled", errand{Mark: "a", Until: "never"}, api.WasCancelled},
		{"one that took too long", errand{Mark: "a", Until: "never"}, api.TimedOut},
		{"one that did well, and doesn't end its log", errand{Mark: "a", Mute: true}, api.Success},
		{"one that did well, and rebuilt its directories", errand{Mark: "a", Link: true}, api.Success},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newSeveral(t, "reuse: 3\n")
			raw, _ := json.Marshal(c.errand)
			submission := spool.Submission{Unit: "several", Input: raw}
			if c.outcome == api.TimedOut {
				submission.Timeout = 300 * time.Millisecond
			}
			accepted, _, err := w.service.Submit(trusted.Context(t), submission)
			if err != nil {
				t.Fatal(err)
			}
			if c.outcome == api.WasCancelled {
				w.until(accepted.ID, running)
				if _, err := w.service.Cancel(trusted.Context(t), accepted.ID, ""); err != nil {
					t.Fatal(err)
				}
			}
			record := w.await(accepted.ID)
			if record.Outcome != c.outcome || record.Container.Served != 1 || len(w.shelved()) != 0 || w.containers() != 0 {
				t.Errorf("%d wait, %d are there: %s", len(w.shelved()), w.containers(), show(record))
			}
			if out := toldBy(t, w.await(w.send(errand{Mark: "next"}))); out.Count != 1 {
				t.Errorf("%+v", out)
			}
		})
	}
}

func TestWithoutReuseAPostedResultIsNoEnd(t *testing.T) {
	t.Parallel()
	w := newSeveral(t, "")
	id := w.send(errand{Mark: "a", Post: true, After: "go"})
	within(t, func() bool {
		posted, _ := filepath.Glob(filepath.Join(w.opts.Home, "runs", id, "1", "posted.json"))
		return len(posted) == 1
	}, func() string { return "nothing was posted" })
	if record := w.until(id, running); record.Container.Served != 0 {
		t.Error(show(record))
	}
	if _, err := w.service.Cancel(trusted.Context(t), id, ""); err != nil {
		t.Fatal(err)
	}
	if record := w.await(id); record.Outcome != api.WasCancelled {
		t.Error(show(record))
	}
}

func TestReuseSurvivesItsServer(t *testing.T) {
	t.Parallel()
	t.Run("in a later run of a container", func(t *testing.T) {
		w := newSeveral(t, "reuse: 5\n")
		toldBy(t, w.await(w.send(errand{Mark: "one"})))
		w.back()
		id := w.send(errand{Mark: "two", Until: "go"})
		w.begun(id, "two")
		w.stop()
		w.start()
		w.open("go")
		record := w.await(id)
		if out := toldBy(t, record); out.Count != 2 || record.Container.Served != 2 || len(record.Files) != 1 {
			t.Error(show(record))
		}
		if diff := cmp.Diff([]string{"err of two", "out of two"}, w.text(id)); diff != "" {
			t.Error(diff)
		}
		w.refills(false)
		if n := len(w.shelved()); n != 0 {
			t.Errorf("%d wait: what was adopted is not used again", n)
		}
	})
	t.Run("between a posted result and the end of its run", func(t *testing.T) {
		w := newSeveral(t, "reuse: 5\n")
		id := w.send(errand{Mark: "one", Until: "never"})
		w.begun(id, "one")
		w.stop()
		write(t, filepath.Join(w.opts.Home, "runs", id, "1", "posted.json"), `{"mark": "posted", "count": 1}`)
		w.start()
		record := w.await(id)
		if out := toldBy(t, record); out.Mark != "posted" || len(record.Files) != 1 {
			t.Error(show(record))
		}
	})
	t.Run("when nobody takes a result", func(t *testing.T) {
		w := newSeveral(t, "reuse: 5\n")
		id := w.send(errand{Mark: "one", Until: "go"})
		w.begun(id, "one")
		w.stop()
		w.open("go")
		within(t, func() bool {
			left, _ := filepath.Glob(filepath.Join(w.opts.Home, "runs", id, "1", "io", "output.json"))
			return len(left) == 1
		}, func() string { return "nothing was written" })
		w.start()
		record := w.await(id)
		if diff := cmp.Diff([]string{"err of one", "out of one"}, w.text(id)); diff != "" || toldBy(t, record).Count != 1 {
			t.Error(diff, show(record))
		}
	})
	t.Run("while a container waits again", func(t *testing.T) {
		w := newSeveral(t, "reuse: 5\n")
		first := w.await(w.send(errand{Mark: "one"}))
		toldBy(t, first)
		w.back()
		w.stop()
		w.start()
		record := w.await(w.send(errand{Mark: "two"}))
		if out := toldBy(t, record); out.Count != 1 || record.Container.ID == first.Container.ID {
			t.Error(show(record))
		}
	})
}

// A run that comes when the sandbox of the one before is not back yet would start a container
// of its own, and each one after it likewise.
func TestABacklogIsServedByWhatIsWarm(t *testing.T) {
	t.Parallel()
	w := newSeveral(t, "reuse: 20\nconcurrency: 1\n")
	const runs = 12
	ids := make([]string, runs)
	for i := range ids {
		ids[i] = w.send(errand{Mark: strconv.Itoa(i)})
	}
	containers := map[string]int{}
	for _, id := range ids {
		record := w.await(id)
		if record.Outcome != api.Success {
			t.Fatal(show(record))
		}
		containers[record.Container.ID]++
	}
	if len(containers) != 1 {
		t.Errorf("%d runs in a queue were served by %d containers: %v", runs, len(containers), containers)
	}
}
