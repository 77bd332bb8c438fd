package enginetest

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

func testContainers(t *testing.T, s suite) {
	ctx := s.context(t)
	t.Run("a container passes through its states", func(t *testing.T) {
		id := s.create(t, s.spec(scriptGreet))
		state, err := s.Engine.Inspect(ctx, id)
		if err != nil || state.Status != runtime.StatusCreated || state.Running || !state.StartedAt.IsZero() {
			t.Fatalf("created: %+v, %v", state, err)
		}
		exits, err := s.Engine.NextExit(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Engine.Start(ctx, id); err != nil {
			t.Fatal(err)
		}
		receive(t, exits)
		testkit.Eventually(t, "the state says exited", func() bool {
			state, err = s.Engine.Inspect(ctx, id)
			return err == nil && !state.Running && state.Status == runtime.StatusExited
		})
		if state.ExitCode != 7 || state.OOMKilled || state.StartedAt.IsZero() || state.FinishedAt.Before(state.StartedAt) {
			t.Errorf("exited: %+v", state)
		}
	})
	t.Run("an exit before anybody looks is not lost", func(t *testing.T) {
		r := s.start(t, s.spec(scriptSmall))
		testkit.Eventually(t, "the container has exited", func() bool {
			state, err := s.Engine.Inspect(ctx, r.id)
			return err == nil && !state.FinishedAt.IsZero()
		})
		if exit := r.wait(t); exit.Code != 0 || exit.Err != nil {
			t.Errorf("exit %+v", exit)
		}
	})
	t.Run("of many starts at once one is done", func(t *testing.T) {
		id := s.create(t, s.spec(scriptPolite))
		streams, err := s.Engine.Attach(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { streams.Close() })
		out, errs := collect(streams.Stdout), make(chan error, 4)
		collect(streams.Stderr)
		for range cap(errs) {
			go func() { errs <- s.Engine.Start(ctx, id) }()
		}
		for range cap(errs) {
			if err := receive(t, errs); err != nil {
				t.Error(err)
			}
		}
		if state, err := s.Engine.Inspect(ctx, id); err != nil || state.Status != runtime.StatusRunning {
			t.Errorf("%+v, %v", state, err)
		}
		testkit.Eventually(t, "the program is ready", func() bool { return out.soFar() != "" })
		if err := s.Engine.Stop(ctx, id, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		if got := out.all(t); got != "ready\n" {
			t.Errorf("the program said %q", got)
		}
	})
	t.Run("containers are found by their labels in any state", func(t *testing.T) {
		spec := s.spec(scriptSleep)
		spec.Labels = map[string]string{Label: s.labels[Label], "aod.test.color": "red"}
		created := s.create(t, spec)
		r := s.start(t, spec)
		for _, c := range []struct {
			labels map[string]string
			want   int
		}{
			{map[string]string{Label: s.labels[Label], "aod.test.color": "red"}, 2},
			{map[string]string{Label: s.labels[Label], "aod.test.color": ""}, 2},
			{map[string]string{Label: s.labels[Label], "aod.test.color": "blue"}, 0},
			{map[string]string{Label: s.labels[Label], "aod.test.shape": ""}, 0},
		} {
			refs, err := s.Engine.ContainersByLabel(ctx, c.labels)
			if err != nil || len(refs) != c.want {
				t.Fatalf("%v: %d found, want %d (error %v)", c.labels, len(refs), c.want, err)
			}
			for _, ref := range refs {
				if want := map[string]string{created: "created", r.id: "running"}[ref.ID]; ref.State != want || ref.Labels["aod.test.color"] != "red" {
					t.Errorf("found %+v, want state %q", ref, want)
				}
			}
		}
	})
	t.Run("a name is taken once", func(t *testing.T) {
		spec := s.spec(scriptSmall)
		spec.Name = s.labels[Label]
		s.create(t, spec)
		_, err := s.Engine.Create(ctx, spec)
		wantKind(t, err, fault.Conflict)
	})
	t.Run("the engine describes itself", func(t *testing.T) {
		info, err := s.Engine.Probe(ctx)
		if err != nil || info.Endpoint == "" || info.Version == "" || info.APIVersion == "" || info.OS != "linux" ||
			info.Arch == "" || info.CPUs < 1 || info.MemoryBytes <= 0 || len(info.Runtimes) == 0 || info.CgroupVersion == "" {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

func testOutput(t *testing.T, s suite) {
	t.Run("both streams arrive apart and whole", func(t *testing.T) {
		r := s.start(t, s.spec(scriptGreet))
		if out, errs := r.stdout.all(t), r.stderr.all(t); out != "out\n" || errs != "err\n" {
			t.Errorf("stdout %q, stderr %q", out, errs)
		}
		if exit := r.wait(t); exit.Code != 7 || exit.Err != nil {
			t.Errorf("exit %+v", exit)
		}
	})
	t.Run("ten megabytes of each arrive", func(t *testing.T) {
		r := s.start(t, s.spec(scriptFlood))
		out, errs := r.stdout.all(t), r.stderr.all(t)
		if strings.Count(out, "o") != floodBytes || len(out) != floodBytes {
			t.Errorf("stdout has %d bytes", len(out))
		}
		if strings.Count(errs, "e") != floodBytes || len(errs) != floodBytes {
			t.Errorf("stderr has %d bytes", len(errs))
		}
	})
	t.Run("Close ends reading without an error while the container runs on", func(t *testing.T) {
		r := s.start(t, s.spec(scriptPolite))
		testkit.Eventually(t, "the program is ready", func() bool { return r.stdout.soFar() == "ready\n" })
		if err := r.streams.Close(); err != nil {
			t.Error(err)
		}
		r.stdout.all(t)
		r.stderr.all(t)
		if state, err := s.Engine.Inspect(s.context(t), r.id); err != nil || !state.Running {
			t.Errorf("%+v, %v", state, err)
		}
		if err := r.streams.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
	t.Run("Close returns when a stream was never read", func(t *testing.T) {
		ctx := s.context(t)
		id := s.create(t, s.spec(scriptFlood))
		streams, err := s.Engine.Attach(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Engine.Start(ctx, id); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(streams.Stdout, make([]byte, floodBytes/2)); err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- streams.Close() }()
		if err := receive(t, closed); err != nil {
			t.Error(err)
		}
	})
}

func testEnding(t *testing.T, s suite) {
	ctx := s.context(t)
	t.Run("Kill ends with 137", func(t *testing.T) {
		r := s.start(t, s.spec(scriptSleep))
		if err := s.Engine.Kill(ctx, r.id); err != nil {
			t.Fatal(err)
		}
		if exit := r.wait(t); exit.Code != 137 {
			t.Errorf("exit %+v", exit)
		}
		if state, err := s.Engine.Inspect(ctx, r.id); err != nil || state.OOMKilled {
			t.Errorf("%+v, %v", state, err)
		}
	})
	t.Run("Stop lets a program end by itself", func(t *testing.T) {
		r := s.start(t, s.spec(scriptPolite))
		testkit.Eventually(t, "the program is ready", func() bool { return r.stdout.soFar() == "ready\n" })
		if err := s.Engine.Stop(ctx, r.id, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		if exit := r.wait(t); exit.Code != 3 {
			t.Errorf("exit %+v", exit)
		}
	})
	t.Run("Stop kills a program that doesn't listen, after the grace time", func(t *testing.T) {
		r := s.start(t, s.spec(scriptDeaf))
		testkit.Eventually(t, "the program is ready", func() bool { return r.stdout.soFar() == "ready\n" })
		begun := time.Now()
		if err := s.Engine.Stop(ctx, r.id, time.Second); err != nil {
			t.Fatal(err)
		}
		if exit := r.wait(t); exit.Code != 137 {
			t.Errorf("exit %+v", exit)
		}
		if took := time.Since(begun); took < 900*time.Millisecond {
			t.Errorf("the grace time was %v", took)
		}
	})
	t.Run("what has ended can be ended again", func(t *testing.T) {
		r := s.start(t, s.spec(scriptSmall))
		r.wait(t)
		created := s.create(t, s.spec(scriptSmall))
		for _, id := range []string{r.id, created, strings.Repeat("0", 64)} {
			for name, err := range map[string]error{
				"Stop":         s.Engine.Stop(ctx, id, 0),
				"Kill":         s.Engine.Kill(ctx, id),
				"Remove":       s.Engine.Remove(ctx, id),
				"Remove again": s.Engine.Remove(ctx, id),
			} {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
	t.Run("Remove ends a running container, and many may ask for it at once", func(t *testing.T) {
		r := s.start(t, s.spec(scriptSleep))
		errs := make(chan error, 4)
		for range cap(errs) {
			go func() { errs <- s.Engine.Remove(ctx, r.id) }()
		}
		for range cap(errs) {
			if err := receive(t, errs); err != nil {
				t.Error(err)
			}
		}
		testkit.Eventually(t, "it is gone", func() bool {
			_, err := s.Engine.Inspect(ctx, r.id)
			return fault.Is(err, fault.NotFound)
		})
	})
}

func testMissing(t *testing.T, s suite) {
	ctx := s.context(t)
	missing := strings.Repeat("0", 64)
	t.Run("a missing container is NotFound", func(t *testing.T) {
		_, err := s.Engine.Inspect(ctx, missing)
		wantKind(t, err, fault.NotFound)
		_, err = s.Engine.Attach(ctx, missing)
		wantKind(t, err, fault.NotFound)
		_, err = s.Engine.Logs(ctx, missing)
		wantKind(t, err, fault.NotFound)
		_, err = s.Engine.NextExit(ctx, missing)
		wantKind(t, err, fault.NotFound)
		wantKind(t, s.Engine.Start(ctx, missing), fault.NotFound)
	})
	t.Run("a missing image is NotFound", func(t *testing.T) {
		spec := s.spec(scriptSmall)
		spec.Image = "aod.test/no-such-image:1"
		_, err := s.Engine.Create(ctx, spec)
		wantKind(t, err, fault.NotFound)
		_, err = s.Engine.Image(ctx, spec.Image)
		wantKind(t, err, fault.NotFound)
		if err := s.Engine.RemoveImage(ctx, spec.Image); err != nil {
			t.Errorf("RemoveImage: %v", err)
		}
	})
	t.Run("a missing mount source is refused and not made", func(t *testing.T) {
		spec := s.spec(scriptSmall)
		spec.Mounts = []runtime.Mount{{Source: t.TempDir() + "/none", Target: "/mnt"}}
		_, err := s.Engine.Create(ctx, spec)
		if err == nil || !strings.Contains(fault.Public(err).Msg, "mount") {
			t.Errorf("error %v", err)
		}
	})
}

// testContexts: what a context bounds, and that its end has the right kind.
func testContexts(t *testing.T, s suite) {
	t.Run("a call whose context has ended is Cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(s.context(t))
		cancel()
		id := s.create(t, s.spec(scriptSmall))
		_, err := s.Engine.Create(ctx, s.spec(scriptSmall))
		wantKind(t, err, fault.Cancelled)
		_, err = s.Engine.Attach(ctx, id)
		wantKind(t, err, fault.Cancelled)
		_, err = s.Engine.Logs(ctx, id)
		wantKind(t, err, fault.Cancelled)
		_, err = s.Engine.NextExit(ctx, id)
		wantKind(t, err, fault.Cancelled)
		wantKind(t, s.Engine.Start(ctx, id), fault.Cancelled)
		wantKind(t, s.Engine.Stop(ctx, id, 0), fault.Cancelled)
		wantKind(t, s.Engine.Remove(ctx, id), fault.Cancelled)
		_, err = s.Engine.Probe(ctx)
		wantKind(t, err, fault.Cancelled)
	})
	t.Run("streams and containers outlive the contexts of the calls that made them", func(t *testing.T) {
		short, cancel := context.WithCancel(s.context(t))
		id := s.create(t, s.spec(scriptPolite))
		streams, err := s.Engine.Attach(short, id)
		if err != nil {
			t.Fatal(err)
		}
		defer streams.Close()
		out := collect(streams.Stdout)
		collect(streams.Stderr)
		if err := s.Engine.Start(short, id); err != nil {
			t.Fatal(err)
		}
		cancel()
		testkit.Eventually(t, "the program is ready", func() bool { return out.soFar() == "ready\n" })
	})
	t.Run("a container that does nothing uses no processor", func(t *testing.T) {
		r := s.start(t, s.spec(scriptSleep))
		if used, err := s.Engine.CPUTime(s.context(t), r.id); err != nil || used > 5*time.Second {
			t.Errorf("%v, %v", used, err)
		}
		if _, err := s.Engine.CPUTime(s.context(t), strings.Repeat("0", 64)); !fault.Is(err, fault.NotFound) {
			t.Errorf("of a container that isn't there: %v", err)
		}
	})
	t.Run("a subscription ends with its context", func(t *testing.T) {
		short, cancel := context.WithCancel(s.context(t))
		id := s.create(t, s.spec(scriptSleep))
		exits, err := s.Engine.NextExit(short, id)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		select {
		case exit := <-exits:
			t.Errorf("exit %+v", exit)
		case <-time.After(50 * time.Millisecond):
		}
	})
}
