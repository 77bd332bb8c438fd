package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// A process that dies between two steps, or a loss of power there, must leave a whole home and
// the other one beside it.
func TestThereIsAHomeAtEveryMomentOfARestore(t *testing.T) {
	dir := t.TempDir()
	home, mark := filepath.Join(dir, "server"), "mark"
	write := func(home, text string) {
		t.Helper()
		if err := os.MkdirAll(home, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, mark), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(home, "home")
	done := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			if _, err := os.Stat(home); err != nil {
				t.Errorf("for a moment there was no home: %v", err)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for range 200 {
		fresh := filepath.Join(dir, "restore", "home")
		write(fresh, "fresh")
		aside, err := swapHomes(home, fresh)
		if err != nil {
			t.Fatal(err)
		}
		now, err := os.ReadFile(filepath.Join(home, mark))
		before, errBefore := os.ReadFile(filepath.Join(aside, mark))
		if err != nil || errBefore != nil || string(now) != "fresh" || string(before) == "" || !strings.HasPrefix(aside, home+".before-") {
			t.Fatalf("home is %q, %v; %s is %q, %v", now, err, aside, before, errBefore)
		}
		if err := os.RemoveAll(aside); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	looking.Wait()
}

func TestAHomeThatIsThereAlready(t *testing.T) {
	raw := backupOf(t, regular(inInput+"a", "restored"))
	file := filepath.Join(t.TempDir(), "backup")
	put(t, string(raw), file)
	home := homeOfRuns(t)
	for _, name := range keptOfHome {
		put(t, "own "+name, home, name)
	}
	if _, err := Restore(trusted.Context(t), home, file, false); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err).Hint, "--force") {
		t.Errorf("without force: %v", err)
	}
	lock, err := safefs.Lock(filepath.Join(home, layout.Lock))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(trusted.Context(t), home, file, true); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err).Hint, "stop it") {
		t.Errorf("under a server: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	done, err := Restore(trusted.Context(t), home, file, true)
	if err != nil || done.Runs != 0 || done.Files != 3 || !strings.HasPrefix(done.Aside, home+".before-") {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := string(bytesOf(t, filepath.Join(home, filepath.FromSlash(inInput), "a"))); got != "restored" {
		t.Errorf("%q", got)
	}
	for _, name := range keptOfHome {
		for _, dir := range []string{home, done.Aside} {
			if got := string(bytesOf(t, filepath.Join(dir, name))); got != "own "+name {
				t.Errorf("%s: %q", filepath.Join(dir, name), got)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(done.Aside, layout.Runs, hasEnded, layout.Output, "b")); err != nil {
		t.Error(err)
	}
}

func TestAHomeWithoutAStoreIsTakenOver(t *testing.T) {
	file, home := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "server")
	put(t, string(backupOf(t)), file)
	put(t, "secret", home, layout.Token)
	done, err := Restore(trusted.Context(t), home, file, false)
	if err != nil || done.Aside == "" || string(bytesOf(t, filepath.Join(home, layout.Token))) != "secret" {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := os.Stat(filepath.Join(home, layout.Owner)); !os.IsNotExist(err) {
		t.Errorf("it has an owner: %v", err)
	}
}

func TestTheSecretsOfWebhooksStayAndAreInNoBackup(t *testing.T) {
	file, home := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "server")
	put(t, string(backupOf(t)), file)
	put(t, "whsec-canary", home, layout.Webhooks, "webhook-x")
	done, err := Restore(trusted.Context(t), home, file, true)
	if err != nil || string(bytesOf(t, filepath.Join(home, layout.Webhooks, "webhook-x"))) != "whsec-canary" {
		t.Errorf("%+v, %v", done, err)
	}
	if isHomePath(layout.Webhooks + "/webhook-x") {
		t.Error("a backup may have one")
	}
}

func TestARestoreOfNoFile(t *testing.T) {
	home := filepath.Join(t.TempDir(), "server")
	for name, file := range map[string]string{"one that isn't there": filepath.Join(t.TempDir(), "none"), "a directory": t.TempDir()} {
		if _, err := Restore(trusted.Context(t), home, file, false); !fault.Is(err, fault.Input) || !strings.Contains(err.Error(), "can't be opened") {
			t.Errorf("%s: %v", name, err)
		}
	}
	over, cancel := context.WithCancel(trusted.Context(t))
	cancel()
	file := filepath.Join(t.TempDir(), "backup")
	put(t, string(backupOf(t)), file)
	if _, err := Restore(over, home, file, false); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(home)); len(left) > 0 {
		t.Errorf("it has left %v", left)
	}
}

func TestWhatABackupSaysOfFilesIsBounded(t *testing.T) {
	odd := func(e entry, mode int64, uid int) entry { e.Mode, e.Uid, e.Gid = mode, uid, uid; return e }
	dir := func(name string) entry { return entry{tar.Header{Typeflag: tar.TypeDir, Name: name}, ""} }
	home, _, err := restored(t, backupOf(t,
		odd(regular(inUnit+"a", "a"), 0o6777, 65534), odd(regular(inUnit+"b", "b"), 0, -5), odd(dir(inUnit+"c/"), 0o7777, 65534),
		odd(dir(inUnit+"d/"), 0, 0), odd(dir(inHome), 0o755, 65534), odd(regular(inHome+"e", "e"), 0o755, 65534)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		inUnit + "a": "-rwxr-xr-x 0", inUnit + "b": "-rw------- 0", inUnit + "c": "drwxr-xr-x 0", inUnit + "d": "drwx------ 0", inHome + "e": "-rwxr-xr-x 65534", inHome: "drwxr-xr-x 0",
	} {
		info, err := os.Lstat(filepath.Join(home, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := owner(info)
		if os.Geteuid() != 0 { // whoever isn't root gives nothing away
			mode, _, _ := strings.Cut(want, " ")
			uid, want = 0, mode+" 0"
		}
		if got := fmt.Sprint(info.Mode(), " ", uid); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
