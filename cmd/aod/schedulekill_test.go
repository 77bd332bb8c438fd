package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

const (
	usualScheduleKills = 4
	schedulesPerKill   = 10
)

// The long form is: AOD_KILLS=20 go test -race -run TestNoKillLosesOrDoublesAnOccurrence ./cmd/aod
func TestNoKillLosesOrDoublesAnOccurrence(t *testing.T) {
	t.Parallel()
	seed := number(t, "AOD_SEED", int(time.Now().UnixNano()%1e9))
	kills := number(t, "AOD_KILLS", usualScheduleKills)
	n := schedulesPerKill * kills
	s := newServer(t, "--concurrency", "2", "--queue", strconv.Itoa(n))
	t.Logf("to be repeated with AOD_SEED=%d AOD_KILLS=%d", seed, kills)
	dice := rand.New(rand.NewPCG(uint64(seed), 0))
	s.addWorker("timely", unique())
	s.start()
	s.kill()
	s.schedule(n, time.Now().Add(2*time.Second))
	for range kills {
		s.start()
		time.Sleep(time.Duration(dice.IntN(1500)) * time.Millisecond)
		s.kill()
	}
	s.start()
	s.manyEnd(n, api.Filter{})
	records := s.records()
	s.kill()
	s.judgeOccurrences(n, records)
}

// manyEnd waits until as many runs have ended, for ten at a time.
func (s *server) manyEnd(n int, filter api.Filter) {
	s.t.Helper()
	for some := min(10, n); ; some = min(some+10, n) {
		testkit.Eventually(s.t, fmt.Sprintf("%d runs have ended", some), func() bool {
			ended := 0
			for run, err := range s.client.Runs(s.t.Context(), filter) {
				if err == nil && run.Outcome != "" {
					ended++
				}
			}
			return ended >= some
		})
		if some == n {
			return
		}
	}
}

// schedule stores schedules of one time each, while no server runs.
func (s *server) schedule(n int, from time.Time) {
	s.t.Helper()
	db := s.openStore()
	for i := range n {
		at := from.Add(time.Duration(i) * 200 * time.Millisecond).UTC()
		spec, err := json.Marshal(api.ScheduleSpec{Unit: "timely", At: at.Format(time.RFC3339Nano), Missed: api.MissedAll})
		if err != nil {
			s.t.Fatal(err)
		}
		now := time.Now()
		row := store.Schedule{
			Name: fmt.Sprintf("s%d", i), Unit: "timely", Spec: spec, Input: work{Mark: i}.input(), Private: []byte("null"),
			Until: now, CreatedAt: now, ChangedAt: now,
		}
		if _, err := db.PutSchedule(s.t.Context(), row); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) openStore() *store.Store {
	s.t.Helper()
	db, err := store.Open(filepath.Join(s.home(), layout.Database), store.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	return db
}

// judgeOccurrences finds one occurrence with one run of each schedule.
func (s *server) judgeOccurrences(n int, records map[string]api.Record) {
	s.t.Helper()
	db := s.openStore()
	defer db.Close()
	if len(records) != n {
		s.t.Errorf("there are %d runs of %d occurrences", len(records), n)
	}
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		row, err := db.Schedule(s.t.Context(), name)
		if err != nil {
			s.t.Fatal(err)
		}
		all, err := db.Occurrences(s.t.Context(), row.Seq, 0, 0)
		if err != nil || len(all) != 1 || row.Fired != 1 || all[0].Outcome != string(api.OccurrenceStarted) {
			s.t.Errorf("%s has %+v, %v", name, all, err)
			continue
		}
		record := records[all[0].Run]
		if record.Schedule == nil || record.Schedule.Name != name || !record.Schedule.Planned.Equal(all[0].Planned) || record.Outcome != api.Success {
			s.t.Errorf("the run of %s is %s, of %+v", name, record.Outcome, record.Schedule)
		}
	}
}
