package servicetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/internal/access"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

var update = flag.Bool("update", false, "write the goldens anew")

// scene is a home with runs in it that a process leaves to the next one.
type scene struct {
	options []servicetest.Option
	// begin has everything begin, and returns when it is as far as it is to be when the process ends.
	begin func(h *servicetest.Harness)
	// meanwhile is what happens while no process is there; nil: nothing.
	meanwhile func(h *servicetest.Harness)
	// goOn has all that was left come to its end in the next process.
	goOn func(h *servicetest.Harness)
	// plain are words for what differs from one process to the next, and learn adds those that are known
	// when all has begun; nil: none.
	plain map[string]string
	learn func(h *servicetest.Harness)
	// dies is the error of a run that can't go on after a kill at one moment; "": each can.
	dies string
	// begins is set where runs begin by themselves, also after a kill.
	begins bool
	// judge holds what has come to its end against what has to be, after any kill; nil: nothing more.
	judge func(h *servicetest.Harness)
	// found is set when programs of the scene were begun by an earlier process.
	found atomic.Bool
}

// What a process leaves is stored in the same form as ever: the goldens were written by an earlier
// version, which may have left just that to this one.
func TestWhatIsStoredHasTheSameForm(t *testing.T) {
	t.Parallel()
	for name, make := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := make(t)
			h := servicetest.New(t, s.options...)
			s.begin(h)
			h.Stop()
			if s.learn != nil {
				s.learn(h)
			}
			wantGolden(t, name+".left", newWords(h, s.plain).normal(t, takeSnapshot(h)))
			s.goesOn(h, name)
		})
	}
}

// What an earlier version left comes to the same end, and nothing of it is lost on the way.
func TestWhatWasStoredIsReadAgain(t *testing.T) {
	t.Parallel()
	if *update {
		t.Skip("the goldens that it reads are being written")
	}
	for name, make := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := make(t)
			away := servicetest.Set(func(s *servicetest.Settings) { s.Away = true })
			h := servicetest.New(t, append(s.options, away)...)
			if s.learn != nil {
				s.learnElsewhere(t)
			}
			s.found.Store(true)
			putBack(h, readGolden(t, name+".left"), s.plain)
			s.goesOn(h, name)
		})
	}
}

// learnElsewhere has all begin in a home of its own, for what is known by then.
func (s *scene) learnElsewhere(t *testing.T) {
	t.Helper()
	h := servicetest.New(t, append(s.options, servicetest.Set(func(s *servicetest.Settings) { s.Keeps = true }))...)
	s.begin(h)
	h.Stop()
	s.learn(h)
}

// goesOn has another process go on, and compares what is kept of runs that have come to their ends.
func (s *scene) goesOn(h *servicetest.Harness, name string) {
	h.Helper()
	if s.meanwhile != nil {
		s.meanwhile(h)
	}
	h.Start()
	s.goOn(h)
	h.Within("all is over", func() bool { return rests(h) })
	h.Stop()
	wantGolden(h, name+".over", newWords(h, s.plain).normal(h, takeSnapshot(h)))
}

// rests reports whether no run goes on.
func rests(h *servicetest.Harness) bool {
	h.Helper()
	page, err := h.Service.Runs.List(access.WithServer(context.Background()), api.Filter{Active: true})
	if err != nil {
		h.Fatal(err)
	}
	return len(page.Runs) == 0
}

// putBack makes the home of a golden, and its containers, whose programs go on.
func putBack(h *servicetest.Harness, left snapshot, plain map[string]string) {
	h.Helper()
	words := newReading(h, plain)
	words.real(h, snapshot{Files: left.Files}).restoreFiles(h, h.Settings.Home)
	linkSandboxes(h, words.real(h, snapshot{Rows: map[string][]map[string]any{"runs": left.Rows["runs"]}}).Rows["runs"])
	for _, i := range words.real(h, snapshot{Images: left.Images}).Images {
		h.Engine.AddImage(runtime.Image{
			ID: i.ID, Tags: i.Tags, Labels: i.Labels, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64",
		})
	}
	for i, c := range left.Containers {
		id := fmt.Sprintf("%064x", 1000+i)
		words.known[c.ID], c.ID = id, id
		begun(h, words.real(h, snapshot{Containers: []keptContainer{c}}).Containers[0])
	}
	words.real(h, snapshot{Rows: left.Rows}).restoreRows(h, h.Settings.Home)
}

// linkSandboxes leads from where a sandbox waited, and was mounted, to where its directories were moved
// for a run.
func linkSandboxes(h *servicetest.Harness, runs []map[string]any) {
	h.Helper()
	for _, row := range runs {
		var private struct {
			Kind struct{ Sandboxes map[string]string }
		}
		if err := json.Unmarshal(servicetest.JSON(row["private"]), &private); err != nil {
			h.Fatal(err)
		}
		for attempt, sandbox := range private.Kind.Sandboxes {
			moved := filepath.Join(h.Settings.Home, "runs", row["id"].(string), attempt)
			waited := filepath.Join(h.Settings.Home, "pool", sandbox)
			if err := os.Symlink(moved, waited); err != nil && !errors.Is(err, fs.ErrExist) { // not moved yet
				h.Fatal(err)
			}
		}
	}
}

// parkMessage starts a parked init without anything of its own: a length, a stdin, a stdout, the number
// of arguments, these, and the environment.
const parkMessage = "\x00\x00\x00\x04\x00\x000\x00"

// begun has a container that was started by a process that is gone. One that waits for its run begins
// only when its directories have been moved to that.
func begun(h *servicetest.Harness, c keptContainer) {
	h.Helper()
	aod, err := os.Open(c.Mounts[path.Dir(initreport.ControlPath)]) // the path of the socket is too long for an address
	if err != nil {
		h.Fatal(err)
	}
	defer aod.Close()
	listener, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", aod.Fd(), path.Base(initreport.ControlPath)))
	if err != nil {
		h.Fatal(err)
	}
	defer listener.Close()
	h.Engine.Adopt(c.ID, c.spec())
	if err := h.Engine.Start(access.WithServer(context.Background()), c.ID); err != nil {
		h.Fatal(err)
	}
	if slices.Contains(c.Entrypoint, initreport.ControlPath) {
		host, err := listener.Accept()
		if err != nil {
			h.Fatal(err)
		}
		if slices.Contains(c.Entrypoint, "-park") && c.moved() {
			_, err = host.Write([]byte(parkMessage))
		}
		_ = host.Close() // as that of a process that dies
		if err != nil {
			h.Fatal(err)
		}
	}
}

// moved reports whether the container's directories stand at a run's.
func (c keptContainer) moved() bool {
	info, err := os.Lstat(filepath.Dir(c.Mounts["/io"]))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

func goldenPath(name string) string { return filepath.Join("testdata", name+".json") }

func readGolden(t testing.TB, name string) (s snapshot) {
	t.Helper()
	raw, err := os.ReadFile(goldenPath(name))
	if err == nil {
		err = unmarshal(raw, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unmarshal leaves numbers as they are written.
func unmarshal(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}

func wantGolden(t testing.TB, name string, got snapshot) {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(got); err != nil {
		t.Fatal(err)
	}
	if *update {
		servicetest.Write(t, goldenPath(name), text.String())
		return
	}
	want, err := os.ReadFile(goldenPath(name))
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text.String(), "\n"))
		t.Errorf("%s (-stored by earlier versions +stored now):\n%s", name, diff)
	}
}
