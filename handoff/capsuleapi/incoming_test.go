package capsuleapi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
)

// makes has every callee make files of these names, with the run's id as their content.
func (w *harness) makes(names ...string) {
	w.runs.Outcome = func(id string, _ handoff.Call) handoff.Result {
		r := handoff.Result{ID: id, Ended: true, State: "completed", Success: true, Output: json.RawMessage(`{}`)}
		for _, name := range names {
			r.Files = append(r.Files, w.made(id, name, id))
		}
		return r
	}
}

// listing lists what is below a directory.
func listing(t testing.TB, dir string) []string {
	t.Helper()
	names := []string{}
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." {
			names = append(names, rel)
		}
		return err
	}))
	return names
}

func (w *harness) arrived() []string { return listing(w.t, w.path("io/handoff/incoming")) }

func (w *harness) hostPath(path string) string {
	rel, ok := strings.CutPrefix(path, "/io/handoff/incoming/")
	if !ok {
		w.t.Fatalf("path %q", path)
	}
	return w.path("io/handoff/incoming/" + rel)
}

func TestTheCalleesFilesArrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makes("a.txt", "d/e/b.txt")
	answer := w.call(200, `{}`)
	file := w.runs.Results[idOf(100)].Files[0]
	want := []handoff.PlacedFile{
		{Name: "a.txt", Path: "/io/handoff/incoming/a.txt", SizeBytes: file.SizeBytes, SHA256: file.SHA256},
		{Name: "d/e/b.txt", Path: "/io/handoff/incoming/d/e/b.txt", SizeBytes: file.SizeBytes, SHA256: file.SHA256},
	}
	if diff := cmp.Diff(want, answer.Files); diff != "" {
		t.Error(diff)
	}
	for _, f := range answer.Files {
		if got := read(t, w.hostPath(f.Path)); got != idOf(100) {
			t.Errorf("%s holds %q", f.Path, got)
		}
	}
	linked, err := os.Stat(w.path("io/handoff/incoming/a.txt"))
	must(t, err)
	source, err := os.Stat(file.Path)
	must(t, err)
	if !os.SameFile(linked, source) {
		t.Error("it is a copy, where a link was possible")
	}
	if info, _ := os.Stat(w.path("io/handoff/incoming/d")); info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestANameThatIsTakenGivesAllFilesADirectory(t *testing.T) {
	t.Parallel()
	own := idOf(101)
	cases := []struct {
		name          string
		first, second []string
		want          []string // where the second's are
	}{
		{"the same name", []string{"a", "b"}, []string{"b", "c"}, []string{own + "/b", own + "/c"}},
		{"a directory where a file was", []string{"a"}, []string{"a/b"}, []string{own + "/a/b"}},
		{"a file where a directory was", []string{"a/b"}, []string{"a"}, []string{own + "/a"}},
		{"names that begin alike", []string{"a"}, []string{"ab", "abc", "b", "b-c"}, []string{"ab", "abc", "b", "b-c"}},
		{"a file beside another's", []string{"a/b"}, []string{"a/c"}, []string{"a/c"}},
		{"a name that looks like an id", nil, []string{own}, []string{own + "/" + own}},
		{"a directory that looks like an id", nil, []string{idOf(7) + "/x"}, []string{own + "/" + idOf(7) + "/x"}},
		{"the name of what is being copied", nil, []string{".aod-partial"}, []string{own + "/" + ".aod-partial"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.makes(c.first...)
			w.call(200, `{}`)
			w.makes(c.second...)
			var got []string
			for _, f := range w.call(200, `{}`).Files {
				got = append(got, strings.TrimPrefix(f.Path, "/io/handoff/incoming/"))
				if content := read(t, w.hostPath(f.Path)); content != own {
					t.Errorf("%s is of %s", f.Path, content)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAskedAgainItAnswersTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makes("a", "d/b")
	first := w.call(200, `{}`)
	before := w.arrived()
	for range 2 {
		again := answered[finished](t, w.do("GET", "/handoff/"+idOf(100), ""), 200)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Error(diff)
		}
		w.renew()
	}
	if diff := cmp.Diff(before, w.arrived()); diff != "" {
		t.Error(diff)
	}
}

func TestHostileNamesOfACalleeArePlacedNowhere(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"../x"}, {"/x"}, {"a/../../x"}, {""}, {"."}, {"a\x00"}, {"x", "x"}, {"x", "x/y"}, {"x/y", "x"}, {"a//b"}} {
		in := newWorld(t)
		var files []handoff.Output
		source := in.made(idOf(5), "source", "x")
		for _, name := range names {
			files = append(files, handoff.Output{Name: name, Path: source.Path})
		}
		if _, err := in.h.broker.Deliver(t.Context(), idOf(5), files); !fault.Is(err, fault.Internal) {
			t.Errorf("%q: %v", names, err)
		}
		if left := in.arrived(); len(left) != 0 {
			t.Errorf("%q: %q", names, left)
		}
	}
}

func TestAnIDIsNoPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"", "..", "../x", "placing", strings.ToUpper(idOf(0xa)) + "A"} {
		if _, err := w.h.broker.Deliver(t.Context(), id, []handoff.Output{w.made("x", "y", "z")}); !fault.Is(err, fault.Internal) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestManyHandoffsOfOneNameAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makes("same")
	var wg sync.WaitGroup
	answers := make([]finished, 50)
	for i := range answers {
		wg.Go(func() {
			rec := w.do("POST", "/handoff", `{"target":"callee","args":{}}`)
			if err := json.Unmarshal(rec.Body.Bytes(), &answers[i]); err != nil || rec.Code != 200 {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, a := range answers {
		if seen[a.Files[0].Path] || read(t, w.hostPath(a.Files[0].Path)) != a.ID {
			t.Errorf("%s at %s", a.ID, a.Files[0].Path)
		}
		seen[a.Files[0].Path] = true
	}
	if w.spent() != 50 {
		t.Errorf("%d calls are counted", w.spent())
	}
}
