package orchestrator

import (
	"net/http"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// egressMount is the way of an attempt to the hosts that its unit may reach by name. A unit
// without any hears there how to get some.
func (j *job) egressMount() handoff.Mount {
	policy := j.Unit.Policy
	return handoff.Mount{Path: handoff.ProxyPath, New: func(*handoff.Broker) http.Handler {
		return j.loop.opts.Egress.Session(egress.Terms{
			Unit: j.Record.Unit, Allowed: policy.Egress, Bounded: policy.Bounds.Egress != nil,
			Cap:   policy.Bounds.Egress,
			Tally: &j.reached,
			Tell: func(e api.EgressEvent) {
				e.Host = j.Masked(e.Host)
				j.Tell(run.Event{Egress: &e})
			},
		})
	}}
}

// noteEgress puts what the run reached so far into its record.
func (j *job) noteEgress() {
	j.Record.Egress = j.reached.Rows()
	for i, row := range j.Record.Egress {
		j.Record.Egress[i].Host = j.Masked(row.Host)
	}
}
