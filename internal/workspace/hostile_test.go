package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

func paths(found api.Changes) string {
	var all []string
	for _, c := range found.Changes {
		all = append(all, c.Op+" "+c.Path)
	}
	return strings.Join(all, ", ")
}

func TestACopyInWhichAHostileProgramWorked(t *testing.T) {
	base := mustStore(t, tree(t, map[string]string{"a": "x\n", "d/f": "x\n", "dev": "x\n", "out": "x\n", "dir/one": "x\n"}), Options{})
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want string // the changes
		says string // of the warnings
	}{
		"links out and in": {func(t *testing.T, dir string) {
			put(t, dir, "out", "-> /etc/passwd")
			put(t, dir, "dir", "-> ../..")
			put(t, dir, "up", "-> d/../..")
			put(t, dir, "cycle", "-> cycle")
		}, "add cycle", "leads out"},
		"a FIFO in a file's place": {func(t *testing.T, dir string) {
			_ = os.Remove(filepath.Join(dir, "dev"))
			if err := syscall.Mkfifo(filepath.Join(dir, "dev"), 0o666); err != nil {
				t.Skip(err)
			}
		}, "", "a FIFO"},
		"a device": {func(t *testing.T, dir string) {
			if err := syscall.Mknod(filepath.Join(dir, "null"), syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
				t.Skip(err)
			}
		}, "", "a device"},
		"a .git of its own": {func(t *testing.T, dir string) {
			put(t, dir, ".git/hooks/pre-commit*", "evil")
			put(t, dir, "d/.GIT/config", "evil")
			put(t, dir, ".gi\u200ct/hooks/x", "evil")
			put(t, dir, "git~1/hooks/x", "evil")
			put(t, dir, "l", "-> .git/hooks")
		}, "", "git's own"},
		"names": {func(t *testing.T, dir string) {
			put(t, dir, "a\nb", "x")
			put(t, dir, "-rf", "x")
			put(t, dir, "a\xff", "x")
			put(t, dir, ".aod-apply/journal", "x")
		}, "add -rf, add a\nb", "UTF-8"},
		"closed files and directories": {func(t *testing.T, dir string) {
			put(t, dir, "a", "y\n")
			_ = os.Chmod(filepath.Join(dir, "a"), 0)
			_ = os.Chmod(filepath.Join(dir, "d"), 0)
		}, "modify a", ""},
		"a time that lies": {func(t *testing.T, dir string) {
			info, _ := os.Stat(filepath.Join(dir, "a"))
			put(t, dir, "a", "y\n")
			_ = os.Chtimes(filepath.Join(dir, "a"), info.ModTime(), info.ModTime())
		}, "modify a", ""},
		"nothing left of it": {func(_ *testing.T, dir string) { _ = os.RemoveAll(dir) }, "", "removed or replaced"},
		"a link instead of it": {func(_ *testing.T, dir string) {
			_ = os.RemoveAll(dir)
			_ = os.Symlink("/etc", dir)
		}, "", "removed or replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			work := copyOf(t, base)
			c.make(t, work)
			found, _ := compared(t, base, work, CompareOptions{})
			if got := paths(found); got != c.want {
				t.Errorf("the changes are %q, want %q", got, c.want)
			}
			if all := strings.Join(found.Warnings, "\n"); !strings.Contains(all, c.says) || c.says == "" && all != "" {
				t.Errorf("the warnings are %q", all)
			}
		})
	}
}

func TestTooMuchIsRefused(t *testing.T) {
	base := mustStore(t, tree(t, map[string]string{"a": "x\n"}), Options{})
	t.Run("files", func(t *testing.T) {
		work := copyOf(t, base)
		for i := range 30 {
			put(t, work, fmt.Sprint(i), "")
		}
		_, err := Compare(t.Context(), base, work, filepath.Join(t.TempDir(), "c"), CompareOptions{Limits: Limits{Files: 20}})
		wantFault(t, err, fault.TooLarge, "more than 20 files")
	})
	t.Run("bytes, sparse ones as well", func(t *testing.T) {
		work := copyOf(t, base)
		if err := sparse(filepath.Join(work, "big"), 2<<30); err != nil {
			t.Fatal(err)
		}
		_, err := Compare(t.Context(), base, work, filepath.Join(t.TempDir(), "c"), CompareOptions{})
		wantFault(t, err, fault.TooLarge, "1GiB")
	})
}

func TestWhatIsIgnoredIsNoChange(t *testing.T) {
	base := mustStore(t, tree(t, map[string]string{"a": "x\n", ".aodignore": ".env\ntarget\n"}), Options{})
	work := copyOf(t, base)
	put(t, work, ".env", "A=1")
	put(t, work, "target/x", "built")
	put(t, work, "cache/x", "built")
	found, _ := compared(t, base, work, CompareOptions{Ignore: []string{"cache"}})
	if len(found.Changes) > 0 {
		t.Error(paths(found))
	}
}

func TestChangesOfStrangers(t *testing.T) {
	sum := strings.Repeat("a", 64)
	for name, raw := range map[string]string{
		"no JSON":             `{`,
		"a path out":          `{"changes":[{"path":"../x","op":"add","mode":"100644","after":"` + sum + `"}]}`,
		"a .git":              `{"changes":[{"path":"a/.GIT/hooks/x","op":"add","mode":"100644","after":"` + sum + `"}]}`,
		"no hash":             `{"changes":[{"path":"x","op":"add","mode":"100644"}]}`,
		"another operation":   `{"changes":[{"path":"x","op":"run","mode":"100644","after":"` + sum + `"}]}`,
		"another mode":        `{"changes":[{"path":"x","op":"add","mode":"104755","after":"` + sum + `"}]}`,
		"a path twice":        `{"changes":[{"path":"x","op":"add","mode":"100644","after":"` + sum + `"},{"path":"x","op":"delete","mode":"100644","before":"` + sum + `"}]}`,
		"a file below a file": `{"changes":[{"path":"x","op":"add","mode":"120000","after":"` + sum + `"},{"path":"x/y","op":"add","mode":"100644","after":"` + sum + `"}]}`,
		"our own directory":   `{"changes":[{"path":".aod-apply/journal","op":"add","mode":"100644","after":"` + sum + `"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadChanges([]byte(raw))
			wantFault(t, err, fault.Input)
		})
	}
}

// The program of a session may go on working while its project is compared.
func TestACopyThatChangesWhileItIsCompared(t *testing.T) {
	files := map[string]string{"same": "x"}
	for i := range 40 {
		files[fmt.Sprintf("d%d/f", i)] = "x\n"
	}
	base := mustStore(t, tree(t, files), Options{})
	work := copyOf(t, base)
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			dir := filepath.Join(work, fmt.Sprintf("d%d", i%40))
			switch i / 40 % 4 {
			case 0:
				_ = os.WriteFile(filepath.Join(dir, "f"), []byte("other"), 0o600)
			case 1:
				_ = os.RemoveAll(dir)
			case 2:
				_ = os.Symlink("/etc", dir)
			case 3:
				_ = os.Remove(dir)
				_ = os.Mkdir(dir, 0o700)
			}
		}
	}()
	for range 30 {
		found, _ := compared(t, base, work, CompareOptions{})
		for _, c := range found.Changes {
			if c.Path == "same" || c.Mode == modeLink && c.Op != api.OpDelete {
				t.Errorf("changed: %+v", c)
			}
		}
	}
}

func TestAComparisonClosesNothing(t *testing.T) {
	base := mustStore(t, tree(t, map[string]string{"d/f": "x\n"}), Options{})
	work := copyOf(t, base)
	for name, mode := range map[string]os.FileMode{".": 0o777, "d": 0o777, "d/f": 0o666} {
		if err := os.Chmod(filepath.Join(work, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	compared(t, base, work, CompareOptions{})
	for name, mode := range map[string]os.FileMode{".": 0o777, "d": 0o777, "d/f": 0o666} {
		if info, err := os.Stat(filepath.Join(work, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}
