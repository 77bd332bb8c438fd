package registry

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestGet(t *testing.T) {
	f := newFixture(t)
	dir := f.add("reader", map[string]string{"data/x": "1"})
	u := f.get("reader")
	if u.Name != "reader" || u.Kind != unit.Capsule || u.Source != unit.FromDirectory || u.Origin != dir || u.Problem != nil {
		t.Errorf("got %+v", u)
	}
	if capsuleOf(u).Name != "reader" || capsuleOf(u).Dir == dir || time.Since(u.Since) > time.Minute {
		t.Errorf("the capsule isn't the stored one: %+v", capsuleOf(u))
	}
	x, err := capsuleOf(u).Context()
	must(t, err)
	if x.Digest[:16] != u.Version {
		t.Errorf("version %s of the context %s", u.Version, x.Digest)
	}
	same, err := f.Version(t.Context(), "reader", u.Version)
	must(t, err)
	if diff := cmp.Diff(u.Since, same.Since); diff != "" || capsuleOf(same) != capsuleOf(u) {
		t.Errorf("Version gives another one: %s", diff)
	}
}

func TestEdits(t *testing.T) {
	edits := []struct {
		name string
		same bool // no new version
		edit func(dir string) error
	}{
		{"a file of the same size", false, func(d string) error { return os.WriteFile(d+"/data/x", []byte("2"), 0o644) }},
		{"the same content again", true, func(d string) error { return os.WriteFile(d+"/data/x", []byte("1"), 0o644) }},
		{"a file with its old times", false, func(d string) error {
			info, err := os.Stat(d + "/data/x")
			return errors.Join(err, os.WriteFile(d+"/data/x", []byte("2"), 0o644), os.Chtimes(d+"/data/x", info.ModTime(), info.ModTime()))
		}},
		{"a file that took another's place", false, func(d string) error {
			return errors.Join(os.WriteFile(d+"/new", []byte("2"), 0o644), os.Rename(d+"/new", d+"/data/x"))
		}},
		{"a new file", false, func(d string) error { return os.WriteFile(d+"/data/y", nil, 0o644) }},
		{"a file less", false, func(d string) error { return os.Remove(d + "/data/x") }},
		{"an executable bit", false, func(d string) error { return os.Chmod(d+"/data/x", 0o755) }},
		{"a link", false, func(d string) error { return os.Symlink("/etc/hosts", d+"/link") }},
		{"a file that is left out", true, func(d string) error { return os.WriteFile(d+"/tmp/y", nil, 0o644) }},
		{"a contract that is left out", false, func(d string) error {
			return os.WriteFile(d+"/schema.json", []byte(strings.Replace(anySchema, "object", "dict", 1)), 0o644)
		}},
		{"a test case that is left out", false, func(d string) error { return os.WriteFile(d+"/tests/b.json", []byte("{}"), 0o644) }},
		{"the patterns themselves", false, func(d string) error { return os.WriteFile(d+"/.dockerignore", []byte("tmp"), 0o644) }},
	}
	for _, e := range edits {
		for _, rested := range []bool{false, true} {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				dir := f.add("reader", map[string]string{
					"data/x": "1", "tmp/x": "", "tests/a.json": "{}", ".dockerignore": "tmp\nschema.json\ntests\n",
				})
				before := f.get("reader")
				if rested {
					f.rest("reader")
				}
				must(t, e.edit(dir))
				after := f.get("reader")
				if (before.Version == after.Version) != e.same {
					t.Errorf("the version is the same: %v", before.Version == after.Version)
				}
				if again := f.restart().get("reader"); again.Version != after.Version {
					t.Errorf("after a restart it is %s, not %s", again.Version, after.Version)
				}
				if old, err := f.Version(t.Context(), "reader", before.Version); err != nil || capsuleOf(old).Dir != capsuleOf(before).Dir {
					t.Errorf("the old version: %v", err)
				}
			})
		}
	}
}

// rest looks until a directory has been at rest for long enough to be trusted.
func (f harness) rest(name string) {
	f.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); {
		before := f.reads.Load()
		f.get(name)
		if f.reads.Load() == before {
			return
		}
	}
	f.t.Fatal("the directory is read at every call")
}

func TestAnExceptionIsNoticedInWhatIsLeftOut(t *testing.T) {
	f := newFixture(t)
	dir := f.add("reader", map[string]string{"data/a/x": "1", ".dockerignore": "data\n!data/a/keep\n"})
	before := f.get("reader")
	f.rest("reader")
	must(t, os.WriteFile(dir+"/data/a/keep", nil, 0o644))
	if f.get("reader").Version == before.Version {
		t.Error("it wasn't noticed")
	}
}

func TestBroken(t *testing.T) {
	breaks := map[string]func(dir string) error{
		"a contract that is none": func(d string) error { return os.WriteFile(d+"/schema.json", []byte("{"), 0o644) },
		"no Dockerfile":           func(d string) error { return os.Remove(d + "/Dockerfile") },
		"an agent.yaml that says nothing readable": func(d string) error {
			return os.WriteFile(d+"/agent.yaml", []byte("{"), 0o644)
		},
		"patterns that are none": func(d string) error { return os.WriteFile(d+"/.dockerignore", []byte("[a"), 0o644) },
	}
	for name, breakIt := range breaks {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			dir := f.add("dir", map[string]string{"agent.yaml": "name: reader\n"})
			before := f.get("reader")
			f.put("zebra", capsuleTar(t, "", nil))
			must(t, breakIt(dir))
			for _, registry := range []harness{f, f.restart()} {
				u := registry.get("reader")
				if u.Version != before.Version || u.Problem == nil || u.Problem.Kind != fault.Capsule || len(u.Problem.Findings) == 0 {
					t.Errorf("got %s with %+v", u.Version, u.Problem)
				}
				if diff := cmp.Diff([]string{"reader served from directory: invalid_capsule", "zebra served from upload"}, registry.lines()); diff != "" {
					t.Error(diff)
				}
			}
			must(t, os.RemoveAll(dir))
			f.add("dir", map[string]string{"agent.yaml": "name: reader\n"})
			if u := f.get("reader"); u.Version != before.Version || u.Problem != nil {
				t.Errorf("mended it is %s with %+v", u.Version, u.Problem)
			}
		})
	}
}

func TestNeverGood(t *testing.T) {
	f := newFixture(t)
	f.add("dir", map[string]string{"agent.yaml": "name: reader # the name\n", "schema.json": "{"})
	if _, err := f.Get(t.Context(), "reader"); !fault.Is(err, fault.Capsule) || !strings.Contains(told(err), "schema.json") {
		t.Errorf("Get: %v\n%s", err, told(err))
	}
	if diff := cmp.Diff([]string{"reader: invalid_capsule"}, f.lines()); diff != "" {
		t.Error(diff)
	}
}

func TestSources(t *testing.T) {
	f := newFixture(t)
	f.add("b", nil)
	f.add("a", nil)
	f.add(".hidden", nil)
	write(t, f.source, map[string]string{"README.md": "", "notes/x": ""})
	other := t.TempDir()
	write(t, other+"/elsewhere", changed(map[string]string{"agent.yaml": "name: a\n", "more": ""}))
	single := write(t, t.TempDir()+"/single", changed(nil))
	f = f.restart(other, single)

	want := []string{"a: conflict", "a: conflict", "b served from directory", "single served from directory"}
	if diff := cmp.Diff(want, f.lines()); diff != "" {
		t.Error(diff)
	}
	_, err := f.Get(t.Context(), "a")
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), filepath.Join(f.source, "a")+" and "+other+"/elsewhere") {
		t.Errorf("two of one name: %v", err)
	}
	must(t, os.Symlink(filepath.Join(f.source, "b"), filepath.Join(f.source, "b2")))
	f.add("b", map[string]string{"agent.yaml": "name: b\n"})
	if _, err := f.Get(t.Context(), "b"); err != nil {
		t.Errorf("one that is found twice, by a link: %v", err)
	}
	must(t, os.Remove(filepath.Join(f.source, "b2")))
	must(t, os.RemoveAll(filepath.Join(f.source, "a")))
	if u := f.get("a"); u.Origin != other+"/elsewhere" {
		t.Errorf("then a is from %s", u.Origin)
	}
	must(t, os.RemoveAll(other))
	if diff := cmp.Diff([]string{filepath.Base(other) + ": unavailable", "b served from directory", "single served from directory"}, f.lines()); diff != "" {
		t.Error(diff)
	}
	_, err = New(Options{Home: f.home, Sources: []string{other}})
	if !fault.Is(err, fault.Input) || !strings.Contains(err.Error(), filepath.Base(other)) {
		t.Errorf("New: %v", err)
	}
}

func TestADirectoryThatIsGone(t *testing.T) {
	f := newFixture(t)
	dir := f.add("reader", nil)
	u := f.get("reader")
	must(t, os.RemoveAll(dir))
	f.add("leader", nil)
	for _, registry := range []harness{f, f.restart()} {
		_, err := registry.Get(t.Context(), "reader")
		if !fault.Is(err, fault.NotFound) || fault.Public(err).Hint != "did you mean leader?" {
			t.Errorf("Get: %v, %s", err, fault.Public(err).Hint)
		}
		if old, err := registry.Version(t.Context(), "reader", u.Version); err != nil || capsuleOf(old).Name != "reader" {
			t.Errorf("Version: %v", err)
		}
	}
}

func TestNamesAreCheckedBeforeTheyArePaths(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"", "..", "../home", "A", ".temp-1", strings.Repeat("a", 64)} {
		_, err := f.Get(t.Context(), name)
		_, verr := f.Version(t.Context(), name, "0123456789abcdef")
		_, _, perr := f.Put(t.Context(), name, strings.NewReader(""), Upload{})
		for _, err := range []error{err, verr, perr} {
			if !fault.Is(err, fault.Input) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	for _, version := range []string{"", "..", "current", "0123456789ABCDEF", "0123456789abcdef"} {
		if _, err := f.Version(t.Context(), "reader", version); !fault.Is(err, fault.NotFound) {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

// A version must load as its directory does, and give the same image.
func TestAVersionIsWhatItsDirectoryWas(t *testing.T) {
	ignores := map[string]string{
		"nothing is left out":                  "",
		"the definitions are left out":         "schema.json\nagent.yaml\ntools.yaml\nrun.py\nsrc\ntests\n",
		"everything is left out":               "*\n",
		"everything but some":                  "*\n!src\nsrc/main.py\n!tests/a.json\n",
		"a directory that holds an exception":  "data\n!data/deep/keep\n",
		"patterns that leave the patterns out": ".dockerignore\nDockerfile*\n",
	}
	for name, ignore := range ignores {
		for _, file := range ignoreFiles {
			t.Run(name+" by "+file, func(t *testing.T) {
				f := newFixture(t)
				dir := f.add("reader", map[string]string{
					file: ignore, "Dockerfile": "FROM aod/base\nCOPY . /capsule\n", "run.py": "import aod\naod.run()\n",
					"src/main.py": "def execute(payload):\n    return {}\n", "src/tool": "#!", "tests/a.json": `{"input": {}, "expect": {}}`, "tests/data/b": "b",
					"data/deep/keep": "", "data/deep/other": "", "tools.yaml": "- {name: x, capsule: other}\n",
				})
				must(t, os.Chmod(dir+"/src/tool", 0o4700))
				must(t, os.Symlink("../nowhere", dir+"/src/link"))
				must(t, os.Mkdir(dir+"/empty", 0o700))
				u := f.get("reader")
				original, err := capsule.Load(dir)
				must(t, err)
				want, err := original.Context()
				must(t, err)
				got, err := capsuleOf(u).Context()
				must(t, err)
				if diff := cmp.Diff(want.Files(), got.Files()); diff != "" || want.Digest != got.Digest {
					t.Errorf("the images differ: %s", diff)
				}
				if len(capsuleOf(u).Tools) != 1 || capsuleOf(u).Name != "reader" {
					t.Errorf("got %+v", capsuleOf(u))
				}
				if cases, err := capsuleOf(u).Cases(); err != nil || len(cases) != 1 {
					t.Errorf("the test cases: %v", err)
				}
				if len(f.leftovers()) > 0 {
					t.Errorf("left behind: %v", f.leftovers())
				}
			})
		}
	}
}

func TestDamage(t *testing.T) {
	t.Run("a stored version is stored again", func(t *testing.T) {
		f := newFixture(t)
		f.add("reader", nil)
		u := f.get("reader")
		must(t, os.WriteFile(capsuleOf(u).Dir+"/agent.yaml", []byte("name: other\n"), 0o644))
		f = f.restart()
		if _, err := f.Version(t.Context(), "reader", u.Version); !fault.Is(err, fault.Internal) {
			t.Errorf("Version: %v", err)
		}
		if again := f.get("reader"); again.Version != u.Version || capsuleOf(again).Name != "reader" {
			t.Errorf("got %+v", again)
		}
	})
	for _, file := range []string{currentFile, "*/" + recordFile} {
		t.Run("a damaged "+file+" is written again", func(t *testing.T) {
			f := newFixture(t)
			f.add("reader", nil)
			f.get("reader")
			paths, err := filepath.Glob(filepath.Join(f.home, "reader", file))
			if err != nil || len(paths) != 1 {
				t.Fatalf("found %v, %v", paths, err)
			}
			must(t, os.WriteFile(paths[0], []byte("../../etc"), 0o644))
			if u := f.get("reader"); u.Problem != nil {
				t.Errorf("got %v", u.Problem)
			}
			if _, err := f.current("reader"); err != nil {
				t.Errorf("it wasn't: %v", err)
			}
		})
	}
}

func TestLooksAreCheap(t *testing.T) {
	f := newFixture(t)
	f.add("reader", nil)
	f.rest("reader")
	before := f.reads.Load()
	for range 10 {
		f.get("reader")
	}
	if n := f.reads.Load() - before; n != 0 {
		t.Errorf("a directory at rest was read %d times", n)
	}
}

func TestAnEditOfOneUnitCostsTheOthersNothing(t *testing.T) {
	f := newFixture(t)
	f.add("reader", nil)
	dir := f.add("writer", nil)
	f.rest("reader")
	f.rest("writer")
	must(t, os.WriteFile(dir+"/data", nil, 0o644))
	before := f.reads.Load()
	f.get("reader")
	if n := f.reads.Load() - before; n != 0 {
		t.Errorf("%d directories were read", n)
	}
	must(t, os.WriteFile(dir+"/agent.yaml", []byte("name: scribe\n"), 0o644))
	f.get("scribe")
	if _, err := f.Get(t.Context(), "writer"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the old name: %v", err)
	}
}

func TestSettle(t *testing.T) {
	f := newFixture(t)
	dir := f.add("reader", nil)
	f.settle = time.Hour
	before := f.get("reader")
	must(t, os.WriteFile(dir+"/new", nil, 0o644))
	if f.get("reader").Version != before.Version {
		t.Error("it was looked at sooner than it may be")
	}
	f.settle = 0
	if f.get("reader").Version == before.Version {
		t.Error("it wasn't looked at again")
	}
}

func TestManyGetsOfAnEdit(t *testing.T) {
	f := newFixture(t)
	dir := f.add("reader", nil)
	f.rest("reader")
	must(t, os.WriteFile(dir+"/new", nil, 0o644))
	edited := watch{all: true}.fingerprint(dir)
	for !edited.settledBefore(time.Now()) {
		goruntime.Gosched()
	}
	before := f.reads.Load()
	var all sync.WaitGroup
	versions := make([]string, 32)
	begin := make(chan struct{})
	for i := range versions {
		all.Go(func() {
			<-begin
			if u, err := f.Get(t.Context(), "reader"); err == nil {
				versions[i] = u.Version
			}
		})
	}
	close(begin)
	all.Wait()
	for _, v := range versions {
		if v == "" || v != versions[0] {
			t.Fatalf("got %v", versions)
		}
	}
	if n := f.reads.Load() - before; n != 1 {
		t.Errorf("it was read %d times", n)
	}
}

func TestWhoeverWaitsTakesTheReadingOfAnother(t *testing.T) {
	f := newFixture(t)
	f.add("reader", nil)
	synctest.Test(t, func(t *testing.T) { // its clock is in the past: no directory is ever at rest
		f := f.restart()
		f.t = t
		f.get("reader")
		time.Sleep(time.Second) // of the bubble
		gate := f.directories[filepath.Join(f.source, "reader")].gate
		if err := enter(t.Context(), gate); err != nil {
			t.Fatal(err)
		}
		f.reads.Store(0)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := f.Get(t.Context(), "reader"); err != nil {
					t.Errorf("Get: %v", err)
				}
			})
		}
		synctest.Wait()
		gate.Release(1)
		all.Wait()
		if n := f.reads.Load(); n != 1 {
			t.Errorf("it was read %d times", n)
		}
	})
}

func TestEditsDuringGets(t *testing.T) {
	f := newFixture(t)
	dir := f.add("reader", map[string]string{"data": "0", "copy": "0"})
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				u, err := f.Get(t.Context(), "reader")
				if err != nil && !fault.Is(err, fault.Capsule) {
					t.Errorf("Get: %v", err)
				}
				if err == nil {
					if _, err := f.Version(t.Context(), "reader", u.Version); err != nil && !fault.Is(err, fault.NotFound) {
						t.Errorf("Version: %v", err)
					}
				}
			}
		})
	}
	for i := range 100 {
		text := []byte(strings.Repeat("x", i))
		must(t, os.WriteFile(dir+"/data", text, 0o644))
		must(t, os.WriteFile(dir+"/copy", text, 0o644))
		if i%10 == 0 {
			_, err := f.Prune(t.Context(), func(string, string) bool { return false })
			must(t, err)
		}
	}
	close(stop)
	all.Wait()
	u := f.get("reader")
	x, err := capsuleOf(u).Context()
	if err != nil || x.Digest[:16] != u.Version || u.Problem != nil {
		t.Errorf("in the end: %v, %v", err, u.Problem)
	}
	if len(f.leftovers()) > 0 {
		t.Errorf("left behind: %v", f.leftovers())
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	f := newFixture(t)
	f.add("reader", nil)
	f.get("reader")
	if err := enter(t.Context(), f.directories[filepath.Join(f.source, "reader")].gate); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Get(ctx, "reader"); !fault.Is(err, fault.Cancelled) {
		t.Errorf("Get: %v", err)
	}
}

func TestPrune(t *testing.T) {
	f := newFixture(t)
	dir := f.add("reader", nil)
	versions := []string{f.get("reader").Version}
	for _, name := range []string{"a", "b"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		versions = append(versions, f.get("reader").Version)
	}
	needed := func(name, version string) bool { return name == "reader" && version == versions[0] }
	if n, err := f.Prune(t.Context(), needed); n != 1 || err != nil {
		t.Errorf("Prune: %d, %v", n, err)
	}
	for i, there := range []bool{true, false, true} {
		_, err := f.Version(t.Context(), "reader", versions[i])
		if (err == nil) != there || (err != nil && !fault.Is(err, fault.NotFound)) {
			t.Errorf("version %d: %v", i, err)
		}
	}
	must(t, os.Remove(dir+"/b"))
	if u := f.get("reader"); u.Version != versions[1] {
		t.Errorf("a pruned version comes back as %s, not %s", u.Version, versions[1])
	}
}

func TestLeftoversOfADeadProcessAreSwept(t *testing.T) {
	f := newFixture(t)
	old, young := filepath.Join(f.home, safefs.TempPrefix+"1"), filepath.Join(f.home, safefs.TempPrefix+"2")
	write(t, f.home, map[string]string{safefs.TempPrefix + "1/x": "", safefs.TempPrefix + "2/x": ""})
	past := time.Now().Add(-2 * leftover)
	must(t, os.Chtimes(old, past, past))
	f.restart()
	if diff := cmp.Diff([]string{young}, f.leftovers()); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkGet(b *testing.B) {
	f := newFixture(b)
	files := map[string]string{}
	for i := range 300 {
		files["data/"+strings.Repeat("d", i%7+1)+"/"+strings.Repeat("x", i/7+1)] = "x"
	}
	f.add("reader", files)
	f.rest("reader")
	for b.Loop() {
		f.get("reader")
	}
}

func capsuleOf(u *unit.Unit) *capsule.Capsule { return u.Definition.(*capsule.Capsule) }
