package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestManyRunsThroughAPoolLeaveTheServerAsItWas(t *testing.T) {
	all := long(t, "AOD_LOAD")
	s := newServer(t, "--concurrency", "2", "--pool", "4")
	s.program = shipped.Path(t)
	l := load{server: s, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	s.addWarmWorker("pooled", 4)
	s.start()
	s.await(s.mustSubmit("pooled", work{}))
	s.full(4)
	before, memory := l.footprint(), l.memoryNow()

	began := time.Now()
	records := s.runAll("pooled", all, 1) // more at once leave a small machine no time to fill it
	t.Logf("%d runs in %v", all, time.Since(began).Round(time.Millisecond))
	waited := wantEachItsOwn(t, records)
	t.Logf("%d of %d runs got a sandbox that waited", waited, all)
	if waited < min(4, all) { // as many as there were
		t.Errorf("only %d of %d runs got a sandbox that waited", waited, all)
	}
	s.full(4)
	l.checkFootprint(before, 8)
	t.Logf("%d MiB of memory before, %d MiB after", memory>>20, l.memoryNow()>>20)
	testkit.Eventually(t, fmt.Sprintf("no more memory than %d MiB and 64", memory>>20), func() bool {
		return l.memoryNow() <= memory+64<<20 // a busy garbage collector gives it back late
	})
	if n := len(s.containers()); n > 4 {
		t.Errorf("%d containers for 4 that wait", n)
	}
}

func (s *server) addWarmWorker(name string, warm int) {
	s.t.Helper()
	s.addWorker(name, "")
	write(s.t, fmt.Sprintf("name: %s\nwarm: %d\n", name, warm), s.units, name, "agent.yaml")
}

// runAll has so many runs of a unit run, as many at once as said, and returns their records.
func (s *server) runAll(unit string, all, atOnce int) []api.Record {
	s.t.Helper()
	records := make([]api.Record, all)
	next := make(chan int)
	var callers sync.WaitGroup
	for range atOnce {
		callers.Go(func() {
			for i := range next {
				records[i] = s.runOne(unit, i)
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	callers.Wait()
	return records
}

func (s *server) runOne(unit string, mark int) api.Record {
	record, err := s.submit(context.Background(), client.Submission{Unit: unit, Input: work{Mark: mark}.input()})
	testkit.Within(testkit.Patience, func() bool {
		if err == nil && !over(record) {
			record, err = s.client.Runs.Get(context.Background(), record.ID)
		}
		return err != nil || over(record)
	})
	if err != nil || record.Outcome != api.Success || string(record.Output) != fmt.Sprintf(`{"mark":%d}`, mark) {
		s.t.Errorf("run %d: %v %s %+v", mark, err, record.Outcome, record.Error)
	}
	return record
}

// wantEachItsOwn wants no container in two records, and returns how many had waited.
func wantEachItsOwn(t *testing.T, records []api.Record) (waited int) {
	t.Helper()
	seen := map[string]string{}
	for _, r := range records {
		if r.Container == nil {
			t.Errorf("run %s tells of no container", r.ID)
			continue
		}
		if other, twice := seen[r.Container.ID]; twice {
			t.Errorf("runs %s and %s had the same container", other, r.ID)
		}
		seen[r.Container.ID] = r.ID
		if r.Container.WaitedMS > 0 {
			waited++
		}
	}
	return waited
}

const burstRuns = 50 // at once

func TestABurstIsServedWithAPoolAndFillsItAgain(t *testing.T) {
	size := min(long(t, "AOD_LOAD"), burstRuns)
	burst := func(t *testing.T, pool int) (slowest time.Duration) {
		s := newServer(t, "--pool", strconv.Itoa(pool))
		s.program = shipped.Path(t)
		s.addWarmWorker("burst", pool)
		s.start()
		s.await(s.mustSubmit("burst", work{}))
		if pool > 0 {
			s.full(pool)
		}
		records := s.runAll("burst", size, size)
		waited := wantEachItsOwn(t, records)
		totals := make([]time.Duration, 0, size)
		for _, r := range records {
			totals = append(totals, time.Duration(r.Timings.Total*float64(time.Millisecond)).Round(time.Millisecond))
		}
		slices.Sort(totals)
		t.Logf("pool %d: %d runs at once, %d got a sandbox that waited: fastest %v, median %v, slowest %v",
			pool, size, waited, totals[0], totals[size/2], totals[size-1])
		if pool > 0 {
			if waited < min(pool, size)/2 {
				t.Errorf("%d runs got a sandbox that waited, of %d", waited, pool)
			}
			s.full(pool)
		}
		return totals[size-1]
	}
	with := burst(t, 8)
	t.Run("and without", func(t *testing.T) {
		without := burst(t, 0)
		t.Logf("the slowest of %d: %v with a pool, %v without", size, with, without)
	})
}
