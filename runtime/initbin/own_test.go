package initbin

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// build builds a small program.
func build(t *testing.T, dir, text string, flags ...string) string {
	t.Helper()
	source, file := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-trimpath", "-o", file}, flags...), source)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

const nothing = "package main\n\nfunc main() {}\n"

func TestAProgramIsItsOwnInit(t *testing.T) {
	file := build(t, t.TempDir(), nothing)
	p, err := ownFrom(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var installer Installer
	path, err := installer.install(dir, p)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(filepath.Base(path), ownPrefix) {
		t.Errorf("it is called %s", path)
	}
	want, _ := os.ReadFile(file)
	if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
		t.Errorf("%d bytes of %d were installed: %v", len(got), len(want), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != mode {
		t.Errorf("%v, %v", info, err)
	}
	t.Run("and has another name with another content", func(t *testing.T) {
		other, err := ownFrom(build(t, t.TempDir(), "package main\n\nfunc main() { println(1) }\n"))
		if err != nil || other.name == p.name {
			t.Errorf("both are called %s: %v", other.name, err)
		}
	})
	t.Run("and the same elsewhere", func(t *testing.T) {
		if same, err := ownFrom(path); err != nil || same.name != p.name {
			t.Errorf("%s and %s: %v", same.name, p.name, err)
		}
	})
	t.Run("also without a build's id", func(t *testing.T) {
		a, aErr := ownFrom(build(t, t.TempDir(), nothing, "-ldflags=-buildid="))
		b, bErr := ownFrom(build(t, t.TempDir(), "package main\n\nfunc main() { println(1) }\n", "-ldflags=-buildid="))
		if aErr != nil || bErr != nil || a.name == b.name {
			t.Errorf("%s, %v; %s, %v", a.name, aErr, b.name, bErr)
		}
	})
	t.Run("and is written again when it is cut", func(t *testing.T) {
		if err := errors.Join(os.Chmod(path, 0o755), os.Truncate(path, 3), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		if _, err := new(Installer).install(dir, p); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != string(want) {
			t.Errorf("%d bytes of %d", len(got), len(want))
		}
	})
}

func TestAProgramThatNeedsALoaderIsNoInit(t *testing.T) {
	// A PIE has a loader also without C.
	file := build(t, t.TempDir(), nothing, "-buildmode=pie")
	_, err := ownFrom(file)
	if !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.Public(err).Hint, "CGO_ENABLED=0") {
		t.Errorf("got %v", err)
	}
}

func TestWhoOffersNothingIsNoInit(t *testing.T) {
	t.Cleanup(func() { offered.Store(false) })
	for _, c := range []struct {
		offers bool
		arch   string
	}{{false, goruntime.GOARCH}, {true, map[string]string{"amd64": "arm64"}[goruntime.GOARCH]}} {
		offered.Store(c.offers)
		_, err := own(c.arch)
		if !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.Public(err).Hint, "make build") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestCopiesOfOtherBuildsAreRemovedInTime(t *testing.T) {
	dir := t.TempDir()
	p, err := ownFrom(build(t, t.TempDir(), nothing))
	if err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{ownPrefix + "old": 25 * time.Hour, ownPrefix + "new": time.Hour, "aod-init-old": 1000 * time.Hour} {
		path, at := filepath.Join(dir, name), time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, nil, 0o555), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := new(Installer).install(dir, p); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{"aod-init-old", ownPrefix + "new", p.name}
	if err != nil || len(names) != 3 || strings.Contains(strings.Join(names, " "), ownPrefix+"old") {
		t.Errorf("%v, want %v: %v", names, want, err)
	}
}
