package runtime

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// modes lists all that is in a layout, with its mode.
func modes(t *testing.T, l Layout) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(l.Dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		rel, _ := filepath.Rel(l.Dir, name)
		all = append(all, rel+" "+info.Mode().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// use leaves behind what a run and its host do.
func use(t *testing.T, l Layout) {
	t.Helper()
	mess(t, l)
	if _, err := l.Publish(collected(t, l), filepath.Join(filepath.Dir(l.Dir), "published")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"io/input.json", "io/output.json", "io/input/doc", "io/input/deep/doc", "io/handoff/x", "io/.hidden/y", "io/handoff/incoming/z",
		"incoming/file", "outgoing/sub/file", "workspace/cache/file", "placed/1", "posted.json", "calls/1/in/0",
	} {
		write(t, l.path(name), "secret")
	}
	link(t, filepath.Dir(l.Dir), l.path("workspace/away"))
	link(t, "../input", l.path("io/handoff/link"))
	fifo(t, l.path("outgoing/fifo"))
	for _, dir := range []string{"io/.hidden", "workspace/cache", "outgoing/sub"} {
		if err := os.Chmod(l.path(dir), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARenewedLayoutIsAsNew(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	l := newLayout(t)
	fresh := modes(t, l)
	for range 2 {
		use(t, l)
		if err := l.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fresh, modes(t, l)); diff != "" {
			t.Error(diff)
		}
		published := filepath.Join(filepath.Dir(l.Dir), "published")
		if read(t, published+"/a") != "content" {
			t.Error("what was published is gone")
		}
		if err := os.RemoveAll(published); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALayoutThatTheProgramRebuiltIsNotRenewed(t *testing.T) {
	for name, rebuild := range map[string]string{
		"a link in the place of a directory":  "io/handoff>link",
		"a file in the place of a directory":  "io/handoff/incoming>file",
		"a mount point that was moved":        "io/handoff/outgoing>moved",
		"a link in the place of a mount":      "io/handoff/outgoing>link",
		"more than a run may have, very deep": "io/" + strings.Repeat("d/", safefs.MaxDepth+2) + ">deep",
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t)
			write(t, filepath.Join(filepath.Dir(l.Dir), "outside/incoming/kept"), "kept")
			at, how, _ := strings.Cut(rebuild, ">")
			if how == "deep" {
				if err := os.MkdirAll(l.path(at), 0o755); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Rename(l.path(at), l.path("io/moved")); err != nil {
				t.Fatal(err)
			}
			switch how {
			case "link":
				link(t, filepath.Join(filepath.Dir(l.Dir), "outside"), l.path(at))
			case "file":
				write(t, l.path(at), "")
			}
			if err := l.Reset(t.Context()); err == nil {
				t.Error("nothing was wrong with it")
			}
			if read(t, filepath.Join(filepath.Dir(l.Dir), "outside/incoming/kept")) != "kept" {
				t.Error("it reached out of there")
			}
		})
	}
}

func TestALogIsOneRunsAtATime(t *testing.T) {
	const one, two = "\x1eend 1\x1e", "\x1eend 2\x1e"
	var got []string
	var log *Log
	log = NewLog(20, func(l LogLine) {
		got = append(got, l.Stream[3:]+" "+l.Text)
		if isOver(log) {
			t.Errorf("it was over before %q", l.Text)
		}
	})
	feed := func(stream string, lines ...string) {
		log.read(stream, strings.NewReader(strings.Join(lines, "\n")+"\n"))
	}
	feed("stdout", "loading")
	log.BeginShare(one)
	feed("stdout", "a", "not ended"+one, "nobody's")
	if isOver(log) {
		t.Error("stderr goes on")
	}
	feed("stderr", "b", "far more than the limit is", one, two, "nobody's")
	if _, truncated := log.Bytes(); !isOver(log) || !truncated {
		t.Error("both have ended")
	}
	log.BeginShare(two)
	if kept, truncated := log.Bytes(); kept != 0 || truncated || isOver(log) {
		t.Errorf("%d %t", kept, truncated)
	}
	feed("stdout", "c", one, two)
	feed("stderr", "d"+two)
	if !isOver(log) {
		t.Error("both have ended")
	}
	want := []string{"out loading", "out a", "out not ended", "err b", "out c", "out " + one, "err d"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func isOver(l *Log) bool {
	select {
	case <-l.ShareEnded():
		return true
	default:
		return false
	}
}

func TestALogThatIsReadAgainBeginsWithItsRun(t *testing.T) {
	const one, two = "\x1eend 1\x1e", "\x1eend 2\x1e"
	var got []string
	log := NewLog(10, func(l LogLine) { got = append(got, l.Text) })
	log.SkipThrough(one)
	log.BeginShare(two)
	log.Skip(1, 0)
	log.drain(&Streams{
		Stdout: strings.NewReader("of the first run, which wrote much\n" + one + "\nseen\nnew\n" + two + "\n"),
		Stderr: strings.NewReader("also of the first\n"),
	})
	if diff := cmp.Diff([]string{"new"}, got); diff != "" {
		t.Error(diff)
	}
	if kept, truncated := log.Bytes(); kept != 9 || truncated {
		t.Errorf("%d %t", kept, truncated)
	}
}
