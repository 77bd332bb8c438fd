package worker

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// What programs remember comes through a tar as it was, but for what isn't a file, a directory or a link.
func TestWhatProgramsRememberIsPacked(t *testing.T) {
	t.Parallel()
	home, to := t.TempDir(), filepath.Join(t.TempDir(), "home")
	for name, content := range map[string]string{"told": "once", ".config/deep/key": "k"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Mkdir(filepath.Join(home, "empty"), 0o700), os.Symlink("/etc/passwd", filepath.Join(home, "link")),
		syscall.Mkfifo(filepath.Join(home, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var packed bytes.Buffer
	if err := packTree(&packed, root); err != nil {
		t.Fatal(err)
	}
	if err := unpackTree(to, &packed); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"told": "once", ".config/deep/key": "k"} {
		if raw, err := os.ReadFile(filepath.Join(to, name)); string(raw) != want {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
	if target, err := os.Readlink(filepath.Join(to, "link")); target != "/etc/passwd" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if info, err := os.Stat(filepath.Join(to, "empty")); err != nil || !info.IsDir() {
		t.Errorf("the empty directory: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(to, "pipe")); err == nil {
		t.Error("the pipe has come along")
	}
	if !canPack(home, 1) || canPack(home, -64<<20) {
		t.Error("what fits isn't known")
	}
}

// A program has written what is unpacked: nothing of it comes to lie elsewhere.
func FuzzUnpackTree(f *testing.F) {
	for _, entries := range [][]tar.Header{
		{{Name: "a", Typeflag: tar.TypeReg, Size: 1}, {Name: "d/", Typeflag: tar.TypeDir}},
		{{Name: "../out", Typeflag: tar.TypeReg, Size: 1}},
		{{Name: "up", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "up/out", Typeflag: tar.TypeReg, Size: 1}},
		{{Name: "/out", Typeflag: tar.TypeReg, Size: 1}, {Name: "x", Typeflag: tar.TypeLink, Linkname: "../out"}},
	} {
		var packed bytes.Buffer
		out := tar.NewWriter(&packed)
		for _, head := range entries {
			_ = out.WriteHeader(&head) // a bad one is what is wanted
			_, _ = out.Write(make([]byte, head.Size))
		}
		f.Add(packed.Bytes())
	}
	fuzzbound.Run(f, func(t *testing.T, packed []byte) {
		dir := t.TempDir()
		_ = unpackTree(filepath.Join(dir, "home"), bytes.NewReader(packed)) // it may be none
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("there are %v, %v", entries, err)
		}
	})
}
