package capsuleapi

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/handofftest"
)

func TestFilesAreCarriedUnderTheirCleanNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.out("a.txt", "A")
	w.out("d/b.txt", "B")
	w.call(200, `{"n":1e2,"f":"/io/handoff/outgoing/a.txt","o":{"f":"./d//b.txt"},"fs":["a.txt","d/b.txt"]}`)
	if diff := cmp.Diff(map[string]string{"a.txt": "A", "d/b.txt": "B"}, w.runs.Copied[0]); diff != "" {
		t.Error(diff)
	}
	const want = `{"f":"a.txt","fs":["a.txt","d/b.txt"],"n":1e2,"o":{"f":"d/b.txt"}}`
	if got := string(w.runs.Calls[0].Args.JSON()); got != want {
		t.Errorf("args %s, want %s", got, want)
	}
	for _, f := range w.runs.Calls[0].Files {
		if _, err := f.Open.Stat(); err == nil {
			t.Errorf("%s is still open", f.Name)
		}
	}
}

func TestArgumentsStayAsTheyWereGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.out("a", "A")
	const args = `{"n":1.0,"fs":["a"],"f":"a"}`
	w.call(200, args)
	if got := string(w.runs.Calls[0].Args.JSON()); got != args {
		t.Errorf("args %s", got)
	}
}

// hostile are things that a capsule may leave where a file was named.
var hostile = []struct {
	name string
	make func(t *testing.T, path string)
	want string
}{
	{"a link within outgoing", func(t *testing.T, path string) {
		write(t, filepath.Dir(path)+"/real", "x")
		must(t, os.Symlink("real", path))
	}, "which is a symbolic link"},
	{"a link to /etc/passwd", func(t *testing.T, path string) { must(t, os.Symlink("/etc/passwd", path)) }, "which is a symbolic link"},
	{"a link out of there", func(t *testing.T, path string) { must(t, os.Symlink("../../../secret", path)) }, "which is a symbolic link"},
	{"a directory", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o755)) }, "which is a directory"},
	{"a FIFO", func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o666)) }, "which is a FIFO"},
	{"a socket", func(t *testing.T, path string) {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Skip("no socket with so long a name: ", err)
		}
		t.Cleanup(func() { l.Close() })
	}, "which is a socket"},
	{"a device", func(t *testing.T, path string) {
		if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|5); err != nil {
			t.Skip("no device can be made here: ", err)
		}
	}, "which is a device"},
	{"nothing", func(*testing.T, string) {}, "which is not in /io/handoff/outgoing"},
}

func TestNothingButARegularFileIsCarried(t *testing.T) {
	t.Parallel()
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			write(t, w.path("secret"), "s3cret")
			c.make(t, w.path("io/handoff/outgoing/x"))
			p := answered[problem](t, w.do("POST", "/handoff", `{"target":"callee","args":{"f":"x"}}`), 422)
			if len(p.Findings) != 1 || !strings.Contains(p.Findings[0].Message, c.want) || p.Findings[0].Pointer != "/f" || p.Findings[0].Hint == "" {
				t.Errorf("%+v", p.Findings)
			}
			if w.runs.Started() != 0 || w.spent() != 0 {
				t.Error("it was started, or counted")
			}
		})
	}
}

func TestALinkOnTheWayIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.out("real/f", "x")
	must(t, os.Symlink("real", w.path("io/handoff/outgoing/d")))
	p := answered[problem](t, w.do("POST", "/handoff", `{"target":"callee","args":{"f":"d/f"}}`), 422)
	if len(p.Findings) != 1 || !strings.Contains(p.Findings[0].Message, "a directory on the way is a symbolic link") {
		t.Errorf("%+v", p.Findings)
	}
}

func TestNoLinkOnTheWayIsFollowed(t *testing.T) {
	t.Parallel()
	cases := map[string]func(t *testing.T, w *harness){
		"a directory of outgoing": func(t *testing.T, w *harness) {
			w.out("real/f", "x")
			must(t, os.Symlink("real", w.path("io/handoff/outgoing/d")))
		},
		"outgoing itself": func(t *testing.T, w *harness) {
			must(t, os.Rename(w.path("io/handoff/outgoing"), w.path("io/handoff/old")))
			must(t, os.Symlink(w.path("elsewhere"), w.path("io/handoff/outgoing")))
		},
		"the directory above it": func(t *testing.T, w *harness) {
			must(t, os.Rename(w.path("io/handoff"), w.path("io/old")))
			write(t, w.path("elsewhere/outgoing/d/f"), "s3cret")
			must(t, os.Symlink(w.path("elsewhere"), w.path("io/handoff")))
		},
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			write(t, w.path("elsewhere/d/f"), "s3cret")
			make(t, w)
			w.call(422, `{"f":"d/f"}`)
			if w.runs.Started() != 0 {
				t.Errorf("it was carried: %v", w.runs.Copied)
			}
		})
	}
}

func TestAFileThatGrowsIsCopiedUpToItsSize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.out("f", "0123456789")
	w.out("g", "0123456789")
	first := true
	w.runs.Outcome = func(id string, _ handoff.Call) handoff.Result {
		return handoff.Result{ID: id, Ended: true, State: "completed", Success: true}
	}
	grow := func() {
		if first {
			write(t, w.path("io/handoff/outgoing/f"), strings.Repeat("x", 100))
			must(t, os.Truncate(w.path("io/handoff/outgoing/g"), 3))
			first = false
		}
	}
	w.calls = growing{w.runs, grow}
	w.renew()
	w.call(200, `{"fs":["f","g"]}`)
	if diff := cmp.Diff(map[string]string{"f": strings.Repeat("x", 10), "g": "012"}, w.runs.Copied[0]); diff != "" {
		t.Error(diff)
	}
}

func TestManyNamesAreRefusedBeforeAnythingIsOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var names strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&names, `,"%d"`, i)
	}
	p := answered[problem](t, w.do("POST", "/handoff", `{"target":"callee","args":{"fs":["x"`+names.String()+`]}}`), 413)
	if handoff.Rule(p.Rule) != handoff.RuleSize {
		t.Errorf("%+v", p)
	}
}

func TestOneNameInManyPlacesIsCarriedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.out("x", "1")
	w.call(200, `{"fs":["x"`+strings.Repeat(`,"./x"`, 5000)+`]}`)
	if len(w.runs.Calls[0].Files) != 1 || strings.Contains(string(w.runs.Calls[0].Args.JSON()), "./") {
		t.Errorf("%d files", len(w.runs.Calls[0].Files))
	}
}

func TestAFileInAFieldWithALongNameIsCarried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Add("callee", `{"input":{"additionalProperties":{"additionalProperties":{"type":"string","format":"file_path"}}},"output":{}}`)
	w.out("x", "1")
	key := strings.Repeat("k", 2000)
	w.call(200, `{"`+key+`":{"`+key+`":"./x","`+key+`2":"x","`+key+`3":"./x"}}`)
	if got, want := string(w.runs.Calls[0].Args.JSON()), `{"`+key+`":{"`+key+`":"x","`+key+`2":"x","`+key+`3":"x"}}`; got != want {
		t.Errorf("args end with %s", got[len(got)-30:])
	}
}

func TestAFileOfTheLargestSizeIsCarried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits.FileBytes = 10
	w.renew()
	w.out("x", "0123456789")
	w.call(200, `{"f":"x"}`)
	w.out("x", "0123456789a")
	w.call(413, `{"f":"x"}`)
}

// growing has something happen between the opening and the copying of files.
type growing struct {
	*handofftest.Runs
	grow func()
}

func (g growing) Start(ctx context.Context, call handoff.Call) (string, error) {
	g.grow()
	return g.Runs.Start(ctx, call)
}
