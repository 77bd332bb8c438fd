package backup

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
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
