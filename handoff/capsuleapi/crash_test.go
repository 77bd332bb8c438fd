package capsuleapi

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/safefs"
)

// TestACrashAtEachStep leaves what a process would that dies at a step, and asks again.
func TestACrashAtEachStep(t *testing.T) {
	t.Parallel()
	begun := `{"id":"` + idOf(100) + `","names":["a","d/b"]}`
	cases := []struct {
		name  string
		leave func(w *harness)
	}{
		{"before anything", func(*harness) {}},
		{"while the plan is written", func(w *harness) { write(t, w.path("placed/"+safefs.TempPrefix+"placing.json"), begun[:10]) }},
		{"after the plan", func(w *harness) { write(t, w.path("placed/placing.json"), begun) }},
		{"while a file is copied", func(w *harness) {
			write(t, w.path("placed/placing.json"), begun)
			write(t, w.path("io/handoff/incoming/"+".aod-partial"), "half")
		}},
		{"between two files", func(w *harness) {
			write(t, w.path("placed/placing.json"), begun)
			write(t, w.path("io/handoff/incoming/a"), "of before")
			must(t, os.Mkdir(w.path("io/handoff/incoming/d"), 0o755))
		}},
		{"before the record", func(w *harness) {
			write(t, w.path("placed/placing.json"), begun)
			write(t, w.path("placed/"+safefs.TempPrefix+idOf(100)+".json"), "[")
			write(t, w.path("io/handoff/incoming/a"), "of before")
			write(t, w.path("io/handoff/incoming/d/b"), "of before")
		}},
		{"in another handoff", func(w *harness) {
			write(t, w.path("placed/placing.json"), strings.Replace(begun, idOf(100), idOf(99), 1))
			write(t, w.path("io/handoff/incoming/a"), "of another")
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.leave(w)
			w.makes("a", "d/b")
			w.call(200, `{}`)
			if diff := cmp.Diff([]string{"a", "d", "d/b"}, w.arrived()); diff != "" {
				t.Error(diff)
			}
			if got := read(t, w.path("io/handoff/incoming/a")); got != idOf(100) {
				t.Errorf("it holds %q", got)
			}
			if left := listing(t, w.path("placed")); !slices.Equal(left, []string{idOf(100) + ".json"}) {
				t.Errorf("the journal holds %q", left)
			}
		})
	}
}

func TestACrashAfterTheRecordPlacesNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makes("a")
	first := w.call(200, `{}`)
	write(t, w.path("placed/placing.json"), `{"id":"`+idOf(100)+`","names":["a"]}`)
	w.renew()
	if diff := cmp.Diff(first, answered[finished](t, w.do("GET", "/handoff/"+idOf(100), ""), 200)); diff != "" {
		t.Error(diff)
	}
	w.makes("b")
	w.call(200, `{}`) // which looks for what is to be undone
	if diff := cmp.Diff([]string{"a", "b"}, w.arrived()); diff != "" {
		t.Error(diff)
	}
}

func TestAFailureLeavesNothingAndMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ breakIt, mend func(w *harness) }{
		"a file that isn't there": {
			func(w *harness) { must(t, os.Rename(w.path("results/"+idOf(100)+"/z"), w.path("z"))) },
			func(w *harness) { must(t, os.Rename(w.path("z"), w.path("results/"+idOf(100)+"/z"))) },
		},
		"a link in its place": {
			func(w *harness) {
				must(t, os.Rename(w.path("results/"+idOf(100)+"/z"), w.path("z")))
				must(t, os.Symlink("/etc/passwd", w.path("results/"+idOf(100)+"/z")))
			},
			func(w *harness) { must(t, os.Rename(w.path("z"), w.path("results/"+idOf(100)+"/z"))) },
		},
		"a record that can't be written": {
			func(w *harness) { must(t, os.MkdirAll(w.path("placed/"+safefs.TempPrefix+idOf(100)+".json"), 0o755)) },
			func(w *harness) { must(t, os.Remove(w.path("placed/"+safefs.TempPrefix+idOf(100)+".json"))) },
		},
		"a plan that can't be written": {
			func(w *harness) { must(t, os.MkdirAll(w.path("placed/"+safefs.TempPrefix+"placing.json"), 0o755)) },
			func(w *harness) { must(t, os.Remove(w.path("placed/"+safefs.TempPrefix+"placing.json"))) },
		},
		"incoming that is a link": {
			func(w *harness) {
				must(t, os.Rename(w.path("io/handoff"), w.path("io/old")))
				must(t, os.Symlink(w.path("io/old"), w.path("io/handoff")))
			},
			func(w *harness) {
				must(t, os.Remove(w.path("io/handoff")))
				must(t, os.Rename(w.path("io/old"), w.path("io/handoff")))
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.makes("a", "d/b", "z")
			w.call(200, `{}`) // so that the results are there
			must(t, os.RemoveAll(w.path("io/handoff/incoming")))
			must(t, os.RemoveAll(w.path("placed")))
			must(t, os.Mkdir(w.path("io/handoff/incoming"), 0o755))
			must(t, os.Mkdir(w.path("placed"), 0o755))
			c.breakIt(w)
			answered[problem](t, w.do("GET", "/handoff/"+idOf(100), ""), 503)
			c.mend(w)
			if left := append(w.arrived(), listing(t, w.path("placed"))...); len(left) != 0 {
				t.Errorf("left behind: %q", left)
			}
			if log := w.log.String(); strings.Contains(log, "/z") {
				t.Errorf("a name is logged: %s", log)
			}
			answer := answered[finished](t, w.do("GET", "/handoff/"+idOf(100), ""), 200)
			if answer.Files[0].Path != "/io/handoff/incoming/a" || !slices.Contains(w.arrived(), "z") {
				t.Errorf("%+v", answer.Files)
			}
		})
	}
}
