package servicetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

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
	// goOn has all that was left come to its end in the next process.
	goOn func(h *servicetest.Harness)
	// plain are words for what differs from one process to the next.
	plain map[string]string
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
			wantGolden(t, name+".left", newWords(h, s.plain).normal(t, takeSnapshot(h)))
			h.Start()
			s.goOn(h)
			wantOver(h, name, s.plain)
		})
	}
}

// What an earlier version left comes to the same end, and nothing of it is lost on the way.
func TestWhatWasStoredIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, make := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := make(t)
			away := servicetest.Set(func(s *servicetest.Settings) { s.Away = true })
			h := servicetest.New(t, append(s.options, away)...)
			s.found.Store(true)
			putBack(h, readGolden(t, name+".left"), s.plain)
			h.Start()
			s.goOn(h)
			wantOver(h, name, s.plain)
		})
	}
}

// wantOver compares what is kept of runs that have come to their ends.
func wantOver(h *servicetest.Harness, name string, plain map[string]string) {
	h.Helper()
	h.Within("all is over", func() bool {
		page, err := h.Service.List(context.Background(), api.Filter{Limit: 100})
		if err != nil {
			h.Fatal(err)
		}
		return !slices.ContainsFunc(page.Runs, func(r api.Summary) bool { return r.FinishedAt == nil })
	})
	h.Stop()
	wantGolden(h, name+".over", newWords(h, plain).normal(h, takeSnapshot(h)))
	h.Start()
}

// putBack makes the home of a golden, and its containers, whose programs go on.
func putBack(h *servicetest.Harness, left snapshot, plain map[string]string) {
	h.Helper()
	words := newReading(h, plain)
	words.real(h, snapshot{Files: left.Files}).restoreFiles(h, h.Settings.Home)
	for _, i := range words.real(h, snapshot{Images: left.Images}).Images {
		h.Engine.AddImage(runtime.Image{ID: i.ID, Tags: i.Tags, Labels: i.Labels, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64"})
	}
	for _, c := range left.Containers {
		word := c.ID
		c.ID = ""
		words.known[word] = goesOn(h, words.real(h, snapshot{Containers: []keptContainer{c}}).Containers[0])
	}
	words.real(h, snapshot{Rows: left.Rows}).restoreRows(h, h.Settings.Home)
}

// goesOn makes a container whose program was begun by a process that is gone, and returns its id.
func goesOn(h *servicetest.Harness, c keptContainer) string {
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
	id, err := h.Engine.Create(context.Background(), c.spec())
	if err == nil {
		err = h.Engine.Start(context.Background(), id)
	}
	if err != nil {
		h.Fatal(err)
	}
	if slices.Contains(c.Entrypoint, initreport.ControlPath) {
		host, err := listener.Accept()
		if err != nil {
			h.Fatal(err)
		}
		_ = host.Close() // as that of a process that dies
	}
	return id
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
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text.String(), "\n")); diff != "" {
		t.Errorf("%s (-stored by earlier versions +stored now):\n%s", name, diff)
	}
}
