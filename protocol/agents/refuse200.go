package agents

import (
	"github.com/agent-on-demand/aod/agentapi"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

// refuses200 reports whether an error is a refusal of inputs that is answered with 200.
func (h *handler) refuses200(t *task, err error) bool {
	return t.taken && h.opts.Refuse200[t.unit] && fault.Is(err, fault.Input)
}

// streamRefusal answers with a stream that has the refusal as its only event.
func (c *call) streamRefusal(err error) {
	c.notes.Report(err, false)
	httpwire.BeginStream(c.w, httpwire.TypeEvents)
	last := httpwire.Event{Name: string(agentapi.Final), Data: string(c.task.lastRefusal(c.problem(err)))}
	_ = httpwire.NewEventWriter(c.w).Write(last) // whoever asked has gone
}

// lastRefusal is the data of a terminal event that refuses.
func (t *task) lastRefusal(p httpwire.Problem) []byte {
	r := t.refusal(p)
	r.Type = agentapi.Final
	return object(r)
}
