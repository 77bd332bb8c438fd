package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// childFile is opened by a child in its working directory.
const childFile = "aod.db"

// newChild returns the command of a child in a directory.
func newChild(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	cmd := exec.Command(program)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(append(os.Environ(), "AOD_STORE_CHILD=1"), env...)
	return cmd
}

// child is the other process. It either appends to a run and ends, or writes until it
// is killed. It is the binary's main: what goes wrong is a panic.
func child() {
	s, err := Open(childFile, Options{})
	check(err)
	if run := os.Getenv("AOD_STORE_RUN"); run != "" {
		check(waitLong(s))
		fmt.Println("ready")
		for range appends {
			check(s.Events.Append(context.Background(), run, event("child")))
		}
		check(s.Close())
		return
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { writeForEver(s) })
	}
	all.Wait()
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// writeForEver prints "ID N" when N saves of a run are acknowledged; its insert is the first.
func writeForEver(s *Store) {
	for {
		r := aRun(1)
		check(s.Runs.Insert(context.Background(), r, Key{Value: r.ID}, event("1")))
		fmt.Println(r.ID, 1)
		for n := 2; n <= 8; n++ {
			r.Record = strconv.AppendInt(nil, int64(n), 10)
			r.DiskBytes = int64(n)
			if n == 8 {
				r = ended(r)
			}
			check(s.Runs.Save(context.Background(), r, event("a"), event("b")))
			fmt.Println(r.ID, n)
		}
	}
}

// killAfter runs a child on the file, kills it when it has acknowledged some writes,
// and returns the last that it acknowledged of each run.
func killAfter(t *testing.T, path string, acknowledged int) map[string]int {
	t.Helper()
	cmd := newChild(t, filepath.Dir(path))
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	last := map[string]int{}
	lines := bufio.NewScanner(out)
	for count := 1; lines.Scan(); count++ {
		var id string
		var n int
		_, err := fmt.Sscan(lines.Text(), &id, &n)
		must(t, err)
		last[id] = n
		if count == acknowledged {
			must(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait() // it was killed
	if len(last) == 0 {
		t.Fatal("the child did nothing")
	}
	return last
}

func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	const seed = 42
	path := filepath.Join(t.TempDir(), childFile)
	random := rand.New(rand.NewPCG(seed, seed))
	all := map[string]int{}
	for range 10 {
		for id, n := range killAfter(t, path, 1+random.IntN(250)) {
			all[id] = n
		}
		s := openAt(t, path)
		for id, n := range all {
			survived(t, s, id, n)
		}
		must(t, s.Close())
		healthy(t, path)
	}
}

// survived checks that a run has at least n saves in it, each of them whole.
func survived(t *testing.T, s *Store, id string, n int) {
	t.Helper()
	r, err := s.Runs.Get(t.Context(), id)
	must(t, err)
	saved := 1
	if r.DiskBytes != 7 || string(r.Record) == "7" { // 7 is what the insert wrote
		saved, err = strconv.Atoi(string(r.Record))
		must(t, err)
	}
	if saved < n || r.Finished != (saved == 8) {
		t.Errorf("run %s has %d saves, %d were acknowledged; finished %v", id, saved, n, r.Finished)
	}
	if got := len(events(t, s, id)); got != 2*saved-1 {
		t.Errorf("run %s has %d events of %d saves", id, got, saved)
	}
	if run, _, err := s.Keys.Get(t.Context(), id); err != nil || run != id {
		t.Errorf("its key belongs to %q: %v", run, err)
	}
}

// waitLong has writes wait for another process for as long as anything takes. SQLite gives nobody a
// turn: on a slow disk one that writes all the time can keep the other out for seconds.
func waitLong(s *Store) error {
	_, err := s.core.writer.db.Exec(fmt.Sprintf("PRAGMA busy_timeout = %d", testkit.Patience.Milliseconds()))
	return err
}

// appends is what each of two processes does to one run.
const appends = 200

func TestTwoProcessesWriteOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), childFile)
	s, r := openAt(t, path), aRun(1)
	must(t, waitLong(s))
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	cmd := newChild(t, filepath.Dir(path), "AOD_STORE_RUN="+r.ID)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n') // opening the file has no such patience
	must(t, err)
	for range appends {
		must(t, s.Events.Append(t.Context(), r.ID, event("parent")))
	}
	must(t, cmd.Wait())
	count := map[string]int{}
	for _, e := range events(t, s, r.ID) {
		count[e.Type]++
	}
	if count["parent"] != appends || count["child"] != appends {
		t.Errorf("the events are %v", count)
	}
}
