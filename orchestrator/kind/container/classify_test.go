package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// reports is a program with a good result, whose container ends with a code and leaves a report.
func reports(code int, raw []byte) enginetest.Program {
	return func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		succeed(ctx, spec, stdout, stderr)
		_ = os.WriteFile(mounted(spec, initreport.Path), raw, 0o600)
		return code
	}
}

// report is that of an init whose program ended with a code, but for what is changed.
func report(code int, change func(*initreport.Report)) []byte {
	r := initreport.Report{Version: initreport.Version, ExitCode: code, Source: initreport.Cgroup2, CPUSeconds: 1.5, PeakMemoryBytes: 5 << 20}
	if change != nil {
		change(&r)
	}
	return r.Append(nil)
}

// wants compares an end with what was expected of it. "" expects no failure.
func wants(t *testing.T, got run.Result, outcome api.Outcome, exit int, kind, says string) {
	t.Helper()
	if got.Outcome != outcome || got.ExitCode == nil || *got.ExitCode != exit {
		t.Errorf("it ended as %s (exit code %v), want %s with %d: %+v", got.Outcome, got.ExitCode, outcome, exit, got.Failure)
		return
	}
	switch f := got.Failure; {
	case kind == "" && f != nil:
		t.Errorf("a success has the failure %+v", f)
	case kind != "" && (f == nil || f.Kind != kind || !strings.Contains(f.Message, says)):
		t.Errorf("failure %+v, want %s that says %q", f, kind, says)
	}
	if (got.State == api.Completed) != (outcome == api.Success) || (got.Output != nil) != (outcome == api.Success) {
		t.Errorf("state %s with the output %s", got.State, got.Output)
	}
}

// wantsWarnings compares the warnings of a run with what they should say. "" expects none.
func wantsWarnings(t *testing.T, x *execution, says string) {
	t.Helper()
	if got := strings.Join(x.run.Record.Warnings, "\n"); (says == "") != (got == "") || !strings.Contains(got, says) {
		t.Errorf("warnings %q", got)
	}
}

// categories say whether another attempt can help.
var categories = map[api.Outcome]api.Category{
	api.SystemError: api.CategoryTransient, api.StartFailed: api.CategoryPermanent,
	api.CapsuleError: api.CategoryAgent, api.OutOfMemory: api.CategoryAgent, api.LimitExceeded: api.CategoryAgent,
}

func TestHowAContainerEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		program enginetest.Program
		outcome api.Outcome
		exit    int
		kind    string
		says    string
		warns   string
	}{
		{"well", reports(0, report(0, nil)), api.Success, 0, "", "", ""},
		{"well, without a word of its init", reports(0, nil), api.Success, 0, "", "", ""},
		{"well, before its init had written the report", reports(0, []byte(initreport.Begun)), api.Success, 0, "", "", ""},
		{"by itself", reports(3, report(3, nil)), api.CapsuleError, 3, "capsule_error", "exit code 3", ""},
		{"by a signal of its own", reports(139, report(139, func(r *initreport.Report) { r.Signal = 11 })), api.CapsuleError, 139, "capsule_error", "exit code 139", ""},
		{"when it killed itself", reports(137, report(137, func(r *initreport.Report) { r.Signal = 9 })), api.CapsuleError, 137, "capsule_error", "exit code 137", ""},
		{"without memory, as the engine says", reports(enginetest.OOMKilled, nil), api.OutOfMemory, 137, "memory_limit", "memory limit of 512 MiB", ""},
		{"without memory, as the init counted", reports(1, report(1, func(r *initreport.Report) { r.OOMKills = 1 })), api.OutOfMemory, 137, "memory_limit", "the capsule was killed", ""},
		{"well, though a child had no memory", reports(0, report(0, func(r *initreport.Report) { r.OOMKills = 1 })), api.Success, 0, "", "", "killed at the memory limit"},
		{"without processes", reports(2, report(2, func(r *initreport.Report) { r.PIDsLimitHits = 4 })), api.LimitExceeded, 2, "pids_limit", "limit of 128 processes", ""},
		{"well, though it met its limit of processes", reports(0, report(0, func(r *initreport.Report) { r.PIDsLimitHits = 4 })), api.Success, 0, "", "", "limits.pids"},
		{"with a file that is too large", reports(153, report(153, func(r *initreport.Report) { r.Signal = 25 })), api.LimitExceeded, 153, "output_limit", "a file of more than 2048 MiB", ""},
		{"before it began", reports(127, report(127, func(r *initreport.Report) { r.StartError = "no such file" })), api.StartFailed, 127, "start_failed", "no such file", ""},
		{"when somebody kills it", reports(137, nil), api.SystemError, 137, "stopped_outside", "from outside", ""},
		{"when somebody stops it", reports(143, report(143, func(r *initreport.Report) { r.Signal, r.Terminated = 15, true })), api.SystemError, 143, "stopped_outside", "exit code 143", ""},
		{"well, though somebody wanted to stop it", reports(0, report(0, func(r *initreport.Report) { r.Terminated = true })), api.Success, 0, "", "", ""},
		{"at more limits than one: memory counts", reports(137, report(137, func(r *initreport.Report) { r.Signal, r.OOMKills, r.PIDsLimitHits = 9, 1, 1 })), api.OutOfMemory, 137, "memory_limit", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.engine.Program = c.program
			x := b.execution()
			result := b.carriesOut(x)
			wants(t, result, c.outcome, c.exit, c.kind, c.says)
			if f := result.Failure; f != nil && f.Category != categories[c.outcome] {
				t.Errorf("its category is %s", f.Category)
			}
			wantsWarnings(t, x, c.warns)
		})
	}
}

// /proc is a file system without a free byte.
func TestAProgramThatMetAFullDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		code    int
		outcome api.Outcome
		exit    int
		kind    string
		says    string
		warns   string
	}{
		{"and failed", 3, api.SystemError, 3, api.KindDiskFull, "exit code 3", ""},
		{"and believes that all is well", 0, api.Success, 0, "", "", "may be cut off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.home.Disks = runtime.NewDisks(0, "/proc")
			b.restart()
			b.engine.Program = reports(c.code, report(c.code, nil))
			x := b.execution()
			wants(t, b.carriesOut(x), c.outcome, c.exit, c.kind, c.says)
			wantsWarnings(t, x, c.warns)
		})
	}
}

// A report that no init wrote proves nothing: it neither excuses nor accuses the program, and
// nothing is counted from it.
func TestAReportThatNoInitWroteIsIgnored(t *testing.T) {
	t.Parallel()
	blames := func(r *initreport.Report) { r.OOMKills, r.PIDsLimitHits, r.StartError = 1, 1, "forged" }
	for name, raw := range map[string][]byte{
		"no JSON":                    []byte("\x00\xffreport"),
		"JSON of another form":       bytes.ReplaceAll(report(1, blames), []byte(":"), []byte(": ")),
		"a name that stands twice":   bytes.Replace(report(1, nil), []byte(`"oom_kills":0`), []byte(`"oom_kills":0,"oom_kills":1`), 1),
		"two ends at once":           report(1, func(r *initreport.Report) { r.Signal, r.StartError, r.OOMKills = 11, "forged", 1 }),
		"a version that isn't known": report(1, func(r *initreport.Report) { r.Version, r.OOMKills = 99, 1 }),
		"a negative count":           report(1, func(r *initreport.Report) { r.PIDsLimitHits, r.OOMKills = -7, 1 }),
		"more than a report can be":  append(report(1, blames), bytes.Repeat([]byte(" "), initreport.MaxBytes)...),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.engine.Program = reports(1, raw)
			x := b.execution()
			wants(t, b.carriesOut(x), api.CapsuleError, 1, "capsule_error", "exit code 1")
			if x.run.Record.Usage != nil {
				t.Errorf("it counts: %+v", x.run.Record.Usage)
			}
		})
	}
}

func TestWhatARunTook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.Program = reports(0, report(0, nil))
	x := b.execution()
	b.carriesOut(x)
	if got := x.run.Record.Usage; got == nil || got.CPUSeconds != 1.5 || got.PeakMemoryBytes != 5<<20 {
		t.Errorf("usage %+v", got)
	}
	x.run.Record.Usage = nil
	again := verdict{run: x.run, saved: &saved{Slot: pool.ReuseSlot{Number: 2}}}
	again.measure(runtime.End{Reported: true, Report: initreport.Report{CPUSeconds: 9}})
	if x.run.Record.Usage != nil {
		t.Errorf("a run is charged with those before it in its container: %+v", x.run.Record.Usage)
	}
}

func TestWhatTheKernelDoesNotTellIsAbsent(t *testing.T) {
	t.Parallel()
	told := initreport.Report{CPUSeconds: 1, MemoryBytes: 0, DiskReadBytes: 4096, DiskWriteBytes: initreport.NotCounted}
	for ran, want := range map[time.Duration]string{
		3 * time.Second: `{"cpu_seconds":1,"cpu_percent":33.3,"peak_memory_bytes":0,"memory_bytes":0,"disk_read_bytes":4096}`,
		0:               `{"cpu_seconds":1,"peak_memory_bytes":0,"memory_bytes":0,"disk_read_bytes":4096}`,
	} {
		if got, err := json.Marshal(usageOf(told, ran)); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

// waits is a program that ends when its container is stopped, politely or not.
func waits(ctx context.Context, _ runtime.ContainerSpec, _, _ io.Writer) int {
	select {
	case <-enginetest.Terminated(ctx):
		return 143
	case <-ctx.Done():
		return 137
	}
}

// runsUntilStopped sets a program that ends when its container is stopped politely. The stop waits for
// that first: its own patience may be over before a busy machine lets the program end.
func (b *harness) runsUntilStopped() {
	told := make(chan struct{})
	b.runs(func(ctx context.Context, _ runtime.ContainerSpec, _, _ io.Writer) int {
		select {
		case <-told:
			return 143
		case <-ctx.Done():
			return 137
		}
	})
	b.at("Stop", func() {
		close(told)
		testkit.Eventually(b.t, "it ends", func() bool { return b.states() == "exited" })
	})
}

func TestARunThatIsStopped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		cause   error // "" is the run's own time limit
		outcome api.Outcome
		state   api.State
		says    string
	}{
		{"at its own time limit", nil, api.TimedOut, api.Timeout, "after 50ms, its time limit"},
		{"when its caller's time is up", run.ErrDeadline, api.TimedOut, api.Timeout, "the time of the run that called it"},
		{"by whoever asked for it", errors.New("the user said so"), api.WasCancelled, api.Cancelled, "cancelled: the user said so"},
		{"without a reason", context.Canceled, api.WasCancelled, api.Cancelled, "the run was cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.runsUntilStopped()
			x := b.execution()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if c.cause == nil {
				x.run.Limits.Timeout = 50 * time.Millisecond
			} else {
				x.run.LedBy(entering{at: api.Running, do: func() { cancel(c.cause) }}, nil)
			}
			got, err := x.Attempt(ctx)
			if err != nil || got.Outcome != c.outcome || got.State != c.state || !strings.Contains(got.Failure.Message, c.says) || *got.ExitCode != 143 {
				t.Errorf("%+v %+v, %v", got, got.Failure, err)
			}
			b.ends(x)
		})
	}
}

// entering is a host that does something when the run enters a state, before that is stored.
type entering struct {
	alone
	at  api.State
	do  func()
	err error
}

func (e entering) Save(transition api.Transition) error {
	if transition.State != e.at {
		return nil
	}
	if e.do != nil {
		e.do()
	}
	return e.err
}

// What goes over the limit of the disk is found by looking now and then. The kernel, which stops
// a program at one large file, is the better witness.
func TestTheKernelKnowsBetterWhatWentOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.execution()
	x.attempt = &attempt{x: x, limits: x.limits(), log: runtime.NewLog(0, func(runtime.LogLine) {})}
	over := &runtime.LimitError{Limit: "disk", Message: "more than its disk", Hint: "less"}
	for _, c := range []struct {
		name string
		end  runtime.End
		kind string
		exit int
	}{
		{"the look alone", runtime.End{ExitCode: 137, Cause: over}, "disk_limit", 137},
		{"the look, after the program had ended well", runtime.End{ExitCode: 0, Cause: over}, "disk_limit", exitContract},
		{"both", runtime.End{ExitCode: exitFileSize, Cause: over}, "output_limit", exitFileSize},
	} {
		got, err := x.classify(t.Context(), c.end)
		if err != nil || got.Outcome != api.LimitExceeded || got.Failure.Kind != c.kind || *got.ExitCode != c.exit {
			t.Errorf("%s: %+v %+v, %v", c.name, got, got.Failure, err)
		}
	}
}

// A process that dies between stopping a container and storing why leaves one that looks as if
// somebody else had stopped it. The clock tells.
func TestAContainerThatADeadProcessStoppedWasOutOfTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.execution()
	x.attempt = &attempt{x: x, limits: x.limits()}
	began := time.Now().Add(-time.Hour)
	x.run.Record.StartedAt = &began
	for _, c := range []struct {
		name  string
		after time.Duration
		exit  int
		want  api.Outcome
	}{
		{"after its limit", x.run.Limits.Timeout + time.Second, 143, api.TimedOut},
		{"at its limit", x.run.Limits.Timeout, 143, api.TimedOut},
		{"before its limit", x.run.Limits.Timeout - time.Second, 143, api.SystemError},
	} {
		got, err := x.classify(t.Context(), runtime.End{ExitCode: c.exit, Outside: true, FinishedAt: began.Add(c.after)})
		if err != nil || got.Outcome != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	x.run.Record.StartedAt = nil
	if got, err := x.classify(t.Context(), runtime.End{ExitCode: 143, Outside: true, FinishedAt: time.Now()}); err != nil || got.Outcome != api.SystemError {
		t.Errorf("of a run that never began: %+v, %v", got, err)
	}
}

func TestAContainerThatVanishesIsAFaultThatMayPass(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.execution()
	b.runs(leaves(137, func(string) {}))
	b.at("Inspect", func() { must(runtime.RemoveAll(context.Background(), b.engine, "r1", "me")) }) // as by `docker rm -f`
	_, err := x.Attempt(t.Context())
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "vanished") || fault.Public(err).Hint == "" {
		t.Errorf("error %v", err)
	}
	if got := run.Fault(t.Context(), err); got.Outcome != api.SystemError || got.Failure.Category != api.CategoryTransient {
		t.Errorf("it ends as %+v", got)
	}
	b.ends(x)
}
