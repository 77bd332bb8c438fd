package main

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// answers are what a server has answered so far.
type answers struct {
	mu       sync.Mutex
	accepted []string     // runs
	ended    []api.Record // with their outcome and files
	removed  []string     // runs
	units    []string     // that were uploaded
}

func (a *answers) add(change func(*answers)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

// until now, for good.
func (a *answers) untilNow() *answers {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &answers{
		accepted: slices.Clone(a.accepted), ended: slices.Clone(a.ended),
		removed: slices.Clone(a.removed), units: slices.Clone(a.units),
	}
}

// loss is a disk as the power left it, and what had been told by then.
type loss struct {
	disk *disk
	told *answers
}

func TestNoMomentOfALossOfPowerMakesUntrueWhatWasTold(t *testing.T) {
	moments, dice := long(t, "AOD_MOMENTS"), dice(t)
	d := newDisk(t)
	s := diskServer(t, d, "--concurrency", "3", "--min-free-disk", "1MiB", "--retry-delay", "10ms")
	s.addWorker("worker", "")
	s.start()
	ctx, stop := context.WithCancel(t.Context())
	all := &answers{}
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		for n := 0; ctx.Err() == nil; n++ {
			if err := s.workOn(ctx, n, all); err != nil && ctx.Err() == nil {
				t.Errorf("step %d: %v", n, err)
				return
			}
		}
	}()
	testkit.Eventually(t, "something is told", func() bool { return len(all.untilNow().ended) > 0 })
	var losses []loss
	for range moments {
		time.Sleep(time.Duration(dice.Int64N(int64(700 * time.Millisecond)))) // what is tested are random moments
		losses = append(losses, s.losePower(d, all))
	}
	stop()
	<-worked
	s.kill()
	for n, l := range losses {
		t.Run(fmt.Sprintf("moment %d", n), func(t *testing.T) { s.on(t, l.disk).keeps(l.told) })
	}
}

// losePower stops the server, and returns what its disk has at that moment.
func (s *server) losePower(d *disk, all *answers) loss {
	s.t.Helper()
	known := all.untilNow()
	s.signal(syscall.SIGSTOP)
	defer s.signal(syscall.SIGCONT)
	for {
		after := d.losePowerUnmounted()
		if exec.Command("cmp", "-s", d.image, after.image).Run() == nil { // else the kernel wrote meanwhile
			after.mount()
			return loss{after, known}
		}
	}
}

// workOn makes one step of what a server does all day.
func (s *server) workOn(ctx context.Context, n int, all *answers) error {
	doc := filepath.Join(s.t.TempDir(), "doc")
	write(s.t, content(n), doc)
	record, err := s.submit(ctx, client.Submission{
		Unit: "worker", Input: work{Mark: n, Ticks: n % 3}.input(), Files: []client.InputFile{{Field: "doc", Path: doc}},
	})
	if err != nil {
		return err
	}
	all.add(func(a *answers) { a.accepted = append(a.accepted, record.ID) })
	switch n % 4 {
	case 0, 2:
		ended := s.until(record.ID, "has its outcome", func(r api.Record) bool { return r.Outcome != "" || ctx.Err() != nil })
		if ended.Outcome != "" {
			all.add(func(a *answers) { a.ended = append(a.ended, ended) })
		}
	case 1:
		return s.uploadOne(n, all)
	case 3:
		return s.removeEnded(ctx, all)
	}
	return nil
}

func content(n int) string { return strings.Repeat(fmt.Sprintf("line of %d\n", n), 2_000) }

func (s *server) uploadOne(n int, all *answers) error {
	name := fmt.Sprintf("late-%d", n)
	dir := filepath.Join(s.t.TempDir(), name)
	writeWorker(s.t, dir, name, "")
	if err := (&killing{server: s}).put(dir); err != nil {
		return err
	}
	all.add(func(a *answers) { a.units = append(a.units, name) })
	return nil
}

// removeEnded prunes the runs that have ended.
func (s *server) removeEnded(ctx context.Context, all *answers) error {
	var gone []string
	all.add(func(a *answers) {
		for len(a.ended) > 0 { // from here on nobody can say whether they are there
			gone, a.ended = append(gone, a.ended[0].ID), a.ended[1:]
		}
		a.accepted = nil // likewise
	})
	for _, id := range gone {
		s.until(id, "is over", func(r api.Record) bool { return over(r) || ctx.Err() != nil })
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := s.client.Prune(ctx, api.PruneOptions{OlderThan: time.Nanosecond}); err != nil {
		return err
	}
	all.add(func(a *answers) { a.removed = append(a.removed, gone...) })
	return nil
}

// keeps holds a server after a loss of power against what was told before.
func (s *server) keeps(a *answers) {
	s.t.Helper()
	for _, want := range a.ended {
		got, err := s.client.Runs.Get(s.t.Context(), want.ID)
		if err != nil || got.Outcome != want.Outcome || string(got.Output) != string(want.Output) {
			s.t.Errorf("run %s was told to be %s with %s: %+v, %v", want.ID, want.Outcome, want.Output, got, err)
			continue
		}
		for _, f := range want.Files {
			if _, err := s.file(want, f.Name); err != nil { // which is checked against its digest
				s.t.Errorf("run %s: its file %s: %v", want.ID, f.Name, err)
			}
		}
	}
	for _, id := range a.removed {
		if status := s.status("/v1/runs/" + id); status != http.StatusNotFound {
			s.t.Errorf("run %s was told to be removed: %d", id, status)
		}
	}
	for _, name := range a.units {
		if status := s.status("/v1/units/" + name); status != http.StatusOK {
			s.t.Errorf("unit %s was told to be there: %d", name, status)
		}
	}
	for _, id := range a.accepted {
		if got := s.await(id); got.Outcome != api.Success {
			s.t.Errorf("run %s was accepted, and comes to %s, %+v", id, got.Outcome, got.Error)
		}
	}
	testkit.Eventually(s.t, "the server is ready", func() bool { return s.status("/readyz") == http.StatusOK })
}
