package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestPut(t *testing.T) {
	shapes := map[string][]byte{
		"files at the root":           capsuleTar(t, "", nil),
		"files at the root, as by .":  capsuleTar(t, "./", nil, tar.Header{Typeflag: tar.TypeDir, Name: "./"}),
		"everything in one directory": capsuleTar(t, "my-reader/", nil),
		"that directory named itself": capsuleTar(t, "my-reader/", nil, tar.Header{Typeflag: tar.TypeDir, Name: "my-reader/"}),
		"compressed":                  gzipped(t, capsuleTar(t, "", nil)),
		"with a comment, as by git":   append(tarOf(t, tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "abc"}})[:1024], capsuleTar(t, "", nil)...),
	}
	for name, archive := range shapes {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			u, created := f.put("reader", archive)
			if !created || u.Name != "reader" || capsuleOf(u).Name != "reader" || u.Source != unit.FromUpload || u.Origin != "" {
				t.Errorf("created %v: %+v", created, u)
			}
			same, created := f.put("reader", archive)
			if created || same.Version != u.Version {
				t.Errorf("the same again: created %v, %s instead of %s", created, same.Version, u.Version)
			}
			for _, registry := range []harness{f, f.restart()} {
				if got := registry.get("reader"); got.Version != u.Version {
					t.Errorf("got %s, not %s", got.Version, u.Version)
				}
				if diff := cmp.Diff([]string{"reader served from upload"}, registry.lines()); diff != "" {
					t.Error(diff)
				}
			}
			if len(f.leftovers()) > 0 {
				t.Errorf("left behind: %v", f.leftovers())
			}
		})
	}
}

func TestOfTwoUploadsOntoOneVersionOneIsStored(t *testing.T) {
	f := newFixture(t)
	first, _ := f.put("reader", capsuleTar(t, "", nil))
	var mu sync.Mutex
	stored := map[string]bool{}
	var both sync.WaitGroup
	for _, data := range []string{"x", "y"} {
		archive := capsuleTar(t, "", map[string]string{"data": data})
		both.Go(func() {
			for range 2 { // the second is the same content again
				u, _, err := f.Put(t.Context(), "reader", bytes.NewReader(archive), Upload{Onto: first.Version})
				mu.Lock()
				if err == nil {
					stored[u.Version] = true
				} else if !fault.Is(err, fault.Conflict) {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	both.Wait()
	if u := f.get("reader"); len(stored) != 1 || !stored[u.Version] {
		t.Errorf("stored %v, current %s", stored, u.Version)
	}
	must(t, f.Remove(t.Context(), "reader"))
	archive := capsuleTar(t, "", map[string]string{"data": "z"})
	if _, _, err := f.Put(t.Context(), "reader", bytes.NewReader(archive), Upload{Onto: first.Version}); !fault.Is(err, fault.Conflict) {
		t.Errorf("the unit is removed: %v", err)
	}
}

func TestAnUploadReplacesAnother(t *testing.T) {
	f := newFixture(t)
	first, _ := f.put("reader", capsuleTar(t, "", nil))
	second, created := f.put("reader", capsuleTar(t, "", map[string]string{"data": "x"}))
	if !created || f.get("reader").Version != second.Version {
		t.Error("the second isn't current")
	}
	if _, err := f.Version(t.Context(), "reader", first.Version); err != nil {
		t.Errorf("the first is gone: %v", err)
	}
	if _, created := f.put("reader", capsuleTar(t, "", nil)); !created || f.get("reader").Version != first.Version {
		t.Error("the first isn't current again")
	}
}

func TestUploadsAndDirectories(t *testing.T) {
	f := newFixture(t)
	dir := f.add("reader", nil)
	version := f.get("reader").Version
	_, _, err := f.Put(t.Context(), "reader", strings.NewReader("never read"), Upload{})
	if !fault.Is(err, fault.Conflict) || fault.Public(err).Hint == "" {
		t.Errorf("Put over a directory: %v", err)
	}
	must(t, os.RemoveAll(dir))
	u, created := f.put("reader", capsuleTar(t, "", nil))
	if created || u.Version != version || u.Source != unit.FromUpload {
		t.Errorf("the same content uploaded: created %v, %+v", created, u)
	}
	if got := f.restart().get("reader"); got.Source != unit.FromUpload || got.Origin != "" {
		t.Errorf("after a restart: %+v", got)
	}
	f.add("reader", nil)
	if _, err := f.Get(t.Context(), "reader"); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), dir+" and an upload") {
		t.Errorf("the directory is back beside the upload: %v", err)
	}
	must(t, f.Remove(t.Context(), "reader"))
	if got := f.get("reader"); got.Source != unit.FromDirectory || got.Origin != dir {
		t.Errorf("the upload is removed: %+v", got)
	}
}

func TestAnUploadThatMustBeNewReplacesNothing(t *testing.T) {
	f := newFixture(t)
	put := func(how Upload, more map[string]string) (*unit.Unit, error) {
		u, _, err := f.Put(t.Context(), "reader", bytes.NewReader(capsuleTar(t, "", more)), how)
		return u, err
	}
	first, err := put(Upload{By: "alice", OnlyNew: true}, nil)
	must(t, err)
	_, err = put(Upload{By: "bob", OnlyNew: true}, map[string]string{"data": "x"})
	if !fault.Is(err, fault.Exists) || !strings.Contains(err.Error(), "by alice") {
		t.Errorf("another one: %v", err)
	}
	if u, err := put(Upload{By: "bob", OnlyNew: true}, nil); err != nil || u.By != "alice" {
		t.Errorf("the same: %v, by %q", err, u.By)
	}
	if u := f.restart().get("reader"); u.Version != first.Version || u.By != "alice" {
		t.Errorf("current is %s by %q", u.Version, u.By)
	}
	second, err := put(Upload{By: "bob"}, map[string]string{"data": "x"})
	must(t, err)
	if u, err := f.Rollback(t.Context(), "reader", first.Version); err != nil || u.By != "alice" || second.By != "bob" {
		t.Errorf("replaced by %q, rolled back to %q: %v", second.By, u.By, err)
	}
	must(t, f.Remove(t.Context(), "reader"))
	if _, err := put(Upload{By: "carol", OnlyNew: true}, map[string]string{"data": "y"}); err != nil {
		t.Errorf("after a removal: %v", err)
	}
}

// reg, lnk and others write headers of hostile archives.
func reg(name, body string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: body}
}

func lnk(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}

func special(kind byte, name string) tar.Header {
	return tar.Header{Typeflag: kind, Name: name, Linkname: map[bool]string{true: "agent.yaml"}[kind == tar.TypeLink]}
}

func TestPutRefuses(t *testing.T) {
	with := func(more ...tar.Header) []byte { return capsuleTar(t, "", nil, more...) }
	const out, twice, link = "leads out of the capsule", "stands twice", "is a link that leads out"
	cases := []struct {
		name    string
		archive []byte
		kind    fault.Kind
		message string
	}{
		{"nothing", nil, fault.BadRequest, "the archive is empty"},
		{"no tar", bytes.Repeat([]byte("PK\x03\x04"), 1000), fault.BadRequest, "it isn't a tar"},
		{"a tar that ends within a file", with()[:520], fault.BadRequest, "can't be read to its end"},
		{"a tar that ends between two files", with(reg("x", ""))[:len(with())-1024], fault.BadRequest, "can't be read to its end"},
		{"a tar that ends behind a file", with()[:len(with())-1024], fault.BadRequest, "can't be read to its end"},
		{"no gzip", []byte("\x1f\x8bx"), fault.BadRequest, "can't be read"},
		{"a gzip that ends too early", gzipped(t, with())[:100], fault.BadRequest, "can't be read"},
		{"a gzip with a wrong checksum", wrongChecksum(gzipped(t, with())), fault.BadRequest, "can't be read"},
		{"a step up", with(reg("../x", "")), fault.Input, out},
		{"a step up in the middle", with(reg("a/../../x", "")), fault.Input, out},
		{"a step up that stays inside", with(reg("a/../x", "")), fault.Input, out},
		{"an absolute name", with(reg("/etc/x", "")), fault.Input, out},
		{"no name", with(special(tar.TypeFifo, "")), fault.Input, out},
		{"a very long name", with(reg(strings.Repeat("a/", 600)+"x", "")), fault.Input, "too long"},
		{"a long part of a name", with(reg(strings.Repeat("a", 300), "")), fault.Input, "no file can have this name"},
		{"a device", with(special(tar.TypeChar, "x")), fault.Input, "it is a device"},
		{"a block device", with(special(tar.TypeBlock, "x")), fault.Input, "it is a device"},
		{"a named pipe", with(special(tar.TypeFifo, "x")), fault.Input, "it is a named pipe"},
		{"a hard link", with(special(tar.TypeLink, "x")), fault.Input, "it is a hard link"},
		{"a file twice", with(reg("agent.yaml", "name: x")), fault.Input, twice},
		{"a file twice, written otherwise", with(reg("./agent.yaml", "")), fault.Input, twice},
		{"a directory over a file", with(tar.Header{Typeflag: tar.TypeDir, Name: "agent.yaml/"}), fault.Input, twice},
		{"a file over a directory", with(reg("a/x", ""), reg("a", "")), fault.Input, twice},
		{"a link over a file", with(lnk("agent.yaml", "schema.json")), fault.Input, twice},
		{"a file below a file", with(reg("agent.yaml/x", "")), fault.Input, "it isn't a directory"},
		{"a file below a link", with(lnk("a", "/tmp"), reg("a/x", "")), fault.Input, "it isn't a directory"},
		{"an absolute link", with(lnk("a", "/etc/passwd")), fault.Input, link},
		{"a link that leads up", with(lnk("a", "../x")), fault.Input, link},
		{"a deep link that leads up", with(lnk("a/b", "../../x")), fault.Input, link},
		{"a link that leads up behind another", with(lnk("a/b/c", "../../d"), reg("d/x", ""), lnk("e", "a/b/c/../../x")), fault.Input, link},
		{"a link to the one directory from outside", capsuleTar(t, "top/", nil, lnk("top/a", "../top/agent.yaml")), fault.Input, link},
		{"a link that steps up behind a name", with(lnk("p/e", "data/../x")), fault.Input, link},
		{"a link in place of the capsule", with(lnk(".", "x")), fault.Input, twice},
		{"a link to nothing", with(lnk("a", "")), fault.Input, link},
		{"too many entries", with(manyFiles(98)...), fault.TooLarge, "more than 100 entries"},
		{"too many directories by one name", with(reg(strings.Repeat("a/", 100)+"x", "")), fault.TooLarge, "more than 100 entries"},
		{"too many comments", bytes.Repeat(tarOf(t, tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "abc"}})[:1024], 200), fault.TooLarge, "more than 100 entries"},
		{"too large a file", with(reg("x", strings.Repeat("x", 1<<20))), fault.TooLarge, "more than 1048576 bytes"},
		{"too much, compressed", gzipped(t, with(reg("x", strings.Repeat("x", 1<<20)))), fault.TooLarge, "more than 1048576 bytes"},
		{"much after its end, compressed", gzipped(t, append(with(), make([]byte, 4<<20)...)), fault.TooLarge, "longer than"},
		{"another name", capsuleTar(t, "", map[string]string{"agent.yaml": "name: writer"}), fault.Input, "calls itself writer, not reader"},
		{"a broken capsule", capsuleTar(t, "", map[string]string{"schema.json": "{", "Dockerfile": "-"}), fault.Capsule, "has problems"},
		{"no capsule", tarOf(t, reg("a/b/c", "")), fault.Capsule, "has problems"},
		{"a link in place of a definition", capsuleTar(t, "", map[string]string{"agent.yaml": "-"}, reg("real", ""), lnk("agent.yaml", "real")), fault.Capsule, "has problems"},
		{"broken patterns", capsuleTar(t, "", map[string]string{".dockerignore": "[a"}), fault.Capsule, "pattern"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			before, _ := f.put("reader", capsuleTar(t, "", map[string]string{"before": ""}))
			_, _, err := f.Put(t.Context(), "reader", bytes.NewReader(c.archive), Upload{})
			if !fault.Is(err, c.kind) || !strings.Contains(fault.Public(err).Msg, c.message) {
				t.Errorf("Put: %v (%s), want %q", err, fault.KindOf(err), c.message)
			}
			public := fault.Public(err)
			if public.Hint == "" || strings.Contains(public.Msg+public.Hint+told(err), f.home) {
				t.Errorf("the client is told %q, %q\n%s", public.Msg, public.Hint, told(err))
			}
			f.onlyCurrent("reader", before.Version)
		})
	}
}

func manyFiles(n int) []tar.Header {
	headers := make([]tar.Header, n)
	for i := range headers {
		headers[i] = reg("f"+strings.Repeat("x", i), "")
	}
	return headers
}

func wrongChecksum(raw []byte) []byte {
	raw[len(raw)-8] ^= 1
	return raw
}

// onlyCurrent checks that a home holds one version of one unit and nothing beside.
func (f harness) onlyCurrent(name, version string) {
	f.t.Helper()
	var got []string
	for _, pattern := range []string{"*", "*/*"} {
		found, err := filepath.Glob(filepath.Join(f.home, pattern))
		must(f.t, err)
		for _, path := range found {
			rel, err := filepath.Rel(f.home, path)
			must(f.t, err)
			got = append(got, rel)
		}
	}
	want := []string{name, name + "/" + version, name + "/" + currentFile}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Error("the home: " + diff)
	}
	if u, err := f.restart().Get(f.t.Context(), name); err != nil || u.Version != version {
		f.t.Errorf("after it: %v", err)
	}
}

func TestLinksThatStayInside(t *testing.T) {
	f := newFixture(t)
	u, _ := f.put("reader", capsuleTar(t, "top/", nil,
		lnk("top/a", "data/x"), lnk("top/deep/b", "../data/x"), lnk("top/c", "./data"), lnk("top/d", "missing"), reg("top/data/x", "1")))
	for name, want := range map[string]string{"a": "data/x", "deep/b": "../data/x", "c": "./data", "d": "missing"} {
		if got, err := os.Readlink(filepath.Join(capsuleOf(u).Dir, name)); got != want || err != nil {
			t.Errorf("%s leads to %q, %v", name, got, err)
		}
	}
}

func TestOnlyTheExecutableBitIsKept(t *testing.T) {
	f := newFixture(t)
	u, _ := f.put("reader", capsuleTar(t, "", nil,
		tar.Header{Typeflag: tar.TypeReg, Name: "tool", Mode: 0o6711}, tar.Header{Typeflag: tar.TypeReg, Name: "data", Mode: 0o2600}))
	for name, want := range map[string]fs.FileMode{"tool": 0o755, "data": 0o644} {
		if info, err := os.Stat(filepath.Join(capsuleOf(u).Dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestASlowPutHoldsNobodyUp(t *testing.T) {
	f := newFixture(t)
	f.add("reader", nil)
	before, _ := f.put("writer", capsuleTar(t, "", nil))
	archive := capsuleTar(t, "", map[string]string{"data": "x"})
	r, w := io.Pipe()
	var put sync.WaitGroup
	put.Go(func() {
		if _, created, err := f.Put(t.Context(), "writer", r, Upload{}); err != nil || !created {
			t.Errorf("Put: %v", err)
		}
	})
	_, err := w.Write(archive[:600])
	must(t, err)
	f.get("reader")
	if u := f.get("writer"); u.Version != before.Version {
		t.Errorf("half an upload is served: %s", u.Version)
	}
	_, err = w.Write(archive[600:])
	must(t, err)
	must(t, w.Close())
	put.Wait()
	if u := f.get("writer"); u.Version == before.Version {
		t.Error("the upload isn't served")
	}
}

func TestPutsAtOnce(t *testing.T) {
	f := newFixture(t)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			archive := capsuleTar(t, "", map[string]string{"data": strings.Repeat("x", i%4)})
			if _, _, err := f.Put(t.Context(), "reader", bytes.NewReader(archive), Upload{}); err != nil {
				t.Errorf("Put: %v", err)
			}
		})
	}
	all.Wait()
	if versions, err := f.Registry.home.versions("reader"); len(versions) != 4 || err != nil {
		t.Errorf("there are %v, %v", versions, err)
	}
	if len(f.leftovers()) > 0 {
		t.Errorf("left behind: %v", f.leftovers())
	}
}

func TestAPutThatNobodyWaitsForEnds(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := f.Put(ctx, "reader", readerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	}), Upload{})
	if !fault.Is(err, fault.Cancelled) || len(f.leftovers()) > 0 {
		t.Errorf("Put: %v, left behind %v", err, f.leftovers())
	}
}

func TestTheSendersErrorIsKept(t *testing.T) {
	f := newFixture(t)
	_, _, err := f.Put(t.Context(), "reader", readerFunc(func([]byte) (int, error) { return 0, fault.New(fault.TooLarge, "the body is too long") }), Upload{})
	if !fault.Is(err, fault.TooLarge) {
		t.Errorf("Put: %v", err)
	}
	_, _, err = f.Put(t.Context(), "reader", readerFunc(func([]byte) (int, error) { return 0, errors.New("broken pipe") }), Upload{})
	if !fault.Is(err, fault.BadRequest) {
		t.Errorf("Put: %v", err)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func FuzzPut(f *testing.F) {
	f.Add(capsuleTar(f, "", nil))
	f.Add(capsuleTar(f, "top/", nil, lnk("top/a", "agent.yaml")))
	f.Add(gzipped(f, capsuleTar(f, "", nil)))
	f.Add(capsuleTar(f, "", nil, lnk("a", "/"), reg("a/x", "")))
	f.Add(capsuleTar(f, "", nil, reg("../x", ""), special(tar.TypeLink, "y")))
	f.Add(capsuleTar(f, "", map[string]string{".dockerignore": "*\n!a\n", "tests/x.json": "{}"}))
	around := f.TempDir()
	fuzzbound.Run(f, func(t *testing.T, archive []byte) { putIsContained(t, around, archive) })
}

// Bytes at random are seldom a tar; these always are.
func FuzzPutEntries(f *testing.F) {
	f.Add("a", byte(tar.TypeSymlink), "data/x", "a/b/c", byte(tar.TypeSymlink), "../../data")
	f.Add("a/../b", byte(tar.TypeReg), "", "./a//b/", byte(tar.TypeDir), "")
	f.Add("a", byte(tar.TypeSymlink), "a", "agent.yaml/", byte(tar.TypeDir), "")
	f.Add("tests", byte(tar.TypeSymlink), "data", ".dockerignore", byte(tar.TypeReg), "*\n!x")
	around := f.TempDir()
	fuzzbound.Run(f, func(t *testing.T, a string, akind byte, atarget, b string, bkind byte, btarget string) {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		headers := []tar.Header{
			{Typeflag: akind, Name: a, Linkname: atarget}, {Typeflag: bkind, Name: b, Linkname: btarget}, reg("data/x", "x"),
		}
		for name, text := range good {
			headers = append(headers, reg(name, text))
		}
		for _, h := range headers {
			body := h.Linkname
			if h.Typeflag == tar.TypeReg {
				h.Size, h.Linkname = int64(len(body)), ""
			}
			if w.WriteHeader(&h) != nil {
				t.Skip()
			}
			_, _ = io.WriteString(w, body[:h.Size])
		}
		must(t, w.Close())
		putIsContained(t, around, archive.Bytes())
	})
}

// putIsContained uploads something and checks that all or nothing of it is in the home,
// and nothing anywhere else.
func putIsContained(t *testing.T, around string, archive []byte) {
	t.Helper()
	dir, err := os.MkdirTemp(around, "")
	must(t, err)
	defer os.RemoveAll(dir)
	x := harness{t: t, source: filepath.Join(dir, "source"), home: filepath.Join(dir, "home")}
	must(t, os.Mkdir(x.source, 0o755))
	x = x.restart()
	u, _, err := x.Put(t.Context(), "reader", bytes.NewReader(archive), Upload{})
	if err != nil && (fault.Is(err, fault.Internal) || fault.Is(err, fault.Unavailable)) {
		t.Errorf("Put: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("something was written outside: %v", entries)
	}
	if entries, _ := os.ReadDir(x.source); len(entries) != 0 {
		t.Errorf("something was written into the source: %v", entries)
	}
	if err == nil {
		x.onlyCurrent("reader", u.Version)
		x.noLinkOut(capsuleOf(u).Dir)
		return
	}
	if entries, _ := os.ReadDir(x.home); len(entries) != 0 {
		t.Errorf("something was left behind: %v", entries)
	}
}

// noLinkOut checks with the kernel that no link leads out of a directory.
func (f harness) noLinkOut(dir string) {
	f.t.Helper()
	must(f.t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		if real, err := filepath.EvalSymlinks(path); err == nil && real != dir && !strings.HasPrefix(real, dir+"/") {
			f.t.Errorf("a link leads to %s", real)
		}
		return nil
	}))
}

func TestPutAsksBeforeAnUploadCounts(t *testing.T) {
	refusal := fault.New(fault.Build, "its image can't be built")
	answer := error(refusal)
	r, err := New(Options{Home: t.TempDir(), Accept: func(_ context.Context, c *unit.Unit) error {
		if c.Name != "reader" {
			t.Errorf("asked about %q", c.Name)
		}
		return answer
	}})
	must(t, err)
	archive := capsuleTar(t, "", nil)
	if _, _, err := r.Put(t.Context(), "reader", bytes.NewReader(archive), Upload{}); !errors.Is(err, refusal) {
		t.Errorf("a refused upload: %v", err)
	}
	if _, err := r.Get(t.Context(), "reader"); !fault.Is(err, fault.NotFound) {
		t.Errorf("it counts all the same: %v", err)
	}
	answer = nil
	if _, created, err := r.Put(t.Context(), "reader", bytes.NewReader(archive), Upload{}); err != nil || !created {
		t.Errorf("an accepted upload: %v", err)
	}
}

// The policy of an upload may be stricter: it follows where the version came from last.
func TestAUnitIsGovernedByWhereItComesFrom(t *testing.T) {
	f := newFixture(t)
	var accepted []string
	var err error
	f.Registry, err = New(Options{
		Home: f.home, Sources: []string{f.source},
		Govern: func(u *unit.Unit) { u.Policy.Network = u.Source },
		Accept: func(_ context.Context, u *unit.Unit) error {
			accepted = append(accepted, u.Policy.Network)
			return nil
		},
	})
	must(t, err)
	uploaded, _ := f.put("reader", capsuleTar(t, "", nil))
	version := uploaded.Version
	if len(accepted) != 1 || accepted[0] != unit.FromUpload || uploaded.Policy.Network != unit.FromUpload {
		t.Errorf("accepted as %q, put as %q", accepted, uploaded.Policy.Network)
	}
	must(t, f.Remove(t.Context(), "reader"))
	f.add("reader", nil)
	if u := f.get("reader"); u.Version != version || u.Policy.Network != unit.FromDirectory {
		t.Errorf("from a directory it is %s as %q", u.Version, u.Policy.Network)
	}
	if u, err := f.Version(t.Context(), "reader", version); err != nil || u.Policy.Network != unit.FromDirectory {
		t.Errorf("its version: %+v, %v", u, err)
	}
}
