package runtime

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// packed is a tar of entries. A file's content is given by its size, in x.
func packed(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		if e.Mode == 0 {
			e.Mode = 0o644
		}
		if err := w.WriteHeader(&e); err != nil {
			t.Fatal(err)
		}
		if e.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, strings.Repeat("x", int(e.Size))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func file(name string, size int64) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size}
}
func dir(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name + "/"} }
func symlink(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}

func hardLink(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}

func special(kind byte, name string) tar.Header { return tar.Header{Typeflag: kind, Name: name} }

// unpacking is a root to unpack into, with a sentinel beside it that nothing may touch.
type unpacking struct {
	root     *os.Root
	sentinel string
	before   map[string]string
}

func newUnpacking(t testing.TB) unpacking {
	t.Helper()
	parent := t.TempDir()
	u := unpacking{sentinel: filepath.Join(parent, "sentinel")}
	for _, d := range []string{"root", "sentinel"} {
		if err := os.Mkdir(filepath.Join(parent, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(u.sentinel, "file"), []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.before = listed(t, parent, "root")
	root, err := os.OpenRoot(filepath.Join(parent, "root"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	u.root = root
	return u
}

// expectUntouched looks for everything outside of the root, links to it included.
func (u unpacking) expectUntouched(t testing.TB) {
	t.Helper()
	if diff := cmp.Diff(u.before, listed(t, filepath.Dir(u.sentinel), "root")); diff != "" {
		t.Error("outside of the root: " + diff)
	}
}

// listed says what each path below dir is, but for what is below skip.
func listed(t testing.TB, top, skip string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(top, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, at)
		if rel == skip && skip != "" {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		found[rel] = info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			found[rel] += fmt.Sprintf(" %d bytes, %d links", info.Size(), stat.Nlink)
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(at)
			found[rel] += " to " + to
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// names are those of what was unpacked.
func (u unpacking) made(t testing.TB) map[string]string {
	t.Helper()
	found := listed(t, u.root.Name(), "")
	delete(found, ".")
	return found
}

func plenty() *allowance { return &allowance{1 << 20, 1000} }

func TestUnpackMakesWhatIsThere(t *testing.T) {
	long := strings.Repeat("n", 200)
	cases := []struct {
		name    string
		entries []tar.Header
		want    map[string]string
	}{
		{"nothing", nil, map[string]string{}},
		{
			"files and directories with modes of ours",
			[]tar.Header{{Typeflag: tar.TypeDir, Name: "d/", Mode: 0}, {Typeflag: tar.TypeReg, Name: "d/f", Mode: 0o1, Size: 5}},
			map[string]string{"d": "drwxr-xr-x", "d/f": "-rw-r--r-- 5 bytes, 1 links"},
		},
		{
			"no set-id bits and no sticky ones",
			[]tar.Header{{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o7777}, {Typeflag: tar.TypeReg, Name: "f", Mode: 0o6777, Uid: 12, Gid: 34}},
			map[string]string{"d": "drwxr-xr-x", "f": "-rw-r--r-- 0 bytes, 1 links"},
		},
		{
			"links as links, wherever they lead",
			[]tar.Header{symlink("out", "../sentinel/file"), symlink("abs", "/etc/passwd"), symlink("self", "self")},
			map[string]string{"out": "Lrwxrwxrwx to ../sentinel/file", "abs": "Lrwxrwxrwx to /etc/passwd", "self": "Lrwxrwxrwx to self"},
		},
		{
			"hard links within",
			[]tar.Header{file("a", 3), dir("d"), hardLink("d/b", "a")},
			map[string]string{"a": "-rw-r--r-- 3 bytes, 2 links", "d": "drwxr-xr-x", "d/b": "-rw-r--r-- 3 bytes, 2 links"},
		},
		{
			"a hard link to a link as that link",
			[]tar.Header{symlink("out", "../sentinel/file"), hardLink("b", "out")},
			map[string]string{"out": "Lrwxrwxrwx to ../sentinel/file", "b": "Lrwxrwxrwx to ../sentinel/file"},
		},
		{"FIFOs", []tar.Header{dir("d"), special(tar.TypeFifo, "d/p")}, map[string]string{"d": "drwxr-xr-x", "d/p": "prw-------"}},
		{"no devices", []tar.Header{special(tar.TypeChar, "c"), special(tar.TypeBlock, "b"), special(tar.TypeCont, "x"), file("f", 1)}, map[string]string{"f": "-rw-r--r-- 1 bytes, 1 links"}},
		{
			"long names of either kind",
			[]tar.Header{
				{Typeflag: tar.TypeReg, Name: "pax" + long, Format: tar.FormatPAX},
				{Typeflag: tar.TypeReg, Name: "gnu" + long, Format: tar.FormatGNU},
				{Typeflag: tar.TypeSymlink, Name: "l", Linkname: long + long, Format: tar.FormatPAX},
			},
			map[string]string{"pax" + long: "-rw-r--r-- 0 bytes, 1 links", "gnu" + long: "-rw-r--r-- 0 bytes, 1 links", "l": "Lrwxrwxrwx to " + long + long},
		},
		{"names that aren't UTF-8", []tar.Header{{Typeflag: tar.TypeReg, Name: "\xff\xfe\x01", Format: tar.FormatGNU}}, map[string]string{"\xff\xfe\x01": "-rw-r--r-- 0 bytes, 1 links"}},
		{"names that need cleaning", []tar.Header{dir("./d"), file(".//d/../d/./f", 1)}, map[string]string{"d": "drwxr-xr-x", "d/f": "-rw-r--r-- 1 bytes, 1 links"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := newUnpacking(t)
			if err := unpack(u.root, bytes.NewReader(packed(t, c.entries...)), plenty()); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, u.made(t)); diff != "" {
				t.Error(diff)
			}
			u.expectUntouched(t)
		})
	}
}

func TestNothingIsUnpackedElsewhere(t *testing.T) {
	outward := symlink("out", "../sentinel")
	absolute := func(u unpacking) tar.Header { return symlink("out", u.sentinel) }
	cases := []struct {
		name    string
		entries func(u unpacking) []tar.Header
	}{
		{"a file above", func(unpacking) []tar.Header { return []tar.Header{file("../sentinel/x", 1)} }},
		{"a file above, after a detour", func(unpacking) []tar.Header { return []tar.Header{dir("d"), file("d/../../sentinel/x", 1)} }},
		{"a file that is there", func(unpacking) []tar.Header { return []tar.Header{file("../sentinel/file", 1)} }},
		{"an absolute file", func(u unpacking) []tar.Header { return []tar.Header{file(u.sentinel+"/x", 1)} }},
		{"a directory above", func(unpacking) []tar.Header { return []tar.Header{dir("../sentinel/x")} }},
		{"a link above", func(unpacking) []tar.Header { return []tar.Header{symlink("../sentinel/x", "y")} }},
		{"a FIFO above", func(unpacking) []tar.Header { return []tar.Header{special(tar.TypeFifo, "../sentinel/x")} }},
		{"an absolute FIFO", func(u unpacking) []tar.Header { return []tar.Header{special(tar.TypeFifo, u.sentinel+"/x")} }},
		{"a file through a link", func(unpacking) []tar.Header { return []tar.Header{outward, file("out/x", 1)} }},
		{"a file through an absolute link", func(u unpacking) []tar.Header { return []tar.Header{absolute(u), file("out/x", 1)} }},
		{"a file through two links", func(unpacking) []tar.Header {
			return []tar.Header{dir("d"), symlink("d/up", ".."), symlink("o", "d/up/.."), file("o/sentinel/x", 1)}
		}},
		{"a file in the place of a link", func(unpacking) []tar.Header { return []tar.Header{symlink("f", "../sentinel/file"), file("f", 1)} }},
		{"a file in the place of a link to nothing", func(unpacking) []tar.Header { return []tar.Header{symlink("f", "../sentinel/x"), file("f", 1)} }},
		{"a directory through a link", func(unpacking) []tar.Header { return []tar.Header{outward, dir("out/x")} }},
		{"a link through a link", func(unpacking) []tar.Header { return []tar.Header{outward, symlink("out/x", "y")} }},
		{"a FIFO through a link", func(unpacking) []tar.Header { return []tar.Header{outward, special(tar.TypeFifo, "out/x")} }},
		{"a hard link to above", func(unpacking) []tar.Header { return []tar.Header{hardLink("f", "../sentinel/file")} }},
		{"a hard link to an absolute file", func(u unpacking) []tar.Header { return []tar.Header{hardLink("f", u.sentinel+"/file")} }},
		{"a hard link to a file through a link", func(unpacking) []tar.Header { return []tar.Header{outward, hardLink("f", "out/file")} }},
		{"a hard link made through a link", func(unpacking) []tar.Header { return []tar.Header{outward, file("a", 1), hardLink("out/x", "a")} }},
		{"a hard link to nothing", func(unpacking) []tar.Header { return []tar.Header{hardLink("f", "missing")} }},
		{"the same file twice", func(unpacking) []tar.Header { return []tar.Header{file("f", 1), file("f", 2)} }},
		{"the same directory twice", func(unpacking) []tar.Header { return []tar.Header{dir("d"), dir("d")} }},
		{"the same FIFO twice", func(unpacking) []tar.Header {
			return []tar.Header{special(tar.TypeFifo, "p"), special(tar.TypeFifo, "p")}
		}},
		{"the root itself", func(unpacking) []tar.Header { return []tar.Header{dir(".")} }},
		{"the root as a file", func(unpacking) []tar.Header { return []tar.Header{file("", 1)} }},
		{"a file below a file", func(unpacking) []tar.Header { return []tar.Header{file("f", 1), file("f/x", 1)} }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := newUnpacking(t)
			err := unpack(u.root, bytes.NewReader(packed(t, c.entries(u)...)), plenty())
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v", err)
			}
			for _, secret := range []string{"sentinel", "missing"} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("the error has a name of the program's: %v", err)
				}
			}
			u.expectUntouched(t)
		})
	}
}

func TestUnpackEndsWhereThereIsNoRoom(t *testing.T) {
	cases := []struct {
		name    string
		room    allowance
		entries []tar.Header
		want    map[string]string
	}{
		{
			"a file that just fits",
			allowance{10, 1},
			[]tar.Header{file("a", 10)},
			map[string]string{"a": "-rw-r--r-- 10 bytes, 1 links"},
		},
		{
			"one byte too many",
			allowance{10, 9},
			[]tar.Header{file("a", 6), file("b", 5), file("c", 1)},
			map[string]string{"a": "-rw-r--r-- 6 bytes, 1 links", "b": "-rw-r--r-- 5 bytes, 1 links"},
		},
		{
			"one entry too many",
			allowance{10, 2},
			[]tar.Header{dir("d"), file("d/a", 1), file("d/b", 3), file("d/c", 1)},
			map[string]string{"d": "drwxr-xr-x", "d/a": "-rw-r--r-- 1 bytes, 1 links", "d/b": "-rw-r--r-- 3 bytes, 1 links"},
		},
		{
			"one directory too many",
			allowance{10, 1},
			[]tar.Header{dir("d"), dir("d/e"), dir("d/e/f")},
			map[string]string{"d": "drwxr-xr-x", "d/e": "drwxr-xr-x"},
		},
		{
			"links without an end",
			allowance{0, 1},
			[]tar.Header{symlink("a", "x"), symlink("b", "x"), symlink("c", "x")},
			map[string]string{"a": "Lrwxrwxrwx to x", "b": "Lrwxrwxrwx to x"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := newUnpacking(t)
			if err := unpack(u.root, bytes.NewReader(packed(t, c.entries...)), &c.room); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, u.made(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a file that is too large is a hole of its size, whose content isn't read", func(t *testing.T) {
		const size = 1 << 35
		var header bytes.Buffer
		if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: size, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		u := newUnpacking(t)
		unread := iotest.ErrReader(errors.New("the content was read"))
		if err := unpack(u.root, io.MultiReader(&header, unread), &allowance{size - 1, 9}); err != nil {
			t.Error(err)
		}
		info, err := u.root.Lstat("f")
		if err != nil || info.Size() != size || blocks(info) > 1<<20 {
			t.Errorf("%+v, %v", info, err)
		}
	})
	t.Run("the largest size that there is makes a hole as well", func(t *testing.T) {
		var header bytes.Buffer
		if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: 1<<63 - 1, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		u := newUnpacking(t)
		if err := unpack(u.root, &header, plenty()); err != nil {
			t.Error(err)
		}
		if info, err := u.root.Lstat("f"); err != nil || info.Size() != maxHole {
			t.Errorf("%+v, %v", info, err)
		}
	})
	t.Run("what was spent stays spent", func(t *testing.T) {
		room := allowance{10, 2}
		for i, want := range []string{"-rw-r--r-- 6 bytes, 1 links", "-rw-r--r-- 6 bytes, 1 links"} {
			u := newUnpacking(t)
			if err := unpack(u.root, bytes.NewReader(packed(t, file("f", 6))), &room); err != nil || u.made(t)["f"] != want {
				t.Errorf("%d: %v, %v", i, u.made(t), err)
			}
		}
		if !room.overdrawn() {
			t.Errorf("%+v", room)
		}
	})
}

func TestUnpackDepth(t *testing.T) {
	deep := func(floors int) (entries []tar.Header) {
		for n := 1; n <= floors; n++ {
			entries = append(entries, dir(strings.TrimSuffix(strings.Repeat("d/", n), "/")))
		}
		return entries
	}
	for name, c := range map[string]struct {
		entries []tar.Header
		want    int
	}{
		"what is as deep as may be is made":              {deep(safefs.MaxDepth + 1), safefs.MaxDepth + 1},
		"what is deeper is left out":                     {deep(safefs.MaxDepth + 50), safefs.MaxDepth + 1},
		"what is linked to what was left out is as well": {append(deep(safefs.MaxDepth+1), file(strings.Repeat("d/", safefs.MaxDepth+1)+"f", 1), hardLink("e", strings.Repeat("d/", safefs.MaxDepth+1)+"f")), safefs.MaxDepth + 1},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUnpacking(t)
			if err := unpack(u.root, bytes.NewReader(packed(t, c.entries...)), plenty()); err != nil {
				t.Error(err)
			}
			if got := len(u.made(t)); got != c.want {
				t.Errorf("%d were made, want %d", got, c.want)
			}
		})
	}
}

func TestUnpackOfABrokenStream(t *testing.T) {
	whole := packed(t, file("a", 2000), dir("d"), file("d/b", 2000))
	for cut := 1; cut < len(whole)-1200; cut += 100 { // the last blocks say nothing
		if cut%512 == 0 {
			continue
		}
		u := newUnpacking(t)
		err := unpack(u.root, bytes.NewReader(whole[:cut]), plenty())
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err).Msg, "engine") {
			t.Errorf("after %d bytes: %v", cut, err)
		}
	}
	t.Run("what breaks amid a file is the engine's fault, not the disk's", func(t *testing.T) {
		u := newUnpacking(t)
		broken := io.MultiReader(bytes.NewReader(whole[:1000]), iotest.ErrReader(errors.New("connection reset")))
		if err := unpack(u.root, broken, plenty()); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err).Msg, "engine") {
			t.Errorf("%v", err)
		}
	})
	t.Run("what isn't a tar", func(t *testing.T) {
		u := newUnpacking(t)
		if err := unpack(u.root, strings.NewReader(strings.Repeat("no tar ", 200)), plenty()); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%v", err)
		}
	})
	t.Run("what this host can't write is its own fault", func(t *testing.T) {
		u := newUnpacking(t)
		if err := os.RemoveAll(u.root.Name()); err != nil {
			t.Fatal(err)
		}
		if err := unpack(u.root, bytes.NewReader(whole), plenty()); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err).Msg, "written here") {
			t.Errorf("%v", err)
		}
	})
}

// FuzzUnpack: whatever a tar says, nothing outside of the root changes, and no more is
// written than there is room for.
func FuzzUnpack(f *testing.F) {
	f.Add(packed(f, dir("d"), file("d/f", 5), symlink("d/l", "../f"), hardLink("h", "d/f"), special(tar.TypeFifo, "p")), int64(10))
	f.Add(packed(f, symlink("out", "../sentinel"), file("out/x", 1)), int64(10))
	f.Add(packed(f, file("../sentinel/file", 1)), int64(10))
	f.Add(packed(f, hardLink("f", "../sentinel/file")), int64(10))
	f.Add(packed(f, file("f", 100)), int64(10))
	f.Add(packed(f, tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("n", 300), Format: tar.FormatPAX}), int64(0))
	fuzzbound.Run(f, func(t *testing.T, raw []byte, room int64) {
		const entries = 20
		room = max(room, 0) % (1 << 16)
		u := newUnpacking(t)
		_ = unpack(u.root, bytes.NewReader(raw), &allowance{room, entries}) // an error is an answer, too
		u.expectUntouched(t)
		seen := map[uint64]bool{}
		var used int64
		made := 0
		err := filepath.WalkDir(u.root.Name(), func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			if inode := info.Sys().(*syscall.Stat_t).Ino; info.Mode().IsRegular() && !seen[inode] {
				used += min(blocks(info), info.Size())
				seen[inode] = true // hard links take no room
			}
			if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeDevice) != 0 {
				t.Errorf("made %v", info.Mode())
			}
			made++
			return nil
		})
		if err != nil || used > room || made > entries+2 { // the root, and the one for which there was no room
			t.Errorf("%d bytes and %d entries, of %d and %d: %v", used, made, room, entries, err)
		}
	})
}
