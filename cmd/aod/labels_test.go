package main

import (
	"testing"

	"github.com/agent-on-demand/aod/api"
)

// Whatever an image says of itself, its containers have the labels of their runs.
func TestForgedLabelsHurtNoRun(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.addWorker("honest", "")
	s.addWorker("forger", "LABEL aod.aside=x aod.run=x aod.root=x aod.unit=honest aod.owner=x aod.attempt=7\n")
	s.start()
	var ids []string
	for i, unit := range []string{"honest", "forger"} {
		ids = append(ids, s.mustSubmit(unit, work{Mark: i, Ticks: 1, Hold: 1}))
	}
	for _, id := range ids {
		s.awaitLine(id, "tick 1")
	}
	s.kill()
	s.start()
	s.letGo(ids...)
	for _, id := range ids {
		record := s.await(id)
		if starts, err := s.startsOf(id); record.Outcome != api.Success || record.Retries != 0 || starts != 1 || err != nil {
			t.Errorf("run of %s: %s after %d retries and %d starts, %v: %+v", record.Unit, record.Outcome, record.Retries, starts, err, record.Error)
		}
	}
}
