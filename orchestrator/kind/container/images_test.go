package container

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/images"
	"github.com/agent-on-demand/aod/runtime"
)

func (b *harness) count(method string) (n int) {
	for _, call := range b.engine.Calls() {
		if call == method {
			n++
		}
	}
	return n
}

func TestTheImageOfAVersionIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.unit.Version = "1"
	for range 3 {
		b.carriesOut(b.execution())
	}
	asked := b.count("Image")
	b.carriesOut(b.execution())
	if got := b.count("Image"); got != asked || b.count("Build") != 1 {
		t.Errorf("the engine was asked %d times more for it, and has built it %d times", got-asked, b.count("Build"))
	}
	b.unit.Version = "" // a directory may have changed meanwhile
	for range 2 {
		before := b.count("Image")
		b.carriesOut(b.execution())
		if b.count("Image") == before {
			t.Error("the image of a directory is remembered")
		}
	}
}

func TestAnImageThatSomebodyRemovedIsBuiltAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.unit.Version = "1"
	x := b.execution()
	b.carriesOut(x)
	for range 2 {
		if err := b.engine.RemoveImage(t.Context(), x.run.Record.Image.ID); err != nil {
			t.Fatal(err)
		}
		again := b.execution()
		wants(t, b.carriesOut(again), api.Success, 0, "", "")
	}
	if got := b.count("Build"); got != 3 {
		t.Errorf("it was built %d times", got)
	}
}

func TestAnImageThatVanishesAgainAndAgainIsAFault(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.unit.Version = "1"
	b.breaks("Create", fault.New(fault.NotFound, "the engine has no such image"))
	x := b.execution()
	if _, err := x.Attempt(t.Context()); !fault.Is(err, fault.NotFound) {
		t.Errorf("error %v", err)
	}
	if got := b.count("Create"); got != 2 {
		t.Errorf("it was tried %d times", got)
	}
	b.breaks("Create", nil)
	b.ends(x)
}

func TestABuildThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dockerfile string
		kind       fault.Kind
		says       string
	}{
		"a step":         {"FROM debian\nRUN false\nCMD [\"worker\"]\n", fault.Build, ""},
		"no such image":  {"FROM missing\nCMD [\"worker\"]\n", fault.Build, "missing"},
		"nothing to run": {"FROM empty\nCMD []\n", fault.Capsule, "says no program to start"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, map[string]string{"Dockerfile": c.dockerfile})
			b.engine.AddImage(runtime.Image{ID: "sha256:empty", Tags: []string{"empty"}, OS: "linux", Arch: "amd64"})
			b.engine.RunStep = func(context.Context, string, io.Writer) int { return 1 }
			x := b.execution()
			_, err := x.Attempt(t.Context())
			if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v", err)
			}
			if got := b.calls(); got != "" {
				t.Errorf("the engine was asked for %s", got)
			}
			b.ends(x)
		})
	}
}

func TestTheBaseImageIsBuiltWhereItIsNeeded(t *testing.T) {
	t.Parallel()
	quiet := func(runtime.BuildEvent) {}
	b := newBench(t, map[string]string{"Dockerfile": "FROM " + images.BaseName + "\nCMD [\"worker\"]\n"})
	t.Run("not without Debian", func(t *testing.T) {
		_, err := b.execution().Attempt(t.Context())
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err).Hint, "make base") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("before the first capsule that is built on it", func(t *testing.T) {
		b.engine.AddImage(runtime.Image{ID: "sha256:slim", Tags: []string{images.BaseFrom}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64"})
		for range 2 {
			b.carriesOut(b.execution())
		}
		if got := b.count("Build"); got != 2 {
			t.Errorf("%d images were built, want the base and the capsule's", got)
		}
	})
	t.Run("once", func(t *testing.T) {
		if err := b.kind.images.ensureBase(t.Context(), quiet); err != nil || b.count("Build") != 2 {
			t.Errorf("%v, %d builds", err, b.count("Build"))
		}
	})
	t.Run("again, when its short name is that of another version", func(t *testing.T) {
		b.engine.AddImage(runtime.Image{ID: "sha256:older", Tags: []string{images.BaseName + ":latest"}})
		if err := b.kind.images.ensureBase(t.Context(), quiet); err != nil {
			t.Fatal(err)
		}
		latest, err := b.engine.Image(t.Context(), images.BaseName+":latest")
		if err != nil || latest.ID == "sha256:older" || latest.Labels[labelBase] != images.BaseDigest() {
			t.Errorf("%+v, %v", latest, err)
		}
	})
	t.Run("but not while the engine is away", func(t *testing.T) {
		b.breaks("Image", errAway)
		defer b.breaks("Image", nil)
		before := b.count("Build")
		if err := b.kind.images.ensureBase(t.Context(), quiet); !fault.Is(err, fault.Unavailable) || b.count("Build") != before {
			t.Errorf("error %v, %d builds", err, b.count("Build")-before)
		}
	})
}

func TestAnImagesNameIsThatOfItsContent(t *testing.T) {
	t.Parallel()
	kind := newBench(t).kind
	name := func(change map[string]string) string {
		t.Helper()
		u := newBench(t, change).unit
		tag := kind.Image(u)
		if !strings.HasPrefix(tag, "aod-capsule/worker:") {
			t.Errorf("its name is %q", tag)
		}
		return tag
	}
	same, again := name(nil), name(nil)
	other := name(map[string]string{"more.txt": "x"})
	base := name(map[string]string{"Dockerfile": "FROM " + images.BaseName + "\nCMD [\"worker\"]\n"})
	if same != again || same == other || same == base {
		t.Errorf("names %s, %s, %s, %s", same, again, other, base)
	}
	recipe, err := kind.images.recipeOf(newBench(t, map[string]string{"Dockerfile": "FROM " + images.BaseName + "\nCMD [\"worker\"]\n"}).unit)
	if err != nil || recipe.Digest != digest(recipe.Labels[labelContext]+images.BaseDigest()) || recipe.Labels[labelBase] != images.BaseDigest() {
		t.Errorf("the digest doesn't cover the base image: %+v, %v", recipe, err)
	}
}

func TestOnlySoManyContainersStartAtOnce(t *testing.T) {
	t.Parallel()
	starts := semaphore.NewWeighted(2)
	for range 2 {
		if err := acquire(t.Context(), starts); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("because"))
	if err := acquire(ctx, starts); err == nil || err.Error() != "because" {
		t.Errorf("a third one: %v", err)
	}
	starts.Release(1)
	if err := acquire(t.Context(), starts); err != nil {
		t.Error(err)
	}
}

func TestAnImageThatIsTooLargeIsRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.AddImage(runtime.Image{ID: "sha256:large", Tags: []string{"large"}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64", SizeBytes: 9<<20 + 1})
	b.unit = load(t, map[string]string{"Dockerfile": "FROM large\nCMD [\"worker\"]\n", "tools.yaml": worker["tools.yaml"], "agent.yaml": worker["agent.yaml"], "schema.json": worker["schema.json"]})
	b.unit.Policy.Bounds = unit.Bounds{ImageBytes: 9 << 20, Rules: map[string]string{"image": "policy.uploads.image"}}
	isThere := func() bool {
		_, err := b.engine.Image(t.Context(), b.kind.Image(b.unit))
		return err == nil
	}
	refused := func(when string) {
		t.Helper()
		_, _, _, err := b.kind.Build(t.Context(), b.unit, quiet)
		public := fault.Public(err)
		if !fault.Is(err, fault.Forbidden) || !strings.Contains(public.Msg, "policy.uploads.image doesn't allow it an image of 10MiB") || !strings.HasSuffix(public.Hint, "unit.worker.policy.image: 10MiB") {
			t.Errorf("%s: %v, %q", when, err, public.Hint)
		}
		if isThere() {
			t.Errorf("%s: it is there", when)
		}
	}
	refused("when it is built")
	b.unit.Policy.Bounds.ImageBytes = 10 << 20
	if _, _, _, err := b.kind.Build(t.Context(), b.unit, quiet); err != nil || !isThere() {
		t.Errorf("within its bound: %v", err)
	}
	b.unit.Policy.Bounds.ImageBytes = 1
	refused("when the bound was lowered")
	if _, err := b.engine.Image(t.Context(), "large"); err != nil {
		t.Errorf("what it stands on: %v", err)
	}
}
