package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/store"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/keys"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// Rerun submits the input of an earlier run again, to the current version of its unit. A flow
// may begin with steps of the earlier run.
func (s *Service) Rerun(
	ctx context.Context, id, key string, from api.Rerun,
) (record api.Record, joined bool, err error) {
	old, given, err := s.InputOf(ctx, id)
	if err != nil {
		return api.Record{}, false, err
	}
	files, err := s.linked(given)
	if err != nil {
		return api.Record{}, false, err
	}
	defer func() { err = errors.Join(err, files.Remove()) }()
	k := keys.OfRerun(access.OwnerOf(ctx), id, key, from)
	if record, joined, err = s.join(ctx, k); joined || err != nil {
		return record, joined, err
	}
	if err := errors.Join(s.Admits(ctx), s.Quotas.CheckStorage(ctx)); err != nil {
		return api.Record{}, false, err
	}
	u, err := s.Units.Get(ctx, old.Unit)
	if err != nil {
		return api.Record{}, false, err
	}
	asked, err := s.prepareAgain(ctx, u, old, files)
	if err != nil {
		return api.Record{}, false, err
	}
	switch {
	case turnOf(from.From) > 0 && capsule.GraphOf(u.Definition) == nil:
		if asked.rewound, err = s.rewind(ctx, u, old, from); err != nil {
			return api.Record{}, false, err
		}
	case from.From != "":
		kept, err := records.Steps(ctx, s.journal.Steps, id)
		if err != nil {
			return api.Record{}, false, err
		}
		if asked.taken, err = takeOver(u, kept, filepath.Join(s.runPath(id), layout.State), from); err != nil {
			return api.Record{}, false, err
		}
	}
	if asked.Project, err = run.StoredProject(s.runPath(id)); err != nil {
		return api.Record{}, false, err
	}
	asked.key, asked.rerunOf, asked.metadata = k, id, old.Metadata
	asked.context = old.Context
	return s.accept(ctx, asked)
}

// prepareAgain checks an input whose files were named by the earlier run.
func (s *Service) prepareAgain(
	ctx context.Context, u *unit.Unit, old api.Record, files *spool.Spool,
) (asked admission, err error) {
	asked = admission{Request: run.Request{Unit: u}, units: s.Units, people: s.Questions}
	if asked.Start, err = s.startOf(ctx, old.ID); err != nil {
		return asked, err
	}
	if asked.Input, err = contract.Decode(orEmpty(old.Input), s.opts.PayloadBytes); err != nil {
		return asked, err
	}
	for _, f := range files.Files() {
		asked.Placed = append(asked.Placed, run.PlacedFile{Source: f.Path, Name: f.Name, Ours: true, SHA256: f.SHA256})
	}
	return asked, s.ready(ctx, &asked)
}

// startOf returns what the caller of an earlier run said of its program's start.
func (s *Service) startOf(ctx context.Context, id string) (capsule.AgentStart, error) {
	row, err := s.store.Runs.Get(ctx, id)
	if err != nil {
		return capsule.AgentStart{}, err
	}
	var p private
	if err := json.Unmarshal(row.Private, &p); err != nil {
		return p.Start, run.Corrupt(err)
	}
	return p.Start, nil
}

// InputOf returns a run whose input can be given again, with its input files under their names in /io/input. The
// error is a Conflict fault where the true input isn't kept.
func (s *Service) InputOf(ctx context.Context, id string) (record api.Record, files []spool.File, err error) {
	if record, err = s.Runs.Get(ctx, id); err != nil {
		return record, nil, err
	}
	if err := run.CheckRerun(record); err != nil {
		return record, nil, err
	}
	dir := filepath.Join(s.runPath(id), "input")
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files = append(files, spool.File{Name: filepath.ToSlash(name), Path: path, Size: info.Size()})
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return record, files, run.StorageFault(err)
}

// linked links files into a spool.
func (s *Service) linked(files []spool.File) (*spool.Spool, error) {
	into, err := s.NewSpool()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := into.Link(f.Path, f); err != nil {
			return nil, errors.Join(run.StorageFault(err), into.Remove())
		}
	}
	return into, nil
}

// takenOver is what the run of a flow begins with: steps of an earlier one, and the directory
// of the files in its state.
type takenOver struct {
	steps []flow.Step
	state string
}

// takeOver chooses the steps that a rerun of a flow takes over from those of an earlier run. The flow is
// as it is now: where it has changed too much, the error says from where it could be rerun.
func takeOver(u *unit.Unit, kept []flow.Step, state string, again api.Rerun) (_ *takenOver, err error) {
	graph := capsule.GraphOf(u.Definition)
	if graph == nil {
		return nil, fault.New(fault.Conflict, "%q isn't a flow: it can't be run from a step on", u.Name).
			WithHint("leave `from` out; on a server an agent can begin at a turn, `turn:3`")
	}
	taken := &takenOver{state: state}
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
	values, err := run.DecodeObject(again.Set)
	if err != nil {
		return nil, fault.New(fault.BadRequest, "`set` isn't a JSON object")
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

// placeIn returns the steps that a run begins with, when their files are there; nil takes none over.
func (t *takenOver) placeIn(r *run.Run) ([]store.Step, error) {
	if t == nil {
		return nil, nil
	}
	rows := make([]store.Step, 0, len(t.steps))
	for _, step := range t.steps {
		row, err := records.StepRow(step)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, t.linkState(r.StateDir())
}
