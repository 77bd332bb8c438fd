package quota

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// bounded returns a directory with a project of its own, and one in it that is the project's and everybody's.
func bounded(t *testing.T, disk, name string) (dir, tree string, p Project) {
	t.Helper()
	dir = filepath.Join(disk, name)
	tree = filepath.Join(dir, "tree")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(tree, 0o700), os.Chmod(tree, 0o777)); err != nil {
		t.Fatal(err)
	}
	p, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Give(tree); err != nil {
		t.Fatal(err)
	}
	return dir, tree, p
}

// sh runs a command in a directory as a user whom quotas bind.
func sh(t *testing.T, dir, script string) (said string, ok bool) {
	t.Helper()
	command := exec.Command("sh", "-c", script)
	command.Dir = dir
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	out, err := command.CombinedOutput()
	return string(out), err == nil
}

func TestAProjectHoldsNoMoreThanItsLimit(t *testing.T) {
	disk := testkit.QuotaDisk(t)
	cases := []struct {
		name, script string
		bytes, files bool
	}{
		{"below", "head -c 500K /dev/zero > a && sync", false, false},
		{"a file", "head -c 2M /dev/zero > a", true, false},
		{"deleted files that are open", "for i in 1 2 3 4; do exec 3>x && exec 4>&3 && rm x && head -c 2M /dev/zero >&3 || exit 1; done", true, false},
		{"a file that is there no more", "head -c 2M /dev/zero > a; rm a; false", true, false},
		{"a large piece at once", "fallocate -l 100M a", true, false},
		{"many files", "for i in $(seq 50); do : > f$i || exit 1; done", false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, tree, p := bounded(t, disk, c.name)
			if err := p.Limit(1<<20, 40); err != nil {
				t.Fatal(err)
			}
			said, ok := sh(t, tree, c.script)
			refused := c.bytes || c.files
			if ok == refused || refused && !strings.Contains(said, "Disk quota exceeded") {
				t.Errorf("it ended well: %v, and said:\n%s", ok, said)
			}
			if bytes, files := p.Met(); bytes != c.bytes || files != c.files {
				t.Errorf("met its limit of bytes: %v, of files: %v", bytes, files)
			}
			if p.Forget(); !c.bytes && !c.files {
				return
			}
			if err := os.RemoveAll(tree); err != nil {
				t.Fatal(err)
			}
			if bytes, files := p.Met(); bytes || files {
				t.Errorf("what was forgotten is known: %v, %v", bytes, files)
			}
		})
	}
}

func TestFilesThatLeaveBelongToNoProject(t *testing.T) {
	disk := testkit.QuotaDisk(t)
	dir, tree, p := bounded(t, disk, "a")
	if _, ok := sh(t, tree, "mkdir d && head -c 10K /dev/zero > d/f"); !ok {
		t.Fatal("nothing was written")
	}
	for _, name := range []string{"d/f", "d"} {
		f, err := os.Open(filepath.Join(tree, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Take(f), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(tree, "d"), filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(tree); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "d", "g"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := p.get(); err != nil || got.inodes != 0 || got.space != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := New(dir); err != nil {
		t.Errorf("the project of a directory whose files have left: %v", err)
	}
}

func TestNoTwoDirectoriesHaveOneProject(t *testing.T) {
	disk := testkit.QuotaDisk(t)
	living := map[uint32]bool{}
	for i := range 100 {
		dir, _, p := bounded(t, disk, fmt.Sprint(i))
		moved := dir + " moved"
		if err := os.Rename(dir, moved); err != nil {
			t.Fatal(err)
		}
		if got := Of(filepath.Join(moved, "tree")); got.id != p.id || living[p.id] {
			t.Fatalf("project %d, and %d after it was moved; another's: %v", p.id, got.id, living[p.id])
		}
		if i%2 == 1 {
			living[p.id] = true
		} else if err := os.RemoveAll(moved); err != nil { // the next one may have its inode
			t.Fatal(err)
		}
	}
}

func TestADirectoryWhoseProjectHasFilesElsewhereGetsNone(t *testing.T) {
	disk := testkit.QuotaDisk(t)
	dir, tree, p := bounded(t, disk, "a")
	if err := os.Rename(tree, filepath.Join(disk, "away")); err != nil {
		t.Fatal(err)
	}
	if got, err := New(dir); !errors.Is(err, ErrUnsupported) || got.Given() {
		t.Errorf("%+v, %v, as before %+v", got, err, p)
	}
}

func TestADirectoryOfAnotherProjectGetsNone(t *testing.T) {
	disk := testkit.QuotaDisk(t)
	_, tree, _ := bounded(t, disk, "a")
	if got, err := New(tree); !errors.Is(err, ErrUnsupported) || got.Given() {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSweepRemovesTheLimitsOfTheDead(t *testing.T) {
	disk := testkit.QuotaDisk(t)
	dir, _, dead := bounded(t, disk, "dead")
	_, _, living := bounded(t, disk, "living")
	others := Project{disk, 1000}
	if err := errors.Join(dead.Limit(1<<20, 0), living.Limit(1<<20, 0), others.Limit(1<<20, 0), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(disk); err != nil {
		t.Fatal(err)
	}
	dead.dir = disk
	for _, c := range []struct {
		name    string
		project Project
		limit   uint64
	}{{"dead", dead, 0}, {"living", living, 1 << 10}, {"another's", others, 1 << 10}} {
		if got, err := c.project.get(); err != nil || got.blockHard != c.limit {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestCheckSaysWhyNot(t *testing.T) {
	err := Check(t.TempDir())
	if err == nil {
		t.Skip("project quotas are kept here")
	}
	if !errors.Is(err, ErrUnsupported) || err.Error() == ErrUnsupported.Error() {
		t.Errorf("%v", err)
	}
	if err := Check(testkit.QuotaDisk(t)); err != nil {
		t.Errorf("where they are kept: %v", err)
	}
}
