package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// What a full pool leaves when its server is killed is gone when the next one runs, which
// has a pool of its own soon.
func TestAKilledServersPoolIsRebuilt(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--pool", "4")
	s.addWorker("worker", unique())
	write(t, "name: worker\nwarm: 3\n", s.units, "worker", "agent.yaml")
	s.start()
	s.full(3)
	old := map[string]bool{}
	for _, ref := range s.containers() {
		old[ref.ID] = true
	}
	if len(old) < 3 {
		t.Errorf("%d containers wait", len(old))
	}
	s.kill()
	s.start()
	testkit.Eventually(t, "the old ones are gone", func() bool {
		for _, ref := range s.containers() {
			if old[ref.ID] {
				return false
			}
		}
		return true
	})
	s.full(3)
	record := s.await(s.mustSubmit("worker", work{}))
	s.removeLater(record.Image.Ref)
	if record.Outcome != api.Success || record.Container.WaitedMS <= 0 || old[record.Container.ID] {
		t.Errorf("%+v %+v", record, record.Container)
	}
}

// AOD_POOL_KILLS is how often a server is killed in the middle of claims, AOD_SEED what the
// moments are made of.
const usualPoolKills = 4

func TestNoKillInTheMiddleOfClaimsLosesOrDoublesARun(t *testing.T) {
	t.Parallel()
	seed := number(t, "AOD_SEED", int(time.Now().UnixNano()%1e9))
	kills := number(t, "AOD_POOL_KILLS", usualPoolKills)
	t.Logf("to be repeated with AOD_SEED=%d AOD_POOL_KILLS=%d", seed, kills)
	dice := rand.New(rand.NewPCG(uint64(seed), 1))
	s := newServer(t, "--pool", "4", "--concurrency", "4", "--retry-delay", "100ms")
	s.addWarmWorker("claimed", 4)
	s.start()
	s.await(s.mustSubmit("claimed", work{}))
	var ids []string
	for round := range kills {
		s.full(3)
		for i := range 6 {
			ids = append(ids, s.mustSubmit("claimed", work{Mark: 10*round + i, Ticks: i % 3}))
		}
		time.Sleep(time.Duration(dice.Int64N(int64(250 * time.Millisecond)))) // a random moment is what is tested
		s.kill()
		s.start()
	}
	waited := 0
	for i, id := range ids {
		record := s.await(id)
		starts, err := s.startsOf(id)
		want := fmt.Sprintf(`{"mark":%d}`, 10*(i/6)+i%6)
		if err != nil || record.Outcome != api.Success || record.Retries != 0 || starts != 1 || string(record.Output) != want {
			t.Errorf("run %s started %d times, %v: %+v %+v", id, starts, err, record, record.Error)
			continue
		}
		if raw, err := s.file(record, "starts"); err != nil || string(raw) != "x" {
			t.Errorf("run %s left %q, %v", id, raw, err)
		}
		if record.Container.WaitedMS > 0 {
			waited++
		}
	}
	s.full(4)
	testkit.Eventually(t, "nothing is there but the pool", func() bool { return len(s.containers()) <= 4 })
	if waited == 0 {
		t.Error("no run got a sandbox that waited")
	}
	t.Logf("%d of %d runs got a sandbox that waited", waited, len(ids))
}
