package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/capsule/au/check"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// try starts the probe with a line of bash.
func (p auProbe) try(script string, trial container.Trial) container.Observed {
	p.t.Helper()
	seen, err := p.attempt(trusted.Context(p.t), script, trial)
	if err != nil {
		p.t.Fatal(err)
	}
	return seen
}

func (p auProbe) attempt(ctx context.Context, script string, trial container.Trial) (container.Observed, error) {
	p.t.Helper()
	c, err := capsule.Load(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	if script != "" {
		trial.Args = append(trial.Args, "--prompt", script)
	}
	return p.containers.Try(ctx, unit.Of(c), trial)
}

func TestATrialShowsHowAUnitEnds(t *testing.T) {
	t.Parallel()
	p := newAUProbe(t)
	for _, c := range []struct {
		name, script string
		trial        container.Trial
		want         container.Observed
	}{
		{
			"by itself", `head -c 3; echo oops >&2; exit 3`,
			container.Trial{Stdin: strings.NewReader("\x00\xffcd")},
			container.Observed{Run: check.Run{ExitCode: 3, Stdout: []byte("\x00\xffc"), StderrTail: []byte("oops\n"), StderrBytes: 5, StdinBytes: 4}},
		},
		{"by a signal", `kill -SEGV $$`, container.Trial{}, container.Observed{Run: check.Run{ExitCode: 139}, Signal: 11}},
		{"without input", `exec wc -c`, container.Trial{}, container.Observed{Run: check.Run{Stdout: []byte("0\n")}}},
		{"with what it is given", `echo -n "$A" $3`, container.Trial{Env: []string{"A=b  c"}}, container.Observed{Run: check.Run{Stdout: []byte("b  c")}}},
		{"at its time limit", `echo -n begun; sleep 100`, container.Trial{Timeout: 3 * time.Second}, container.Observed{Run: check.Run{TimedOut: true, ExitCode: 143, Stdout: []byte("begun")}, Signal: 15}},
		{
			"for want of memory", `exec perl -e '$x = "x" x (60 << 20); sleep 1'`,
			container.Trial{MemoryBytes: 24 << 20},
			container.Observed{Run: check.Run{ExitCode: 137, OutOfMemory: true}, Signal: 9, MemoryLimit: 24 << 20},
		},
		{
			"for want of memory of its child", `perl -e '$x = "x" x (60 << 20); sleep 1'; exit 1`,
			container.Trial{MemoryBytes: 24 << 20},
			container.Observed{Run: check.Run{ExitCode: 1, StderrTail: []byte("")}, MemoryLimit: 24 << 20},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := p.try(c.script, c.trial)
			for got.TimedOut && len(got.Stdout) == 0 && c.trial.Timeout < testkit.Patience/4 { // a busy machine may begin later than that
				c.trial.Timeout *= 4
				got = p.try(c.script, c.trial)
			}
			if got.TimedOut && got.Duration <= 0 || got.PeakMemory == nil || *got.PeakMemory <= 0 {
				t.Errorf("took %v and %v bytes", got.Duration, got.PeakMemory)
			}
			if c.want.MemoryLimit == 0 {
				c.want.MemoryLimit = 64 << 20
			}
			if strings.Contains(c.name, "child") { // bash tells of it in words that depend on its version
				got.StderrTail, got.StderrBytes = nil, 0
			}
			none := 0
			c.want.NetworkAttempts, c.want.FilesWritten, c.want.Listened, c.want.WritesTried = &none, &none, &none, &none
			c.want.Duration, c.want.PeakMemory, c.want.ProcessesLeft, c.want.StdinTaken = got.Duration, got.PeakMemory, got.ProcessesLeft, got.StdinTaken
			if diff := cmp.Diff(c.want, got, equateEmpty); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// equateEmpty takes no bytes for what was never read.
var equateEmpty = cmp.Comparer(bytes.Equal)

func TestATrialCountsWhatAUnitDoes(t *testing.T) {
	t.Parallel()
	p := newAUProbe(t)
	for _, c := range []struct {
		name, script   string
		network, files bool
	}{
		{"nothing", `:`, false, false},
		{"a file that is removed", `touch /tmp/a; rm /tmp/a`, false, false},
		{"a file that is left", `touch /tmp/a`, false, true},
		{"one in shared memory", `touch /dev/shm/a`, false, true},
		{"a file where none can be", `touch /var/tmp/a`, false, false},
		{"a connection to elsewhere", `: < /dev/tcp/192.0.2.1/80`, true, false},
		{"a connection to itself", `: < /dev/tcp/127.0.0.1/9`, true, false},
		{"a name that is looked up", `getent hosts aod.invalid`, true, false},
		{"a datagram", `echo x > /dev/udp/127.0.0.1/53`, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := p.try(c.script, container.Trial{})
			if got.NetworkAttempts == nil || *got.NetworkAttempts > 0 != c.network {
				t.Errorf("attempts at the network: %+v", got)
			}
			if got.FilesWritten == nil || *got.FilesWritten > 0 != c.files {
				t.Errorf("files: %+v", got)
			}
		})
	}
}

func TestATrialIsBounded(t *testing.T) {
	t.Parallel()
	p := newAUProbe(t)
	t.Run("stdout is read up to one byte more than it may have", func(t *testing.T) {
		if got := p.try(`head -c 11M /dev/zero`, container.Trial{}); len(got.Stdout) != au.MaxOutputBytes+1 || got.ExitCode != 0 {
			t.Errorf("%d bytes, exit %d", len(got.Stdout), got.ExitCode)
		}
	})
	t.Run("stderr is kept up to the limit of the log, and known to be more", func(t *testing.T) {
		got := p.try(`head -c 2M /dev/zero | tr '\0' x >&2`, container.Trial{})
		if n := len(got.StderrTail); n < 1<<20 || n > 2<<20 || got.StderrBytes <= int64(n) {
			t.Errorf("%d of %d bytes", n, got.StderrBytes)
		}
	})
	t.Run("an input of 51 MiB", func(t *testing.T) {
		got := p.try(`exec wc -c`, container.Trial{Stdin: io.LimitReader(zeros{}, 51<<20)})
		if string(got.Stdout) != "53477376\n" || got.StdinBytes != 51<<20 {
			t.Errorf("%q of %d", got.Stdout, got.StdinBytes)
		}
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestATrialWithAnOpenStdin(t *testing.T) {
	t.Parallel()
	p := newAUProbe(t)
	if p.remote() {
		t.Skip("no pipe leads to an engine elsewhere")
	}
	t.Run("is waited for by who reads it", func(t *testing.T) {
		if got := p.try(`read -r line`, container.Trial{Open: true, Timeout: time.Second}); !got.TimedOut {
			t.Errorf("%+v", got)
		}
	})
	t.Run("and no matter to who doesn't", func(t *testing.T) {
		got := p.try("", container.Trial{Open: true, Args: []string{"--describe"}})
		if _, err := au.ParseCard(got.Stdout); err != nil || got.ExitCode != 0 {
			t.Errorf("%v, %+v", err, got)
		}
	})
}

func TestATrialWithAModel(t *testing.T) {
	t.Parallel()
	p := newAUProbe(t)
	model := filepath.Join(t.TempDir(), "model.gguf")
	write(t, model, "weights")
	got, err := p.attempt(trusted.Context(t), `cat `+container.ModelPathInside(model), container.Trial{ModelPath: model})
	switch {
	case p.remote():
		if !fault.Is(err, fault.Unsupported) {
			t.Error(err)
		}
	case err != nil || string(got.Stdout) != "weights":
		t.Errorf("%v, %q", err, got.Stdout)
	}
}

func TestATrialThatShowsNothing(t *testing.T) {
	t.Parallel()
	p := newAUProbe(t)
	t.Run("its caller went away", func(t *testing.T) {
		ctx, cancel := context.WithCancel(trusted.Context(t))
		started := func(e run.Event) {
			if e.Log != nil {
				cancel()
			}
		}
		if _, err := p.attempt(ctx, `echo ready >&2; sleep 100`, container.Trial{Observe: started}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("its input broke off", func(t *testing.T) {
		broken := io.MultiReader(strings.NewReader("x"), errReader{})
		if _, err := p.attempt(trusted.Context(t), `:`, container.Trial{Stdin: broken}); !fault.Is(err, fault.Input) {
			t.Error(err)
		}
	})
	t.Run("it is a capsule", func(t *testing.T) {
		if _, err := p.containers.Try(trusted.Context(t), &unit.Unit{Kind: unit.Capsule}, container.Trial{}); !fault.Is(err, fault.Input) {
			t.Error(err)
		}
	})
}

func TestATrialHasNoNetworkWhateverTheUnitAsksFor(t *testing.T) {
	t.Parallel()
	p := newAUProbe(t)
	write(t, filepath.Join(p.dir, "agent.yaml"), auFiles["agent.yaml"]+"network: bridge\n")
	if got := p.try(`grep -c : /proc/net/dev`, container.Trial{}); string(got.Stdout) != "1\n" { // lo
		t.Errorf("%q", got.Stdout)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("broken") }
