package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// end is the end of every test with a server: nothing of its runs may be left.
func (s *server) end() {
	defer s.checkLog()
	defer s.clear() // also of a test that gives up
	if !s.t.Failed() {
		s.nothingLeft()
	}
}

// clear removes what a failed test has left, and the images of any.
func (s *server) clear() {
	if s.ended != nil {
		s.kill()
	}
	for _, ref := range s.containers() {
		_ = s.engine.Remove(context.Background(), ref.ID)
	}
	for _, volume := range s.volumes() {
		_ = s.engine.RemoveVolume(context.Background(), volume.Name)
	}
	for _, ref := range s.images {
		err := s.engine.RemoveImage(context.Background(), ref)
		if err != nil && !fault.Is(err, fault.Conflict) { // another copy of the test has it, and removes it then
			s.t.Errorf("remove image: %v", err)
		}
	}
}

// nothingLeft lets the server end all that it has, forget it, and end. Nobody may be kept
// out of its data directory then, and nothing may be in it but what it knows by itself.
func (s *server) nothingLeft() {
	if s.ended == nil || s.hasEnded() {
		s.start()
	}
	testkit.Eventually(s.t, "no run goes on", func() bool { return len(s.active()) == 0 })
	if _, err := s.client.Prune(context.Background(), api.PruneOptions{}); err != nil {
		s.t.Errorf("prune: %v", err)
	}
	for run, err := range s.client.Runs.List(context.Background(), api.Filter{}) {
		s.t.Errorf("a run is remembered: %s %v", run.ID, err)
	}
	testkit.Eventually(s.t, "what a killed server left is swept away", func() bool { return !s.hasStrays() })
	s.signal(syscall.SIGTERM)
	if code := s.exitCode(); code != 0 {
		s.t.Errorf("the server ended with %d", code)
	}
	for _, ref := range s.containers() {
		s.t.Errorf("container %.12s of run %s is left behind, %s", ref.ID, ref.Labels[runtime.LabelRun], ref.State)
	}
	for _, volume := range s.volumes() {
		s.t.Errorf("volume %s is left behind", volume.Name)
	}
	for _, dir := range []string{"runs", "spool", "pool"} {
		entries, err := os.ReadDir(filepath.Join(s.home(), dir))
		if err != nil || len(entries) > 0 {
			s.t.Errorf("%s is not empty: %v %v", dir, entries, err)
		}
	}
	s.checkLetGo()
}

// hasStrays reports whether there are containers that wait for nobody. No run goes on.
func (s *server) hasStrays() bool {
	left := s.containers()
	pool, err := s.client.Pool(context.Background())
	if err != nil {
		s.t.Fatalf("pool: %v", err)
	}
	waiting := map[string]bool{}
	for _, u := range pool.Units {
		for _, w := range u.Waiting {
			waiting[w.Container] = true
		}
	}
	return slices.ContainsFunc(left, func(ref runtime.ContainerRef) bool { return !waiting[ref.ID] })
}

// checkLetGo proves that an ended server leaves no word of itself and holds no lock.
func (s *server) checkLetGo() {
	s.t.Helper()
	if _, err := os.Stat(filepath.Join(s.home(), "address")); !errors.Is(err, fs.ErrNotExist) {
		s.t.Errorf("the file with the address is there: %v", err)
	}
	lock, err := os.Open(filepath.Join(s.home(), "lock"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		s.t.Errorf("the data directory is locked: %v", err)
	}
}

func (s *server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// active are the runs that go on.
func (s *server) active() []api.Summary {
	var runs []api.Summary
	for run, err := range s.client.Runs.List(context.Background(), api.Filter{Active: true, Limit: 1000}) {
		if err != nil {
			s.t.Fatalf("list runs: %v", err)
		}
		runs = append(runs, run)
	}
	return runs
}

// containers are those that belong to the server's data directory.
func (s *server) containers() []runtime.ContainerRef {
	s.t.Helper()
	owner := s.owner()
	if owner == "" {
		return nil
	}
	refs, err := s.engine.ContainersByLabel(context.Background(), map[string]string{runtime.LabelOwner: owner})
	if err != nil {
		s.t.Errorf("list containers: %v", err)
	}
	return refs
}

// volumes are there with a remote engine alone.
func (s *server) volumes() []runtime.VolumeRef {
	s.t.Helper()
	owner := s.owner()
	if owner == "" {
		return nil
	}
	refs, err := s.engine.VolumesByLabel(context.Background(), map[string]string{runtime.LabelOwner: owner})
	if err != nil {
		s.t.Errorf("list volumes: %v", err)
	}
	return refs
}

// owner is what the server calls itself on the engine; "" if it was never started.
func (s *server) owner() string {
	owner, _ := os.ReadFile(filepath.Join(s.home(), "owner"))
	return string(owner)
}

// removeLater removes an image when the test is over.
func (s *server) removeLater(image string) {
	if image != "" && !slices.Contains(s.images, image) {
		s.images = append(s.images, image)
	}
}

// checkLog looks for what no server may say, and shows what one said whose test failed.
func (s *server) checkLog() {
	log := s.log()
	for _, bad := range []string{"DATA RACE", "panic: ", "SIGQUIT: quit"} {
		if at := strings.Index(log, bad); at >= 0 {
			s.t.Errorf("the server's log tells of it:\n%s", log[at:min(len(log), at+8<<10)])
		}
	}
	if s.t.Failed() {
		s.t.Logf("the end of the server's log:\n%s", log[max(0, len(log)-16<<10):])
	}
}
