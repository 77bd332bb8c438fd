package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

const usualPoolKills = 2

func TestNoKillInTheMiddleOfClaimsLosesOrDoublesARun(t *testing.T) {
	t.Parallel()
	kills, dice := number(t, "AOD_KILLS", usualPoolKills), dice(t)
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
