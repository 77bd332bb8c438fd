package flow

import (
	"log/slog"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Flows is the kind of units whose program is a graph.
type Flows struct{ logger *slog.Logger }

// New returns the kind. The logger gets ids, sizes and times only; nil discards.
func New(logger *slog.Logger) *Flows {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Flows{logger: logger}
}

// Check implements run.Kind. It refuses nothing beyond the contract.
func (*Flows) Check(run.Request, run.Input) error { return nil }

// Execution implements run.Kind.
func (f *Flows) Execution(r *run.Run) run.Execution {
	return &execution{Run: r, pins: newPins(r), logger: f.logger}
}

// Conducts implements run.Conductor.
func (*Flows) Conducts() bool { return true }

// graphOf returns the graph of a unit.
func graphOf(u *unit.Unit) (*flow.Flow, error) {
	if graph := capsule.GraphOf(u.Definition); graph != nil {
		return graph, nil
	}
	return nil, fault.New(fault.Input, "%q has no %s", u.Name, flow.FileName)
}
