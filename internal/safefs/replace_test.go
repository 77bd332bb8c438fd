package safefs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestAFileIsReplacedByAWholeOne(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	there := map[string]func(t *testing.T, path string){
		"nothing":          func(*testing.T, string) {},
		"a file":           func(t *testing.T, path string) { write(t, path, "a longer old one") },
		"a read-only file": func(t *testing.T, path string) { write(t, path, "old"); must(t, os.Chmod(path, 0o400)) },
		"a link":           func(t *testing.T, path string) { link(t, "../outside", path) },
		"a FIFO":           fifo,
	}
	for _, o := range []ReplaceOptions{{Mode: 0o666}, {Mode: 0o666, Synced: true}, {Mode: 0o666, OneWriter: true}} {
		for what, make := range there {
			t.Run(fmt.Sprintf("%+v where there is %s", o, what), func(t *testing.T) {
				dir := t.TempDir()
				write(t, dir+"/outside", "outside")
				must(t, os.Mkdir(dir+"/d", 0o755))
				path := filepath.Join(dir, "d", "x")
				make(t, path)
				must(t, Replace(path, []byte("new"), o))
				if read(t, path) != "new" || mode(t, path) != 0o666 || read(t, dir+"/outside") != "outside" {
					t.Errorf("%q with mode %v", read(t, path), mode(t, path))
				}
				if left := names(t, dir); len(left) != 3 {
					t.Errorf("left: %q", left)
				}
			})
		}
	}
}

func TestAFileThatCannotBeReplacedStaysAsItIs(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/x/y", "old")
	for _, path := range []string{dir + "/x", dir + "/x/y/z", dir + "/nowhere/x", dir + "/x/a\x00b"} {
		for _, o := range []ReplaceOptions{{Mode: 0o600}, {Mode: 0o600, OneWriter: true}} {
			if err := Replace(path, []byte("new"), o); err == nil {
				t.Errorf("%q was written", path)
			}
		}
	}
	if left := names(t, dir); len(left) != 2 || read(t, dir+"/x/y") != "old" {
		t.Errorf("left: %q", left)
	}
}

func TestOneWriterUsesUpWhatADeadOneLeft(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/"+TempPrefix+"x", "longer than what is written now")
	must(t, Replace(dir+"/x", []byte("new"), ReplaceOptions{Mode: 0o600, OneWriter: true}))
	if left := names(t, dir); len(left) != 1 || read(t, dir+"/x") != "new" {
		t.Errorf("left: %q", left)
	}
}

func TestManyReplaceAFileAtOnce(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if err := Replace(dir+"/x", []byte(strings.Repeat(string(rune('a'+i)), 10_000)), ReplaceOptions{Mode: 0o600}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := read(t, dir+"/x"); len(got) != 10_000 || strings.Trim(got, got[:1]) != "" || len(names(t, dir)) != 1 {
		t.Errorf("%d bytes, %q", len(got), names(t, dir))
	}
}

func TestATempNameIsNewAndMarked(t *testing.T) {
	a, b := TempName(), TempName()
	if a == b || !strings.HasPrefix(a, TempPrefix) || !filepath.IsLocal(a) {
		t.Error(a, b)
	}
}
