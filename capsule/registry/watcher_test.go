package registry

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestAWatcherWaitsForChanges(t *testing.T) {
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"Dockerfile": "FROM x", "agent.yaml": "name: u", "src/main.py": "1", "tests/a.json": "{}", ".dockerignore": "out\ntests\n", "out/x": "",
	} {
		put(name, text)
	}
	w := NewWatcher(dir, data)
	awaited := func(t *testing.T) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience) // a slow look lengthens the pauses
		defer cancel()
		if err := w.Await(ctx); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func()
	}{
		{"an edited file", func() { put("src/main.py", "2") }},
		{"a new file", func() { put("src/more.py", "x") }},
		{"a new directory", func() { put("lib/x", "x") }},
		{"a file that goes", func() { _ = os.Remove(filepath.Join(dir, "src/more.py")) }},
		{"a test case, which no image has", func() { put("tests/a.json", `{"input":{}}`) }},
		{"a file that isn't the unit's", func() { _ = os.WriteFile(data, []byte("x"), 0o644) }},
		{"an edit that breaks the unit", func() { _ = os.Remove(filepath.Join(dir, "Dockerfile")) }},
		{"its mend", func() { put("Dockerfile", "FROM y") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.change()
			awaited(t)
		})
	}
	t.Run("not for what is ignored, and not for the same again", func(t *testing.T) {
		put("out/y", "new")
		put("src/main.py", "2")
		quiet, cancel := context.WithTimeout(t.Context(), 5*watchPause)
		defer cancel()
		if err := w.Await(quiet); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it came back with %v", err)
		}
		put("src/main.py", "3") // and it isn't deaf
		awaited(t)
	})
}
