package orchestrator

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// site is a fixture whose images take as long as a test wants.
type site struct {
	*fixture
	begun, ended atomic.Int32
}

// newSite has a unit of each name beside "worker", with a RUN that lasts until the gate "built"
// is open.
func newSite(t *testing.T, change func(*settings), names ...string) *site {
	t.Helper()
	w := &site{fixture: newFixture(t, func(s *settings) {
		for _, name := range names {
			for file, content := range workerFiles {
				switch file {
				case "Dockerfile":
					content = "FROM " + dockertest.Image + "\nRUN sleep 900 # " + name + "\nCMD [\"worker\"]\n"
				case "agent.yaml":
					content = strings.Replace(content, "worker", name, 1)
				}
				write(t, filepath.Join(s.Sources[0], name, file), content)
			}
		}
		if change != nil {
			change(s)
		}
	})}
	w.engine.RunStep = func(ctx context.Context, _ string, _ io.Writer) int {
		w.begun.Add(1)
		defer w.ended.Add(1)
		select {
		case <-w.gate("built"):
			return 0
		case <-ctx.Done():
			return 1
		}
	}
	return w
}

func (w *site) builds(n int32) {
	w.t.Helper()
	within(w.t, func() bool { return w.begun.Load() == n }, func() string { return fmt.Sprint(w.begun.Load(), " builds") })
}

func (w *site) noneBuilds() {
	w.t.Helper()
	within(w.t, func() bool { return w.begun.Load() == w.ended.Load() }, func() string { return "a build goes on" })
}

func TestBuildsTakeNoSlots(t *testing.T) {
	t.Parallel()
	slow := []string{"s1", "s2", "s3", "s4", "s5"}
	w := newSite(t, func(s *settings) { s.Containers.Builds.AtOnce = 1 }, slow...)
	w.await(w.submit(orders{Mark: "first"}))
	ids := make([]string, 0, len(slow))
	for _, name := range slow {
		ids = append(ids, w.submitTo(name, orders{Mark: name}))
	}
	for _, id := range ids {
		w.until(id, func(r api.Record) bool { return r.State == api.Starting })
	}
	w.builds(1)
	for n := range 3 {
		if r := w.await(w.submit(orders{Mark: fmt.Sprint("other", n)})); r.Outcome != api.Success {
			t.Errorf("%s: %+v", r.Outcome, r.Error)
		}
	}
	w.open("built")
	for _, id := range ids {
		if r := w.await(id); r.Outcome != api.Success {
			t.Errorf("%s: %+v", r.Outcome, r.Error)
		}
	}
	w.builds(5)
}

func TestRunsOfANewUnitMakeOneBuild(t *testing.T) {
	t.Parallel()
	w := newSite(t, func(s *settings) { s.Containers.Builds.AtOnce = 4 }, "slow")
	var ids []string
	for n := range 10 {
		ids = append(ids, w.submitTo("slow", orders{Mark: fmt.Sprint(n)}))
	}
	w.builds(1)
	w.open("built")
	for _, id := range ids {
		if r := w.await(id); r.Outcome != api.Success {
			t.Errorf("%s: %+v", r.Outcome, r.Error)
		}
	}
	if n := w.begun.Load(); n != 1 {
		t.Errorf("%d builds", n)
	}
}

func TestARunThatIsCancelledWaitsForNoBuild(t *testing.T) {
	t.Parallel()
	w := newSite(t, nil, "slow")
	id := w.submitTo("slow", orders{Mark: "1"})
	w.builds(1)
	w.until(id, func(r api.Record) bool { return r.Waiting != nil && r.Waiting.Reason == "image" })
	if _, err := w.service.Cancel(trusted.Context(t), id, "because"); err != nil {
		t.Fatal(err)
	}
	if r := w.await(id); r.Outcome != api.WasCancelled {
		t.Errorf("%s: %+v", r.Outcome, r.Error)
	}
	w.noneBuilds()
}

func TestABuildThatTakesTooLong(t *testing.T) {
	t.Parallel()
	w := newSite(t, func(s *settings) { s.Containers.Builds.Timeout = 50 * time.Millisecond }, "slow")
	r := w.await(w.submitTo("slow", orders{Mark: "1"}))
	if r.Outcome != api.SystemError || r.Error.Kind != "build_timeout" || r.Error.Category != api.CategoryPermanent ||
		r.Retries != 0 || !strings.Contains(r.Error.Hint, "build_timeout") {
		t.Errorf("%s after %d retries: %+v", r.Outcome, r.Retries, r.Error)
	}
	w.noneBuilds()
}

func TestImagesThatNoUnitNeedsArePruned(t *testing.T) {
	t.Parallel()
	w := newSite(t, func(s *settings) { s.Containers.Builds.Settle = time.Nanosecond }, "slow")
	w.open("built")
	first := w.await(w.submitTo("slow", orders{Mark: "first"}))
	w.await(w.submit(orders{Mark: "worker"}))
	running := w.submitTo("slow", orders{Mark: "running", Until: "done"})
	w.until(running, func(r api.Record) bool { return r.State == api.Running })
	write(t, filepath.Join(w.opts.Sources[0], "slow", "more.txt"), "another version")
	second := w.await(w.submitTo("slow", orders{Mark: "second"}))
	if first.Image.Ref == second.Image.Ref {
		t.Fatal("both versions have one image")
	}
	prune := func(want int) {
		t.Helper()
		within(t, func() bool { // a run is live for a moment after its end
			report, err := w.service.Retention.Prune(trusted.Context(t), api.PruneOptions{Images: true, DryRun: true})
			return err == nil && *report.Images == want
		}, func() string { return fmt.Sprintf("%d images would be pruned", want) })
		report, err := w.service.Retention.Prune(trusted.Context(t), api.PruneOptions{Images: true})
		if err != nil || *report.Images != want || report.Runs != 0 {
			t.Errorf("%d images of %d, %v", *report.Images, want, err)
		}
	}
	prune(0)
	w.open("done")
	w.await(running)
	prune(1)
	if _, err := w.engine.Image(trusted.Context(t), first.Image.Ref); !fault.Is(err, fault.NotFound) {
		t.Errorf("the older version's image is there: %v", err)
	}
	if _, err := w.engine.Image(trusted.Context(t), second.Image.Ref); err != nil {
		t.Errorf("the newer version's image: %v", err)
	}
	for _, name := range []string{"worker", "slow"} {
		if r := w.await(w.submitTo(name, orders{Mark: "again " + name})); r.Outcome != api.Success {
			t.Errorf("%s: %+v", name, r.Error)
		}
	}
}
