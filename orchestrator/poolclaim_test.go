package orchestrator

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// submitDoc has a run accepted that copies an input file of this name.
func (w *fixture) submitDoc(unit, name, content string) string {
	w.t.Helper()
	files, err := w.service.NewSpool()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := files.Add("doc", name, strings.NewReader(content), 100); err != nil {
		w.t.Fatal(err)
	}
	record, _, err := w.service.Submit(trusted.Context(w.t), spool.Submission{Unit: unit, Input: encoded(orders{Mark: "doc", File: "copy"}), Files: files})
	if err != nil {
		w.t.Fatal(err)
	}
	return record.ID
}

func (w *fixture) wantCopy(r api.Record, content string) {
	w.t.Helper()
	f, _, err := w.service.Files.Open(trusted.Context(w.t), r.ID, "copy")
	if err != nil {
		w.t.Fatalf("%v: %s", err, show(r))
	}
	defer f.Close()
	if raw, err := io.ReadAll(f); err != nil || string(raw) != content {
		w.t.Errorf("it has copied %q, %v", raw, err)
	}
}

func TestInputFilesReachAWaitingSandbox(t *testing.T) {
	t.Parallel()
	w := newPoolFixture(t, map[string]int{"worker": 1, "asker": 1})
	w.asking()
	for _, unit := range []string{"worker", "asker"} {
		for _, name := range []string{"in.txt", "some/where/in.txt"} {
			t.Run(unit+" "+name, func(t *testing.T) {
				w.awaitPoolUnit(unit, "one waits", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 })
				record := w.await(w.submitDoc(unit, name, "hello "+name))
				w.wantWaited(record)
				w.wantCopy(record, "hello "+name)
			})
		}
	}
}

// What a loaded program leaves where its run's input comes is replaced, or the run gets
// another container. Nothing outside is touched.
func TestNothingThatAProgramPlantsIsFollowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		plant func(l loading, outside string) error
		cold  bool
	}{
		{"a directory for the input", func(l loading, _ string) error {
			return os.MkdirAll(filepath.Join(l.dir["/io"], "input.json", "x"), 0o755)
		}, true},
		{"a link for the input", func(l loading, outside string) error {
			return os.Symlink(filepath.Join(outside, "secret"), filepath.Join(l.dir["/io"], "input.json"))
		}, false},
		{"another input", func(l loading, _ string) error {
			return os.WriteFile(filepath.Join(l.dir["/io"], "input.json"), []byte(`{"mark":"evil"}`), 0o444)
		}, false},
		// A container has /io/input read-only: that it can't do what follows isn't all that stands between.
		{"an input file's name", func(l loading, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(l.dir["/io/input"], "sub"), 0o755),
				os.WriteFile(filepath.Join(l.dir["/io/input"], "sub", "in.txt"), []byte("evil"), 0o644))
		}, true},
		{"a link for an input file", func(l loading, outside string) error {
			return errors.Join(os.Mkdir(filepath.Join(l.dir["/io/input"], "sub"), 0o755),
				os.Symlink(filepath.Join(outside, "secret"), filepath.Join(l.dir["/io/input"], "sub", "in.txt")))
		}, true},
		{"a link for an input directory", func(l loading, outside string) error {
			return os.Symlink(outside, filepath.Join(l.dir["/io/input"], "sub"))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newPoolFixture(t, map[string]int{"asker": 1})
			outside := t.TempDir()
			write(t, filepath.Join(outside, "secret"), "untouched")
			w.loads(func(ctx context.Context, l loading) int {
				if !l.ahead {
					return 0
				}
				if err := c.plant(l, outside); err != nil && ctx.Err() == nil { // else it is being removed
					t.Error(err)
				}
				return 0
			})
			w.asking()
			record := w.await(w.submitDoc("asker", "sub/in.txt", "hello"))
			if c.cold {
				w.wantCold(record)
			} else {
				w.wantWaited(record)
			}
			w.wantCopy(record, "hello")
			if w.starts("doc") != 1 || w.starts("evil") != 0 {
				t.Errorf("started %d times", w.starts("doc"))
			}
			raw, err := os.ReadFile(filepath.Join(outside, "secret"))
			if entries, _ := os.ReadDir(outside); err != nil || string(raw) != "untouched" || len(entries) != 1 {
				t.Errorf("outside: %q %v %v", raw, entries, err)
			}
		})
	}
}
