package safefs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// hostile are things that untrusted code may leave below "root" where the file "x" is
// opened, with what is said of each; "" is fs.ErrNotExist. OpenInside says another thing
// where it follows a link.
var hostile = []struct {
	name   string
	make   func(t *testing.T, root string)
	says   string
	inside string
}{
	{"nothing", func(*testing.T, string) {}, "", ""},
	{"a directory", func(t *testing.T, root string) { must(t, os.Mkdir(root+"/x", 0o755)) }, "is a directory, not a regular file", "is a directory, not a regular file"},
	{"a FIFO", func(t *testing.T, root string) { fifo(t, root+"/x") }, "is a FIFO, not a regular file", "is a FIFO, not a regular file"},
	{"a socket", func(t *testing.T, root string) { socket(t, root+"/x") }, "is a socket, not a regular file", "no such device or address"},
	{"a device", func(t *testing.T, root string) { device(t, root+"/x") }, "is a device, not a regular file", "a device"},
	{"a link within", func(t *testing.T, root string) { write(t, root+"/y", "y"); link(t, "y", root+"/x") }, "is a symbolic link, not a regular file", "opened"},
	{"a link out", func(t *testing.T, root string) { link(t, "../secret", root+"/x") }, "is a symbolic link, not a regular file", "escapes"},
	{"an absolute link out", func(t *testing.T, root string) { link(t, "/etc/passwd", root+"/x") }, "is a symbolic link, not a regular file", "escapes"},
	{"a link to itself", func(t *testing.T, root string) { link(t, "x", root+"/x") }, "is a symbolic link, not a regular file", "too many"},
	{"a link to nothing", func(t *testing.T, root string) { link(t, "y", root+"/x") }, "is a symbolic link, not a regular file", ""},
}

// saidOf is what an opening came to.
func saidOf(f *os.File, err error) string {
	switch {
	case err == nil:
		_ = f.Close()
		return "opened"
	case errors.Is(err, fs.ErrNotExist):
		return ""
	}
	return err.Error()
}

func TestNothingButARegularFileIsOpened(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/secret", "secret")
			must(t, os.Mkdir(dir+"/inside", 0o755))
			c.make(t, dir+"/inside")
			root := openRoot(t, dir+"/inside")
			f, _, err := OpenRegular(root, "x")
			if got := saidOf(f, err); got != c.says {
				t.Errorf("OpenRegular: %q", got)
			}
			f, _, err = OpenInside(root, "x")
			if got := saidOf(f, err); (got == "") != (c.inside == "") || !strings.Contains(got, c.inside) && c.name != "a device" {
				t.Errorf("OpenInside: %q", got)
			}
		})
	}
}

func TestARegularFileIsOpened(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/x", "1")
	write(t, dir+"/a/b/x", "333")
	root := openRoot(t, dir)
	for name, want := range map[string]string{"x": "1", "a/b/x": "333"} {
		for way, open := range map[string]func(*os.Root, string) (*os.File, fs.FileInfo, error){"OpenRegular": OpenRegular, "OpenInside": OpenInside} {
			f, info, err := open(root, name)
			must(t, err)
			raw, err := io.ReadAll(f)
			if err != nil || string(raw) != want || info.Size() != int64(len(want)) {
				t.Errorf("%s %s: %q, %d, %v", way, name, raw, info.Size(), err)
			}
			must(t, f.Close())
		}
	}
	if _, err := root.Stat("x"); err != nil {
		t.Errorf("the root was closed: %v", err)
	}
}

func TestNamesThatLeadElsewhereAreRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/secret", "secret")
	write(t, dir+"/inside/d/x", "x")
	root := openRoot(t, dir+"/inside")
	bad := []string{"", "/", "..", "../secret", "d/../../secret", "d/../d/x", "/d/x", "d//x", "d/", dir + "/secret", "d/x\x00y", "d\x00/x", "x\x00", strings.Repeat("d/", 5000) + "x"}
	for _, name := range bad {
		if f, _, err := OpenRegular(root, name); err == nil {
			_ = f.Close()
			t.Errorf("%.40q was opened", name)
		}
	}
}

func TestNoLinkOnTheWayIsFollowed(t *testing.T) {
	there := map[string]struct {
		make func(t *testing.T, root string)
		says string
	}{
		"a link within": {func(t *testing.T, root string) { write(t, root+"/real/x", "x"); link(t, "real", root+"/d") }, "is a symbolic link, not a directory"},
		"a link out":    {func(t *testing.T, root string) { link(t, "../outside", root+"/d") }, "is a symbolic link, not a directory"},
		"a file":        {func(t *testing.T, root string) { write(t, root+"/d", "x") }, "is a regular file, not a directory"},
		"a FIFO":        {func(t *testing.T, root string) { fifo(t, root+"/d") }, "is a FIFO, not a directory"},
		"a link further": {func(t *testing.T, root string) {
			must(t, os.Mkdir(root+"/d", 0o755))
			link(t, "../../outside", root+"/d/e")
		}, "is a symbolic link, not a directory"},
	}
	for name, c := range there {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/outside/e/x", "secret")
			must(t, os.Mkdir(dir+"/inside", 0o755))
			c.make(t, dir+"/inside")
			_, _, err := OpenRegular(openRoot(t, dir+"/inside"), "d/e/x")
			var special *Irregular
			if !errors.As(err, &special) || !special.OnTheWay || special.Changing() || err.Error() != c.says {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAFIFOInThePlaceOfADirectoryKeepsNobodyWaiting(t *testing.T) {
	dir := t.TempDir()
	fifo(t, dir+"/d")
	root := openRoot(t, dir)
	refused := make(chan error, 1)
	go func() {
		_, err := openDirOnly(root, "d")
		refused <- err
	}()
	select {
	case err := <-refused:
		if err == nil {
			t.Error("it was opened")
		}
	case <-time.After(testkit.Patience):
		t.Error("it waits for ever")
	}
}

func TestWhatChangesUnderOurHandsIsNeverTheWrongFile(t *testing.T) {
	for _, c := range []struct{ name, open, put string }{
		{"the file", "x", "l"}, {"a FIFO", "x", "f"}, {"a directory on the way", "d/x", "e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/outside/x", "secret")
			write(t, dir+"/inside/x", "good")
			write(t, dir+"/inside/d/x", "good")
			write(t, dir+"/inside/inner/x", "secret")
			link(t, "inner/x", dir+"/inside/l")
			link(t, "inner", dir+"/inside/e")
			fifo(t, dir+"/inside/f")
			first, _, _ := strings.Cut(c.open, "/")
			opened, refused := 0, 0
			swapping(t, dir+"/inside", first, c.put, func() {
				root := openRoot(t, dir+"/inside")
				for range 3000 {
					switch got, err := contentOf(root, c.open); {
					case err != nil:
						refused++
						known(t, err)
					case got != "good":
						t.Errorf("it read %q", got)
					default:
						opened++
					}
				}
			})
			t.Logf("%d opened, %d refused", opened, refused)
		})
	}
}

func known(t *testing.T, err error) {
	t.Helper()
	var special *Irregular
	var of *fs.PathError
	if !errors.As(err, &special) && !errors.As(err, &of) {
		t.Errorf("an unknown error: %v", err)
	}
}

func contentOf(root *os.Root, name string) (string, error) {
	f, _, err := OpenRegular(root, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(f)
	return string(raw), err
}

// swapping has two names below dir exchange what they are for as long as do takes, which
// may not be long.
func swapping(t *testing.T, dir, a, b string, do func()) {
	t.Helper()
	stop, stopped, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				exchange(t, filepath.Join(dir, a), filepath.Join(dir, b))
			}
		}
	}()
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("something waits for ever")
	}
	close(stop)
	<-stopped
}

func TestAUsersFileIsOpenedAlsoThroughLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/x", "x")
	link(t, dir+"/x", dir+"/link")
	link(t, "nowhere", dir+"/dangling")
	fifo(t, dir+"/fifo")
	for name, want := range map[string]string{
		"x": "opened", "link": "opened", "dangling": "", "missing": "",
		"fifo": "is a FIFO, not a regular file", ".": "is a directory, not a regular file", "../../../../../../../../dev/null": "is a device, not a regular file",
	} {
		f, _, err := OpenNamed(filepath.Join(dir, name))
		if got := saidOf(f, err); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAClosedFileIsAPermissionError(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	dir := t.TempDir()
	write(t, dir+"/x", "x")
	write(t, dir+"/d/x", "x")
	must(t, os.Chmod(dir+"/x", 0))
	must(t, os.Chmod(dir+"/d", 0))
	defer func() { _ = os.Chmod(dir+"/d", 0o700) }()
	root := openRoot(t, dir)
	for _, name := range []string{"x", "d/x"} {
		if _, _, err := OpenRegular(root, name); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDescend(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a/b/x", "x")
	root := openRoot(t, dir)
	sub, err := Descend(root, "a/b")
	must(t, err)
	defer sub.Close()
	if raw, err := sub.ReadFile("x"); err != nil || string(raw) != "x" {
		t.Errorf("%q, %v", raw, err)
	}
	if _, err := Descend(root, "a/c"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestDescribe(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		0o644: "a regular file", fs.ModeDir | 0o755: "a directory", fs.ModeSymlink: "a symbolic link", fs.ModeNamedPipe: "a FIFO",
		fs.ModeSocket: "a socket", fs.ModeDevice: "a device", fs.ModeDevice | fs.ModeCharDevice: "a device", fs.ModeIrregular: "a special file",
	} {
		if got := Describe(mode); got != want {
			t.Errorf("%v: %q", mode, got)
		}
	}
}
