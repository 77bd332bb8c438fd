package container

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// serves is a program that serves one run after the other, as the library does. Each leaves
// something, and finds what others left.
func serves(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	dir, inside := mounted(spec, "/io"), socket(mounted(spec, "/run/aod"))
	var kept *os.File
	defer func() { _ = kept.Close() }()
	for {
		id, more := "", -1 // the last run is told neither
		for more < 0 {
			if ctx.Err() != nil {
				return 137
			}
			if answer := do(ctx, inside, http.MethodGet, "/invocation", ""); answer != nil && answer.StatusCode == http.StatusOK {
				id = answer.Header.Get("AOD-Run")
				more, _ = strconv.Atoi(answer.Header.Get("AOD-Remaining"))
			} else {
				time.Sleep(time.Millisecond) // as the library does
			}
		}
		raw, err := os.ReadFile(filepath.Join(dir, "input.json"))
		if err != nil {
			return 99
		}
		if _, err := os.Stat(filepath.Join(dir, "output", "left")); err == nil {
			return 98
		}
		put(dir, "output/left", string(raw))
		if kept != nil { // of the run before
			_, _ = kept.WriteString("too late")
			_ = kept.Close()
		}
		kept, _ = os.OpenFile(filepath.Join(dir, "output", "left"), os.O_WRONLY|os.O_TRUNC, 0o600)
		_, _ = kept.Write(raw)
		fmt.Fprintf(stdout, "ran %s\n", raw)
		if more == 0 {
			put(dir, "output.json", string(raw))
			return 0
		}
		fmt.Fprintln(stdout, capsuleapi.EndLine(id))
		fmt.Fprintln(stderr, capsuleapi.EndLine(id))
		if answer := do(ctx, inside, http.MethodPost, "/invocation/result", string(raw)); answer == nil || answer.StatusCode != http.StatusNoContent {
			return 97
		}
	}
}

func do(ctx context.Context, inside *http.Client, method, path, body string) *http.Response {
	req, err := http.NewRequestWithContext(ctx, method, "http://aod"+path, strings.NewReader(body))
	must(err)
	req.Header.Set("Content-Type", "application/json")
	answer, err := inside.Do(req)
	if err != nil {
		return nil
	}
	_ = answer.Body.Close()
	return answer
}

func TestASandboxServesOneRunAfterTheOther(t *testing.T) {
	t.Parallel()
	s := newShelf(t, serves, true, "reuse: 3\n")
	for n := 1; n <= 3; n++ {
		id := fmt.Sprintf("r%d", n)
		input := fmt.Sprintf(`{"n":%d}`, n)
		x := s.executionOf(id, input)
		var log lines
		x.run.LedBy(alone{}, log.observe)
		s.succeeds(x)
		if x.run.Record.Container.ID != s.waits.Runtime.ID() || x.run.Record.Container.Served != n || x.attempt.origin != loaded {
			t.Fatalf("run %d: container %+v", n, x.run.Record.Container)
		}
		x.run.Record.Outcome = api.Success // as the loop does
		last := n == 3
		if (x.attempt.ending == posted) == last {
			t.Errorf("run %d: it ended as %v", n, x.attempt.ending)
		}
		if !last { // Settle waits for that, but no longer than seconds
			testkit.Eventually(t, "it waits for another run", func() bool { return s.waits.Ready() && pause.Over(x.attempt.log.ShareEnded()) })
		}
		x.Settle(t.Context())
		if got := strings.Join(log.all(), "\n"); got != "ran "+input {
			t.Errorf("run %d: its log is %q", n, got)
		}
		if raw, err := os.ReadFile(filepath.Join(x.run.OutputDir(), "left")); string(raw) != input {
			t.Errorf("run %d: its file is %q, %v", n, raw, err)
		}
		if _, has := x.saved.Sandboxes[1]; has && n < 3 {
			t.Errorf("run %d: what is stored says that it has the sandbox", n)
		}
		if err := x.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		if back := len(s.kind.pool.Waiting()); (back == 1) != (n < 3) {
			t.Errorf("after run %d wait %d", n, back)
		}
	}
	for n := 1; n <= 3; n++ { // the program had it open for longer than its run
		raw, err := os.ReadFile(filepath.Join(s.home.Runs, fmt.Sprintf("r%d/output/left", n)))
		if want := fmt.Sprintf(`{"n":%d}`, n); string(raw) != want {
			t.Errorf("the file of run %d is %q, %v", n, raw, err)
		}
	}
	s.nothingLeft()
	s.gone()
}

// Any doubt discards a sandbox, rather than give it to another run.
func TestASandboxThatServesNoOther(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		input   string
		outcome api.Outcome
		before  func(*shelf, *execution) // it is given back
	}{
		{"its run's result breaks the contract", `{"n":"x"}`, api.ContractViolation, func(*shelf, *execution) {}},
		{"it ends", `{"n":7}`, api.Success, func(s *shelf, _ *execution) { s.dies() }},
		{"its directory can't be emptied", `{"n":7}`, api.Success, func(_ *shelf, x *execution) { must(os.RemoveAll(filepath.Join(x.run.AttemptDir(), "io"))) }},
		{"its place is taken", `{"n":7}`, api.Success, func(s *shelf, _ *execution) { put(s.kind.machine.poolDir(), s.waits.ID+"/x", "") }},
		{"the server ends", `{"n":7}`, api.Success, func(s *shelf, _ *execution) { s.empty() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t, serves, true, "reuse: 3\n")
			x := s.executionOf("r1", c.input)
			got, err := x.Attempt(t.Context())
			if err != nil || got.Outcome != c.outcome || x.attempt.ending != posted {
				t.Fatalf("%+v %+v, %v", got, got.Failure, err)
			}
			x.run.Record.Outcome = got.Outcome // as the loop does
			c.before(s, x)
			s.ends(x)
			if n := len(s.kind.pool.Waiting()); n != 0 {
				t.Errorf("%d wait for other runs", n)
			}
			if s.kind.pool.Has(s.waits.ID) {
				t.Error("the pool still knows it")
			}
		})
	}
}

// TestAPostedResultOutlivesItsProcess is of a process that dies between taking a result and
// storing it, while the program waits for another run.
func TestAPostedResultOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	s := newShelf(t, serves, true, "reuse: 3\n")
	x := s.executionOf("r1", `{"n":7}`)
	x.run.Durable = true
	first, err := x.Attempt(t.Context())
	if err != nil || first.Outcome != api.Success || x.attempt.ending != posted {
		t.Fatalf("%+v, %v", first, err)
	}
	x.Release()
	s.empty()
	next := s.resumed(x)
	again, err := next.Resume(t.Context())
	if err != nil || next.attempt.ending != posted || next.run.Record.Container.ID != s.waits.Runtime.ID() {
		t.Fatalf("%+v, %v", again, err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	next.run.Record.Outcome = api.Success
	s.ends(next)
	s.gone()
}
