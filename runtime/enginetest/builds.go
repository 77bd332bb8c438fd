package enginetest

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// The RUN commands of the suite's Dockerfiles; a number keeps the cache out.
const (
	runLines = "for i in 1 2 3; do echo line $i; done"
	runFail  = "for i in $(seq 30); do echo line $i; done; exit 7"
	runSleep = "sleep 300"
)

var unique atomic.Int64

// freshRun makes a command that no cache has seen.
func freshRun(command string) string {
	return fmt.Sprintf("RUN %s # %d.%d", command, time.Now().UnixNano(), unique.Add(1))
}

// dockerfile returns a build of one file. The LABEL comes first, so that what a
// failed build leaves behind can be found too.
func (s suite) dockerfile(tag string, lines ...string) runtime.BuildSpec {
	text := fmt.Sprintf("FROM %s\nLABEL %s=%q\n%s\n", s.Image, Label, s.labels[Label], strings.Join(lines, "\n"))
	return runtime.BuildSpec{Tags: []string{tag}, Labels: s.labels, WriteContext: tarOf("Dockerfile", text)}
}

func tarOf(name, text string) func(io.Writer) error {
	return func(w io.Writer) error {
		archive := tar.NewWriter(w)
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		if _, err := io.WriteString(archive, text); err != nil {
			return err
		}
		return archive.Close()
	}
}

// removeImages removes everything that the part's labels are on. It takes more than
// one attempt: children go before their parents, and an engine that was told to stop
// a build holds its images for a moment.
func (s suite) removeImages(t *testing.T) {
	ctx := s.context(t)
	testkit.Eventually(t, "the images of the test are gone", func() bool {
		images, err := s.Engine.ImagesByLabel(ctx, s.labels)
		for _, img := range images {
			for _, ref := range append(img.Tags, img.ID) {
				_ = s.Engine.RemoveImage(ctx, ref)
			}
		}
		return err == nil && len(images) == 0
	})
}

func testImages(t *testing.T, s suite) {
	t.Cleanup(func() { s.removeImages(t) })
	ctx := s.context(t)
	tag := fmt.Sprintf("aod.test/images:%d", os.Getpid())
	id, err := s.Engine.Build(ctx, s.dockerfile(tag, freshRun(runLines)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("an image is found by tag, by id and by label", func(t *testing.T) {
		for _, ref := range []string{tag, id} {
			img, err := s.Engine.Image(ctx, ref)
			if err != nil || img.ID != id || !slices.Contains(img.Tags, tag) || img.Labels[Label] != s.labels[Label] || img.OS != "linux" {
				t.Errorf("%s: %+v, %v", ref, img, err)
			}
		}
		images, err := s.Engine.ImagesByLabel(ctx, s.labels)
		if err != nil || len(images) != 1 || images[0].ID != id || !slices.Equal(images[0].Tags, []string{tag}) {
			t.Errorf("%+v, %v", images, err)
		}
	})
	t.Run("a removed image is gone, and can be removed again", func(t *testing.T) {
		for range 2 {
			if err := s.Engine.RemoveImage(ctx, tag); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Engine.Image(ctx, tag)
		wantKind(t, err, fault.NotFound)
	})
	t.Run("a pull without a registry is Unavailable", func(t *testing.T) {
		wantKind(t, s.Engine.Pull(ctx, "registry.invalid/aod-test/none:1"), fault.Unavailable)
	})
}

// steps are the events of a build by the step's name, without logs.
type steps struct {
	states map[string][]runtime.StepState
	logs   []string
}

func (s *steps) take(event runtime.BuildEvent) {
	if s.states == nil {
		s.states = map[string][]runtime.StepState{}
	}
	if event.State == runtime.StepLog {
		s.logs = append(s.logs, event.Log)
		return
	}
	s.states[event.Name] = append(s.states[event.Name], event.State)
}

// of returns the states of the step whose name holds the text.
func (s *steps) of(text string) []runtime.StepState {
	for name, states := range s.states {
		if strings.Contains(name, text) {
			return states
		}
	}
	return nil
}

func testBuilds(t *testing.T, s suite, classic bool) {
	t.Cleanup(func() { s.removeImages(t) })
	tag := fmt.Sprintf("aod.test/builds-%t:%d", classic, os.Getpid())
	build := func(ctx context.Context, spec runtime.BuildSpec, progress func(runtime.BuildEvent)) (string, error) {
		spec.Limits.Classic = classic
		return s.Engine.Build(ctx, spec, progress)
	}
	t.Run("a build reports its steps, and the next finds them in the cache", func(t *testing.T) {
		spec := s.dockerfile(tag, freshRun(runLines))
		var first, second steps
		id, err := build(s.context(t), spec, first.take)
		if err != nil {
			t.Fatal(err)
		}
		// The classic builder may begin a step twice, where others remove images.
		if got := slices.Compact(first.of("RUN " + runLines)); !slices.Equal(got, []runtime.StepState{runtime.StepStarted, runtime.StepDone}) {
			t.Errorf("states %v of %v", got, first.states)
		}
		if !slices.Equal(first.logs, []string{"line 1", "line 2", "line 3"}) {
			t.Errorf("logs %q", first.logs)
		}
		again, err := build(s.context(t), spec, second.take)
		if err != nil || again != id {
			t.Errorf("second build: %s, %v; the first was %s", again, err, id)
		}
		if got := second.of("RUN " + runLines); !slices.Contains(got, runtime.StepCached) || len(second.logs) > 0 {
			t.Errorf("second build: states %v, logs %q", got, second.logs)
		}
	})
	t.Run("a failing step is named, with its last lines", func(t *testing.T) {
		var seen steps
		_, err := build(s.context(t), s.dockerfile(tag, freshRun(runFail)), seen.take)
		wantKind(t, err, fault.Build)
		msg := fault.Public(err).Msg
		for _, want := range []string{"RUN " + runFail[:20], "exit code 7", "\nline 11\n", "\nline 30"} {
			if !strings.Contains(msg, want) {
				t.Errorf("message lacks %q: %s", want, msg)
			}
		}
		if got := seen.of("RUN " + runFail[:20]); !slices.Contains(got, runtime.StepFailed) {
			t.Errorf("states %v", seen.states)
		}
	})
	t.Run("a missing base image is named, and what to do about it", func(t *testing.T) {
		spec := runtime.BuildSpec{Labels: s.labels, WriteContext: tarOf("Dockerfile", "FROM registry.invalid/aod-test/none:1\n")}
		_, err := build(s.context(t), spec, nil)
		wantKind(t, err, fault.Build)
		public := fault.Public(err)
		if !strings.Contains(public.Msg, "base image registry.invalid/aod-test/none:1 ") || !strings.Contains(public.Msg, "no registry could be reached") ||
			!strings.Contains(public.Hint, "aod-test/none:1") {
			t.Errorf("message %q, hint %q", public.Msg, public.Hint)
		}
	})
	t.Run("a missing Dockerfile is a Build fault", func(t *testing.T) {
		_, err := build(s.context(t), runtime.BuildSpec{Labels: s.labels, WriteContext: tarOf("README", "x")}, nil)
		wantKind(t, err, fault.Build)
		if msg := fault.Public(err).Msg; !strings.Contains(msg, "Dockerfile") {
			t.Errorf("message %q", msg)
		}
	})
	t.Run("an error of the context's writer is the build's", func(t *testing.T) {
		broken := errors.New("disk on fire")
		_, err := build(s.context(t), runtime.BuildSpec{Labels: s.labels, WriteContext: func(io.Writer) error { return broken }}, nil)
		if !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a build ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(s.context(t))
		defer cancel()
		begun := time.Now()
		_, err := build(ctx, s.dockerfile(tag, freshRun(runSleep)), func(event runtime.BuildEvent) {
			if event.State == runtime.StepStarted && strings.Contains(event.Name, runSleep) {
				cancel()
			}
		})
		wantKind(t, err, fault.Cancelled)
		if took := time.Since(begun); took > testkit.Patience/2 {
			t.Errorf("it took %v", took)
		}
	})
}
