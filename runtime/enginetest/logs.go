package enginetest

import (
	"context"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// scriptTalk says something before it is told to end and something after.
const scriptTalk = "trap 'echo bye; echo late >&2; exit 3' TERM; echo ready; echo early >&2; while :; do sleep 0.05; done"

// testLogs: what another process can read of a container's output.
func testLogs(t *testing.T, s suite) {
	ctx := s.context(t)
	t.Run("all that was written is read again and followed", func(t *testing.T) {
		r := s.start(t, s.kept(scriptTalk))
		testkit.Eventually(t, "both streams have begun", func() bool { return r.stdout.soFar()+r.stderr.soFar() == "ready\nearly\n" })
		if err := r.streams.Close(); err != nil { // the process that attached is gone
			t.Fatal(err)
		}
		out, errs := s.logs(t, r.id)
		testkit.Eventually(t, "what came before is there", func() bool { return out.soFar()+errs.soFar() == "ready\nearly\n" })
		if err := s.Engine.Stop(ctx, r.id, testkit.Patience/2); err != nil {
			t.Fatal(err)
		}
		if got := out.all(t) + errs.all(t); got != "ready\nbye\nearly\nlate\n" {
			t.Errorf("the log is %q", got)
		}
	})
	t.Run("of a container that has ended all is there, as often as it is asked for", func(t *testing.T) {
		r := s.start(t, s.kept(scriptGreet))
		r.wait(t)
		for range 2 {
			out, errs := s.logs(t, r.id)
			if got := out.all(t) + errs.all(t); got != "out\nerr\n" {
				t.Errorf("the log is %q", got)
			}
		}
	})
	t.Run("ten megabytes of each are there", func(t *testing.T) {
		spec := s.kept(scriptFlood)
		spec.LogBytes = 2 * floodBytes
		r := s.start(t, spec)
		r.wait(t)
		out, errs := s.logs(t, r.id)
		if got := out.all(t); strings.Count(got, "o") != floodBytes || len(got) != floodBytes {
			t.Errorf("stdout has %d bytes", len(got))
		}
		if got := errs.all(t); strings.Count(got, "e") != floodBytes || len(got) != floodBytes {
			t.Errorf("stderr has %d bytes", len(got))
		}
	})
	t.Run("Close ends reading without an error, and the context of the call doesn't", func(t *testing.T) {
		r := s.start(t, s.kept(scriptPolite))
		testkit.Eventually(t, "the program is ready", func() bool { return r.stdout.soFar() == "ready\n" })
		short, cancel := context.WithCancel(ctx)
		streams, err := s.Engine.Logs(short, r.id)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		out, errs := collect(streams.Stdout), collect(streams.Stderr)
		testkit.Eventually(t, "the log is read", func() bool { return out.soFar() == "ready\n" })
		for range 2 {
			if err := streams.Close(); err != nil {
				t.Error(err)
			}
		}
		out.all(t)
		errs.all(t)
		if state, err := s.Engine.Inspect(ctx, r.id); err != nil || !state.Running {
			t.Errorf("%+v, %v", state, err)
		}
	})
	t.Run("Close returns when nothing was read", func(t *testing.T) {
		r := s.start(t, s.kept(scriptFlood))
		streams, err := s.Engine.Logs(ctx, r.id)
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- streams.Close() }()
		if err := receive(t, closed); err != nil {
			t.Error(err)
		}
	})
	t.Run("what isn't kept is Unsupported", func(t *testing.T) {
		r := s.start(t, s.spec(scriptPolite))
		_, err := s.Engine.Logs(ctx, r.id)
		wantKind(t, err, fault.Unsupported)
	})
}

// kept is the spec of a container whose output the engine keeps.
func (s suite) kept(script string) runtime.ContainerSpec {
	spec := s.spec(script)
	spec.LogBytes = 1
	return spec
}

func (s suite) logs(t *testing.T, id string) (stdout, stderr *collector) {
	t.Helper()
	streams, err := s.Engine.Logs(s.context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { streams.Close() })
	return collect(streams.Stdout), collect(streams.Stderr)
}
