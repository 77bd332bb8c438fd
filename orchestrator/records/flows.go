package records

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Flows shows what becomes of runs of flows. It is safe for concurrent use.
type Flows struct {
	runs  *Reader
	store *store.Store
	units run.Units
}

// NewFlows returns the Flows of what a store has of runs.
func NewFlows(runs *Reader, st *store.Store, units run.Units) *Flows {
	return &Flows{runs: runs, store: st, units: units}
}

// State returns the state of a flow's run, as the nodes that have ended made it. A run of
// another unit is a Conflict fault.
func (f *Flows) State(ctx context.Context, id string) (api.FlowState, error) {
	record, err := f.runs.Get(ctx, id)
	if err != nil {
		return api.FlowState{}, err
	}
	if !f.runs.opts.Kinds.Conducts(record.Kind) {
		return api.FlowState{}, noFlow()
	}
	steps, err := Steps(ctx, f.runs.opts.Steps, id)
	if err != nil {
		return api.FlowState{}, err
	}
	return StateOf(filepath.Join(f.runs.dir(id), layout.State), record.Input, steps)
}

// StateOf returns the state that the steps of a flow made of its input. dir has the files in it,
// each under its digest, and the input where that has files.
func StateOf(dir string, input json.RawMessage, steps []flow.Step) (api.FlowState, error) {
	state, err := fold(dir, input, steps)
	if err != nil {
		return api.FlowState{}, err
	}
	files, err := run.FilesOf(state)
	if err != nil {
		return api.FlowState{}, err
	}
	raw, err := flow.Encode(state)
	return api.FlowState{State: raw, Files: files}, err
}

// Beginning is what a rerun of a flow from a step begins with.
type Beginning struct {
	Taken []api.Step    // that are taken over
	State api.FlowState // before the step; of one in a sub-flow without what that was given
	Sets  bool          // values of the state can be set before the step
}

// Before returns what a rerun from a step, or from api.RerunFailed, begins with: by the newest version of the unit, as
// the rerun goes. Where that would be refused, the error says why.
func (f *Flows) Before(ctx context.Context, id, from string) (b Beginning, err error) {
	record, err := f.runs.Get(ctx, id)
	if err != nil {
		return b, err
	}
	u, err := f.units.Get(ctx, record.Unit)
	if err != nil {
		return b, err
	}
	graph := capsule.GraphOf(u.Definition)
	if graph == nil {
		return b, noFlow()
	}
	steps, err := Steps(ctx, f.runs.opts.Steps, id)
	if err != nil {
		return b, err
	}
	if from == api.RerunFailed {
		steps = graph.FromFailed(steps)
	} else if steps, err = graph.From(steps, from); err != nil {
		return b, err
	}
	for _, step := range steps {
		shown, err := Shown(step)
		if err != nil {
			return b, err
		}
		b.Taken = append(b.Taken, shown)
	}
	_, err = graph.Set(from, nil)
	b.Sets = err == nil
	b.State, err = StateOf(filepath.Join(f.runs.dir(id), layout.State), record.Input, around(steps, from))
	return b, err
}

// around returns the steps whose scope is that of an address or around it, as steps of one scope.
func around(steps []flow.Step, address string) (out []flow.Step) {
	for _, step := range steps {
		scope := step.Address[:strings.LastIndexByte(step.Address, '/')+1]
		if step.Address = strings.TrimPrefix(step.Address, scope); strings.HasPrefix(address, scope) {
			out = append(out, step)
		}
	}
	return out
}

// Graph returns the graph of a flow's run, in the version that runs. A run of another unit is a
// Conflict fault.
func (f *Flows) Graph(ctx context.Context, id string) (*flow.Flow, error) {
	record, err := f.runs.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if !f.runs.opts.Kinds.Conducts(record.Kind) {
		return nil, noFlow()
	}
	u, err := f.units.Version(ctx, record.Unit, record.Version)
	if err != nil {
		return nil, err
	}
	if graph := capsule.GraphOf(u.Definition); graph != nil {
		return graph, nil
	}
	return nil, noFlow()
}

func noFlow() error {
	return fault.New(fault.Conflict, "the run is none of a flow").WithHint("only flows have a graph, a state and steps")
}

// OpenStateFile opens a file of a flow's state for reading, by the name that State gives
// it.
func (f *Flows) OpenStateFile(ctx context.Context, id, name string) (*os.File, api.File, error) {
	shown, err := f.State(ctx, id)
	if err != nil {
		return nil, api.File{}, err
	}
	for _, file := range shown.Files {
		if file.Name == name {
			content, err := run.OpenOfState(filepath.Join(f.runs.dir(id), layout.State), file)
			return content, file, err
		}
	}
	return nil, api.File{}, fault.New(fault.NotFound, "the state has no such file").
		WithHint("`aod flow state %s` lists its files", id)
}

// fold sets what the steps of the flow itself have set over its input: those of nodes in other
// scopes have their part in these.
func fold(dir string, input json.RawMessage, steps []flow.Step) (map[string]any, error) {
	state, err := run.FlowInput(dir)
	switch {
	case err != nil:
		return nil, err
	case state != nil:
	case len(input) == 0:
		state = map[string]any{}
	default:
		if state, err = run.DecodeObject(input); err != nil {
			return nil, err
		}
	}
	for _, step := range steps {
		if strings.ContainsAny(step.Address, "/[") {
			continue
		}
		if err := patch(state, step); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// patch sets in a state what a step has set.
func patch(state map[string]any, step flow.Step) error {
	if step.Delta == nil {
		return nil
	}
	delta, err := flow.Decode(step.Delta)
	object, _ := delta.(map[string]any)
	maps.Copy(state, object)
	return err
}
