package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestAPeakOfFilesIsNoMemoryOfTheProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		report initreport.Report
		want   int64
	}{
		{"below the limit", initreport.Report{PeakMemoryBytes: 90, MaxRSSBytes: 50}, 90},
		{"at the limit, and nothing was killed", initreport.Report{PeakMemoryBytes: 100, MaxRSSBytes: 50}, 50},
		{"at the limit, and something was killed", initreport.Report{PeakMemoryBytes: 100, MaxRSSBytes: 50, OOMKills: 1}, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := peakMemory(c.report, 100); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestWhatNobodyCountedProvesNothing(t *testing.T) {
	t.Parallel()
	run := observedRun(runtime.End{Reported: true, Report: initreport.Report{NetAttempts: initreport.NotCounted, FilesLeft: 3}}, runtime.Limits{})
	if run.NetworkAttempts != nil || run.FilesWritten == nil || *run.FilesWritten != 3 {
		t.Errorf("%+v", run)
	}
	if run := observedRun(runtime.End{}, runtime.Limits{}); run.NetworkAttempts != nil || run.FilesWritten != nil || run.PeakMemory != nil {
		t.Errorf("%+v", run)
	}
}

func TestATrialShowsWhatAUnitDoes(t *testing.T) {
	t.Parallel()
	b, f := newUnit(t, func(s started) int {
		raw, err := os.ReadFile(s.stdin)
		if err != nil {
			return 99
		}
		fmt.Fprintln(s.stderr, "of stderr")
		fmt.Fprintln(s.stdout, "of nobody")
		s.prints(fmt.Sprintf("%s %v %v", raw, s.args, slices.Contains(s.env, "A=b")))
		return 5
	})
	var seenLines lines
	seen, err := b.kind.trials.try(t.Context(), b.unit, Trial{Stdin: strings.NewReader("x\x00y"), Args: []string{"--unknown"}, Env: []string{"A=b"}, MemoryBytes: 9 << 20, Observe: seenLines.observe})
	if err != nil {
		t.Fatal(err)
	}
	if seen.ExitCode != 5 || string(seen.Stdout) != "x\x00y [--unknown] true" || string(seen.StderrTail) != "of stderr\n" || seen.StderrBytes != 10 || seen.StdinBytes != 3 || seen.MemoryLimit != 9<<20 || seen.TimedOut {
		t.Errorf("%+v: %q", seen, seen.Stdout)
	}
	if len(seenLines.all()) != 2 || f.asked() != 0 {
		t.Errorf("lines %q, asked %d times", seenLines.all(), f.asked())
	}
	b.nothingLeft()
	if left := below(t, b.home.Runs); left != "" {
		t.Errorf("left are %s", left)
	}
}

func TestATrialIsStarted(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "tiny.gguf")
	must(os.WriteFile(at, []byte("weights"), 0o600))
	var spec runtime.ContainerSpec
	b, _ := newUnit(t, func(s started) int {
		spec = s.dirs
		if s.stdin != "" {
			if info, err := os.Stat(s.stdin); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
				return 77
			}
			return 78
		}
		return 0
	})
	for _, c := range []struct {
		name  string
		trial Trial
		exit  int
	}{
		{"without a stdin", Trial{}, 0},
		{"with one that stays open", Trial{Open: true}, 77},
		{"with one that is given, rather", Trial{Open: true, Stdin: strings.NewReader("x")}, 78},
		{"with a model", Trial{ModelPath: at}, 0},
	} {
		seen, err := b.kind.trials.try(t.Context(), b.unit, c.trial)
		if err != nil || seen.ExitCode != c.exit || spec.Network != "none" {
			t.Errorf("%s: %+v, %v", c.name, seen, err)
		}
		if (mounted(spec, ModelPathInside(at)) != "") != (c.trial.ModelPath != "") {
			t.Errorf("%s: mounts %+v", c.name, spec.Mounts)
		}
	}
}

func TestATrialThatEndsBadly(t *testing.T) {
	t.Parallel()
	ends := func(code int, change func(*initreport.Report)) enginetest.Program {
		return func(_ context.Context, spec runtime.ContainerSpec, _, _ io.Writer) int {
			if change != nil {
				must(os.WriteFile(mounted(spec, initreport.Path), report(code, change), 0o600))
			}
			return code
		}
	}
	t.Run("out of memory", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		b.engine.Program = ends(137, func(r *initreport.Report) { r.Signal, r.OOMKills = 9, 1 })
		if seen, err := b.kind.trials.try(t.Context(), b.unit, Trial{}); err != nil || !seen.OutOfMemory || seen.Signal != 9 || *seen.PeakMemory != 5<<20 {
			t.Errorf("%+v, %v", seen, err)
		}
	})
	t.Run("before it begins", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		b.engine.Program = ends(127, func(r *initreport.Report) { r.StartError = "no such file" })
		if seen, err := b.kind.trials.try(t.Context(), b.unit, Trial{}); err != nil || seen.StartError != "no such file" {
			t.Errorf("%+v, %v", seen, err)
		}
	})
	t.Run("after its time", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		b.runsUntilStopped()
		seen, err := b.kind.trials.try(t.Context(), b.unit, Trial{Timeout: 20 * time.Millisecond})
		if err != nil || !seen.TimedOut || seen.ExitCode != 143 {
			t.Errorf("%+v, %v", seen, err)
		}
	})
	t.Run("by somebody else's hand, which shows nothing of the unit", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		b.engine.Program = ends(137, nil)
		if _, err := b.kind.trials.try(t.Context(), b.unit, Trial{}); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "from outside") {
			t.Errorf("error %v", err)
		}
		b.nothingLeft()
	})
	t.Run("with its caller", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		b.runs(func(ctx context.Context, spec runtime.ContainerSpec, out, err io.Writer) int {
			cancel(errBroken)
			return waits(ctx, spec, out, err)
		})
		if _, err := b.kind.trials.try(ctx, b.unit, Trial{}); !errors.Is(err, errBroken) {
			t.Errorf("error %v", err)
		}
		b.nothingLeft()
		if left := below(t, b.home.Runs); left != "" {
			t.Errorf("left are %s", left)
		}
	})
	t.Run("when its input can't be read", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		if _, err := b.kind.trials.try(t.Context(), b.unit, Trial{Stdin: io.MultiReader(strings.NewReader("x"), broken{})}); !fault.Is(err, fault.Input) {
			t.Errorf("error %v", err)
		}
		if left := below(t, b.home.Runs); left != "" || b.calls() != "" {
			t.Errorf("left are %q, asked for %s", left, b.calls())
		}
	})
	t.Run("with a container that stays: the next sweep finds it by its directory", func(t *testing.T) {
		b, _ := newUnit(t, func(s started) int { return s.prints("{}") })
		b.breaks("Remove", errAway)
		if _, err := b.kind.trials.try(t.Context(), b.unit, Trial{}); !errors.Is(err, runtime.ErrLeftBehind) {
			t.Errorf("error %v", err)
		}
		b.breaks("Remove", nil)
		entries, err := os.ReadDir(b.home.Runs)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%v, %v", entries, err)
		}
		if err := b.kind.SweepRun(t.Context(), entries[0].Name()); err != nil {
			t.Error(err)
		}
		b.nothingLeft()
	})
}

func TestALogThatWasCutHasMoreBytesThanItsLimit(t *testing.T) {
	t.Parallel()
	text := &stderrText{limit: 10}
	text.add(runtime.LogLine{Stream: "stdout", Text: "none of it"})
	text.add(runtime.LogLine{Stream: "stderr", Text: "abc"})
	for cut, want := range map[bool]int64{false: 4, true: 11} {
		if got, size := text.bytes(cut); string(got) != "abc\n" || size != want {
			t.Errorf("cut %v: %q, %d bytes", cut, got, size)
		}
	}
}

// broken can't be read.
type broken struct{}

var errBroken = errors.New("broken")

func (broken) Read([]byte) (int, error) { return 0, errBroken }
