package capsuleapi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
)

// opened is a file that a caller has opened.
func opened(t *testing.T, content string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, content)
	f, err := os.Open(path)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestACallerWithDirectoriesMayGiveOpenedFilesToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.out("a", "of outgoing")
	_, err := w.h.broker.Start(t.Context(), handoff.Request{
		Target: "callee", Args: []byte(`{"fs":["a","b"]}`), Files: map[string]*os.File{"b": opened(t, "given")},
	})
	must(t, err)
	if diff := cmp.Diff(map[string]string{"a": "of outgoing", "b": "given"}, w.runs.Copied[0]); diff != "" {
		t.Error(diff)
	}
}

func TestFilesOfAResultAreDeliveredIntoADirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makes("a")
	id, err := w.h.broker.Start(t.Context(), handoff.Request{Target: "callee"})
	must(t, err)
	result, err := w.h.broker.Await(t.Context(), id)
	must(t, err)
	files, err := w.h.broker.Deliver(t.Context(), id, result.Files)
	must(t, err)
	if len(files) != 1 || files[0].Path != "/io/handoff/incoming/a" || read(t, w.path("io/handoff/incoming/a")) != id {
		t.Errorf("%+v", files)
	}
}

// transfer is the way to a caller whose directories are elsewhere.
type transfer struct {
	dir           string // where what is fetched comes to lie: …/io/handoff/outgoing
	fetched, sent []string
	done          int
	broken        error
}

func (f *transfer) Fetch(_ context.Context, from string, names []string, _ int64) (string, func(), error) {
	for _, name := range names {
		f.fetched = append(f.fetched, strings.TrimPrefix(from+"/"+name, "/io/handoff/outgoing/"))
	}
	return f.dir, func() { f.done++ }, f.broken
}

func (f *transfer) Send(_ context.Context, names []string) error {
	f.sent = append(f.sent, names...)
	return f.broken
}

func TestFilesTravelToACallerElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	way := &transfer{dir: w.path("fetched/io/handoff/outgoing")}
	write(t, way.dir+"/d/a", "fetched")
	w.caller.Transfer = way
	w.renew()
	w.makes("r")
	id, err := w.h.broker.Start(t.Context(), handoff.Request{
		Target: "callee", Args: []byte(`{"fs":["d/a","g"]}`), Files: map[string]*os.File{"g": opened(t, "given")},
	})
	must(t, err)
	if diff := cmp.Diff(map[string]string{"d/a": "fetched", "g": "given"}, w.runs.Copied[0]); diff != "" {
		t.Error(diff)
	}
	result, err := w.h.broker.Await(t.Context(), id)
	must(t, err)
	_, err = w.h.broker.Deliver(t.Context(), id, result.Files)
	must(t, err)
	if diff := cmp.Diff([][]string{{"d/a"}, {"r"}}, [][]string{way.fetched, way.sent}); diff != "" || way.done != 1 {
		t.Errorf("%s, done %d times", diff, way.done)
	}
}

func TestAWayToACallerThatIsBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	way := &transfer{dir: w.path("nowhere"), broken: fault.New(fault.Unavailable, "it is gone")}
	w.caller.Transfer = way
	w.renew()
	asked := handoff.Request{Target: "callee", Args: []byte(`{"f":"a"}`)}
	if _, err := w.h.broker.Start(t.Context(), asked); !errors.Is(err, way.broken) {
		t.Errorf("%v", err)
	}
	if _, err := w.h.broker.Deliver(t.Context(), idOf(5), []handoff.Output{w.made(idOf(5), "r", "x")}); !errors.Is(err, way.broken) {
		t.Errorf("%v", err)
	}
	way.broken = nil
	if _, err := w.h.broker.Start(t.Context(), asked); !fault.Is(err, fault.Input) || way.done != 1 {
		t.Errorf("%v, done %d times", err, way.done)
	}
	if w.runs.Started() != 0 || w.spent() != 0 {
		t.Errorf("%d started, %d counted", w.runs.Started(), w.spent())
	}
}
