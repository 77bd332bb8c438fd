package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func taken(t *testing.T, l Layout) Layout {
	t.Helper()
	l, err := l.TakeOutput()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestWhatAProgramThatLivesHasPublishedIsOutOfItsReach(t *testing.T) {
	l := newLayout(t)
	dest := filepath.Join(filepath.Dir(l.Dir), "published")
	write(t, l.path("io/output/a"), "content")
	write(t, l.path("io/output/sub/b"), "more")
	link(t, "/etc/passwd", l.path("io/output/link"))
	open, err := os.OpenFile(l.path("io/output/a"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	inside, err := os.OpenRoot(l.path("io/output/sub"))
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	l = taken(t, taken(t, l))
	found := collected(t, l)
	_, _ = open.WriteString("CONTENT, and longer")
	files, err := l.Publish(found, dest)
	if err != nil || len(files) != 2 || files[0].SizeBytes != int64(len("CONTENT")) || files[0].Path != dest+"/a" {
		t.Fatalf("%+v %v", files, err)
	}
	_, _ = open.WriteAt([]byte("changed"), 0)
	if err := errors.Join(inside.Remove("b"), inside.Symlink("/etc/passwd", "b")); err != nil {
		t.Fatal(err)
	}
	if read(t, dest+"/a") != "CONTENT" || read(t, dest+"/sub/b") != "more" {
		t.Error("it has changed")
	}
	if diff := cmp.Diff([]string{"a", "sub", "sub/b"}, tree(t, dest)); diff != "" {
		t.Error(diff)
	}
	if digest("CONTENT") != files[0].SHA256 {
		t.Error(files[0].SHA256)
	}
	again := OpenLayout(l.Dir, "")
	again.Output = dest // as another process finds it
	if files, err := taken(t, again).Publish(found, dest); err != nil || len(files) != 2 {
		t.Errorf("%+v %v", files, err)
	}
	if err := l.Reset(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestALinkInThePlaceOfTheOutputLeadsNowhere(t *testing.T) {
	for name, rebuild := range map[string]func(l Layout) error{
		"a link":  func(l Layout) error { return os.Symlink("/etc", l.path("io/output")) },
		"nothing": func(Layout) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t)
			if err := errors.Join(os.Remove(l.path("io/output")), rebuild(l)); err != nil {
				t.Fatal(err)
			}
			var over *LimitError
			if _, err := taken(t, l).Collect(DefaultLimits()); !errors.As(err, &over) {
				t.Error(err)
			}
		})
	}
}
