package orchestrator

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// FlowState returns the state of a flow's run, as the nodes that have ended made it. A run of
// another unit is a Conflict fault.
func (s *Service) FlowState(ctx context.Context, id string) (api.FlowState, error) {
	state, err := s.stateOf(ctx, id)
	if err != nil {
		return api.FlowState{}, err
	}
	names := flow.Names{Whole: true}
	if _, err := names.Plain(state); err != nil {
		return api.FlowState{}, err
	}
	shown := api.FlowState{Files: make([]api.File, 0, len(names.Files()))}
	for _, f := range names.Files() {
		shown.Files = append(shown.Files, api.File{Name: names.Of(f), SizeBytes: f.SizeBytes, SHA256: f.SHA256})
	}
	shown.State, err = flow.Encode(state)
	return shown, err
}

// Flow returns the graph of a flow's run, in the version that runs. A run of another unit is a
// Conflict fault.
func (s *Service) Flow(ctx context.Context, id string) (*flow.Flow, error) {
	record, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if !s.kinds.Conducts(record.Kind) {
		return nil, noFlow()
	}
	u, err := s.units.Version(ctx, record.Unit, record.Version)
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

// OpenStateFile opens a file of a flow's state for reading, by the name that FlowState gives
// it.
func (s *Service) OpenStateFile(ctx context.Context, id, name string) (*os.File, api.File, error) {
	shown, err := s.FlowState(ctx, id)
	if err != nil {
		return nil, api.File{}, err
	}
	for _, file := range shown.Files {
		if file.Name != name {
			continue
		}
		f, info, err := safefs.OpenNamed(filepath.Join(s.runPath(id), layout.State, file.SHA256))
		if err == nil && info.Size() == file.SizeBytes {
			return f, file, nil
		}
		if f != nil {
			_ = f.Close() // read only
		}
		return nil, api.File{}, fault.Wrap(fault.NotFound, err, "the file of the state is gone")
	}
	return nil, api.File{}, fault.New(fault.NotFound, "the state has no such file").
		WithHint("GET /v1/runs/%s/state lists its files", id)
}

// stateOf folds the steps of the flow itself over its input: those of nodes in other scopes
// have their part in these.
func (s *Service) stateOf(ctx context.Context, id string) (map[string]any, error) {
	record, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if !s.kinds.Conducts(record.Kind) {
		return nil, noFlow()
	}
	state, err := run.FlowInput(filepath.Join(s.runPath(id), layout.State))
	if state == nil && err == nil {
		state, err = decodeObject(orEmpty(record.Input))
	}
	if err != nil {
		return nil, err
	}
	steps, err := s.stepsOf(ctx, id)
	if err != nil {
		return nil, err
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
