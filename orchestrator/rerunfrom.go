package orchestrator

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// takenOver is what the run of a flow begins with: steps of an earlier one, and the directory
// of the files in its state.
type takenOver struct {
	steps []flow.Step
	state string
}

// takeOver chooses the steps that a rerun of a flow takes over from an earlier run. The flow is
// as it is now: where it has changed too much, the error says from where it could be rerun.
func (s *Service) takeOver(ctx context.Context, u *unit.Unit, id string, again api.Rerun) (*takenOver, error) {
	graph := capsule.GraphOf(u.Definition)
	if graph == nil {
		return nil, fault.New(fault.Conflict, "%q is no flow: it can't be run from a step on", u.Name).
			WithHint("leave `from` out")
	}
	kept, err := s.stepsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	taken := &takenOver{state: filepath.Join(s.runPath(id), layout.State)}
	if again.From == api.RerunFailed {
		if len(again.Set) > 0 {
			return nil, fault.New(fault.BadRequest, "nothing can be set before what has failed").
				WithHint("name one address with `from`")
		}
		taken.steps = graph.FromFailed(kept)
		return taken, nil
	}
	if taken.steps, err = graph.From(kept, again.From); err != nil || len(again.Set) == 0 {
		return taken, err
	}
	values, err := decodeObject(again.Set)
	if err != nil {
		return nil, fault.New(fault.BadRequest, "`set` is no JSON object")
	}
	step, err := graph.Set(again.From, values)
	taken.steps = append(taken.steps, step)
	return taken, err
}

// linkState links the files of the earlier state into that of the run: they outlive the
// earlier one.
func (t *takenOver) linkState(dir string) error {
	entries, err := os.ReadDir(t.state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	for _, entry := range entries {
		if err == nil && entry.Name() != run.FlowInputFile {
			err = os.Link(filepath.Join(t.state, entry.Name()), filepath.Join(dir, entry.Name()))
		}
	}
	if err == nil {
		err = errors.Join(safefs.Sync(dir), safefs.Sync(filepath.Dir(dir)))
	}
	return run.StorageFault(err)
}

// takeSteps returns the steps that the run begins with, when their files are there.
func (j *job) takeSteps() ([]store.Step, error) {
	if j.taken == nil {
		return nil, nil
	}
	rows := make([]store.Step, 0, len(j.taken.steps))
	for _, step := range j.taken.steps {
		row, err := stepRow(step)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, j.taken.linkState(j.StateDir())
}
