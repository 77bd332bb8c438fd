package runtime

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// mess fills /io/output with files to publish and with much that isn't.
func mess(t *testing.T, l Layout) {
	t.Helper()
	out := l.path("io/output")
	write(t, out+"/a", "content")
	write(t, out+"/sub/deep/"+long, "")
	write(t, out+"/suid", "x")
	if err := os.Chmod(out+"/suid", 0o777|fs.ModeSetuid|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	write(t, out+"/sub/closed", "c")
	if err := os.Chmod(out+"/sub/closed", 0); err != nil {
		t.Fatal(err)
	}
	link(t, "a", out+"/link")
	link(t, l.Dir, out+"/sub/away")
	fifo(t, out+"/sub/fifo")
	write(t, out+"/control\n", "")
	write(t, out+"/\xff/no UTF-8", "")
	if err := os.MkdirAll(out+"/empty/more", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/empty/more", "/empty", "/sub/deep", "/sub"} {
		if err := os.Chmod(out+dir, 0o500); err != nil {
			t.Fatal(err)
		}
	}
}

func collected(t *testing.T, l Layout) []Found {
	t.Helper()
	listing, err := l.Collect(DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return listing.Files
}

func TestPublishLeavesTheFilesAndNothingElse(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	l, dest := newLayout(t), filepath.Join(t.TempDir(), "result")
	mess(t, l)
	found := collected(t, l)
	files, err := l.Publish(found, dest)
	if err != nil {
		t.Fatal(err)
	}
	want := []File{
		{"a", dest + "/a", 7, digest("content")},
		{"sub/closed", dest + "/sub/closed", 1, digest("c")},
		{"sub/deep/" + long, dest + "/sub/deep/" + long, 0, digest("")},
		{"suid", dest + "/suid", 1, digest("x")},
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "sub", "sub/closed", "sub/deep", "sub/deep/" + long, "suid"}, tree(t, dest)); diff != "" {
		t.Error(diff)
	}
	for _, f := range files {
		if m := mode(t, f.Path); m != 0o644 {
			t.Errorf("%s has mode %v", f.Name, m)
		}
	}
	for _, dir := range []string{"", "/sub", "/sub/deep"} {
		if m := mode(t, dest+dir); m != 0o755|fs.ModeDir {
			t.Errorf("the directory %q has mode %v", dir, m)
		}
	}
	if _, err := os.Lstat(l.path("io/output")); err == nil {
		t.Error("/io/output is still there")
	}
	t.Run("and again, when nobody knows that it was done", func(t *testing.T) {
		l := OpenLayout(l.Dir, "")
		l.Output = dest
		again, err := l.Publish(collected(t, l), dest)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files, again); diff != "" {
			t.Error(diff)
		}
		if m := mode(t, dest); m != 0o755|fs.ModeDir {
			t.Errorf("mode %v", m)
		}
	})
}

func TestPublishMakesTheFilesOurs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	l, dest := newLayout(t), filepath.Join(t.TempDir(), "result")
	write(t, l.path("io/output/sub/a"), "x")
	for _, name := range []string{"io/output/sub/a", "io/output/sub", "io/output"} {
		if err := os.Lchown(l.path(name), unprivileged, unprivileged); err != nil {
			t.Skipf("root can't give files away here: %v", err)
		}
	}
	if _, err := l.Publish(collected(t, l), dest); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "/sub", "/sub/a"} {
		info, err := os.Lstat(dest + name)
		if err != nil {
			t.Fatal(err)
		}
		if owner := ownerOf(info); owner != 0 {
			t.Errorf("%q belongs to %d", name, owner)
		}
	}
}

func TestPublishOfNothingIsAnEmptyDirectory(t *testing.T) {
	l, dest := newLayout(t), filepath.Join(t.TempDir(), "result")
	link(t, "x", l.path("io/output/link"))
	files, err := l.Publish(nil, dest)
	if err != nil || len(files) > 0 || len(tree(t, dest)) > 0 {
		t.Errorf("%+v, %v", files, err)
	}
}

func TestPublishGoesOnAfterItWasBrokenOff(t *testing.T) {
	l, dest := newLayout(t), filepath.Join(t.TempDir(), "results", "r1")
	write(t, l.path("io/output/sub/a"), "x")
	link(t, "x", l.path("io/output/link"))
	if _, err := l.Publish(collected(t, l), dest); err == nil { // its parent isn't there
		t.Fatal("it was published")
	}
	if err := os.Mkdir(filepath.Dir(dest), 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := l.Publish(collected(t, l), dest)
	if err != nil || len(files) != 1 || read(t, files[0].Path) != "x" {
		t.Errorf("%+v, %v", files, err)
	}
}

func TestPublishRemovesATowerOfDirectories(t *testing.T) {
	l, dest := newLayout(t), filepath.Join(t.TempDir(), "result")
	write(t, l.path("io/output/a"), "x")
	testkit.Tower(t, l.path("io/output"), "d", 2000)
	if files, err := l.Publish([]Found{{Name: "a"}}, dest); err != nil || len(tree(t, dest)) != 1 {
		t.Errorf("%+v, %v", files, err)
	}
}
