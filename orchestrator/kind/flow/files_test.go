package flow

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// fileOf describes a file with some content.
func fileOf(name, content string) flow.File {
	return flow.File{Name: name, SizeBytes: int64(len(content)), SHA256: digestOf(content)}
}

// stored are files that have the contents.
func stored(t *testing.T, contents ...string) *files {
	t.Helper()
	s := &files{dir: filepath.Join(t.TempDir(), "state")}
	for _, content := range contents {
		write(t, filepath.Join(s.dir, digestOf(content)), content)
	}
	return s
}

func TestAFileIsKeptUnderItsDigest(t *testing.T) {
	for name, keep := range map[string]func(s *files, path string, f flow.File) error{
		"by a link": func(s *files, path string, f flow.File) error { return s.add(context.Background(), path, f) },
		"by a copy": func(s *files, path string, f flow.File) error {
			return errors.Join(os.MkdirAll(s.dir, 0o700), s.copy(path, filepath.Join(s.dir, f.SHA256)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &files{dir: filepath.Join(t.TempDir(), "state"), durable: true}
			path := filepath.Join(t.TempDir(), "made")
			write(t, path, "content")
			for range 2 { // the second time it is there
				if err := keep(s, path, fileOf("a", "content")); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(s.sync(1), os.Remove(path)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{digestOf("content"): "content"}, entries(t, s.dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFileThatCantBeKept(t *testing.T) {
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errBecause)
	made := filepath.Join(t.TempDir(), "made")
	write(t, made, "content")
	for name, c := range map[string]struct {
		ctx    context.Context //nolint:containedctx // of one case
		change func(t *testing.T, s *files, path *string, f *flow.File)
		want   func(error) bool
	}{
		"when the run is over": {over, func(*testing.T, *files, *string, *flow.File) {}, func(err error) bool { return errors.Is(err, errBecause) }},
		"when it is gone": {t.Context(), func(_ *testing.T, _ *files, path *string, _ *flow.File) { *path += ".gone" }, func(err error) bool {
			return fault.Is(err, fault.Internal)
		}},
		"when something is in the way of its directory": {t.Context(), func(t *testing.T, s *files, _ *string, _ *flow.File) {
			t.Helper()
			write(t, s.dir, "a file")
		}, func(err error) bool {
			return fault.Is(err, fault.Unavailable) && strings.Contains(fault.Public(err).Hint, "disk")
		}},
		"under a digest that leads elsewhere": {t.Context(), func(_ *testing.T, _ *files, _ *string, f *flow.File) { f.SHA256 = "../../x" }, func(err error) bool {
			return fault.Is(err, fault.Internal)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, path, f := &files{dir: filepath.Join(t.TempDir(), "state")}, made, fileOf("a", "content")
			c.change(t, s, &path, &f)
			if err := s.add(c.ctx, path, f); !c.want(err) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestACopyOfWhatIsNoFileLeavesNothing(t *testing.T) {
	s := stored(t)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "gone")} {
		if err := s.copy(path, filepath.Join(s.dir, digestOf("x"))); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%v", err)
		}
	}
	if got := entries(t, s.dir); len(got) > 0 {
		t.Errorf("there is %v", got)
	}
}

func TestWhatAStoreSaysOfAFileIsHeldAgainstIt(t *testing.T) {
	s := stored(t, "good")
	if err := os.Mkdir(filepath.Join(s.dir, digestOf("directory")), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]flow.File{
		"no digest":             {Name: "a", SizeBytes: 4},
		"a digest of its own":   {Name: "a", SizeBytes: 4, SHA256: "../state/" + digestOf("good")},
		"one that is too short": {Name: "a", SizeBytes: 4, SHA256: digestOf("good")[:62]},
		"another size":          {Name: "a", SizeBytes: 5, SHA256: digestOf("good")},
		"a directory":           {Name: "a", SizeBytes: 4, SHA256: digestOf("directory")},
		"it is gone":            fileOf("a", "other"),
	} {
		var names flow.Names
		if _, err := names.Plain(map[string]any{"good": fileOf("b", "good"), "wrong": f}); err != nil {
			t.Fatal(err)
		}
		opened, err := s.open(&names)
		if !fault.Is(err, fault.Internal) || opened != nil {
			t.Errorf("%s: %v, opened %v", name, err, opened)
		}
	}
	var names flow.Names
	if _, err := names.Plain(map[string]any{"good": fileOf("b", "good")}); err != nil {
		t.Fatal(err)
	}
	opened, err := s.open(&names)
	if err != nil || len(opened) != 1 || opened["b"] == nil {
		t.Fatalf("opened %v, %v", opened, err)
	}
	_ = opened["b"].Close() // read only
}

func TestTheFilesOfAnInput(t *testing.T) {
	b := newBench(t, `{nodes: {a: {set: {n: 1}}}, output: {n: 1}}`)
	b.input = `{"n": 1, "doc": "/io/input/d/a.txt", "other": "d/a.txt"}`
	path := filepath.Join(b.dir, "input", "d", "a.txt")
	write(t, path, "content")
	want := map[string]any{"n": int64(1), "doc": fileOf("d/a.txt", "content"), "other": "d/a.txt"}
	got, err := b.newHost().input()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatal(err, diff)
	}
	kept := filepath.Join(b.dir, "state", run.FlowInputFile)
	if found := entries(t, filepath.Dir(kept)); len(found) != 2 || found[digestOf("content")] != "content" {
		t.Errorf("it keeps %v", found)
	}
	write(t, path, "something else") // the next process doesn't look at it
	if got, err = b.newHost().input(); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v, %v", got, err)
	}
	write(t, kept, `{"doc": {"$file": 7}}`)
	if _, err := b.newHost().input(); !fault.Is(err, fault.Internal) {
		t.Errorf("of a damaged record: %v", err)
	}
}

func TestAnInputFileThatIsMissingOrNoFile(t *testing.T) {
	b := newBench(t, oneCall)
	b.input = `{"doc": "a.txt"}`
	if _, err := b.newHost().input(); !fault.Is(err, fault.Unavailable) {
		t.Errorf("missing: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(b.dir, "input", "a.txt"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := b.newHost().input(); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := b.execution().Attempt(t.Context()); !fault.Is(err, fault.Unavailable) || len(b.calls.started) > 0 {
		t.Errorf("the attempt: %v, %d calls", err, len(b.calls.started))
	}
}

func TestAnInputIsKeptOnlyWhereItHasFilesAndOutlivesTheProcess(t *testing.T) {
	for name, c := range map[string]struct {
		input   string
		durable bool
	}{"without a file": {`{"n": 1}`, true}, "of a run that ends with its process": {`{"doc": "a"}`, false}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, oneCall)
			b.input = c.input
			write(t, filepath.Join(b.dir, "input", "a"), "content")
			h := b.newHost()
			h.Durable = c.durable
			if _, err := h.input(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(b.dir, "state", run.FlowInputFile)); !os.IsNotExist(err) {
				t.Errorf("it is kept: %v", err)
			}
		})
	}
}
