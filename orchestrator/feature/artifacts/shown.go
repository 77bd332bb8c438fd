package artifacts

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// List returns a part of what a run told of its artifacts, what comes after a number, in its order. The
// limit is 1 to 1000; 0 is 100. An unknown run is a NotFound fault.
func (f *Feature) List(ctx context.Context, id string, after int64, limit int) (api.ArtifactPage, error) {
	limit, err := api.PageLimit(limit)
	if err != nil {
		return api.ArtifactPage{}, err
	}
	if _, err := f.runDir(ctx, id); err != nil {
		return api.ArtifactPage{}, err
	}
	events, err := f.process.Events.Told(ctx, id, string(api.EventArtifact), after, limit)
	page := api.ArtifactPage{Artifacts: make([]api.ToldArtifact, len(events))}
	for i, e := range events {
		page.Artifacts[i].N = e.Seq
		if err := json.Unmarshal(e.Data, &page.Artifacts[i].ArtifactEvent); err != nil {
			return api.ArtifactPage{}, run.Corrupt(err)
		}
	}
	if store.Full(events, limit) {
		page.Next = &events[len(events)-1].Seq
	}
	return page, err
}

// OpenFile opens a file of an artifact of a run, the last one of that name that it has shown.
func (f *Feature) OpenFile(ctx context.Context, id, artifact, name string) (*os.File, api.File, error) {
	dir, err := f.runDir(ctx, id)
	if err != nil {
		return nil, api.File{}, err
	}
	var found *api.File
	err = f.eachPart(ctx, id, func(_ store.Event, told api.ArtifactEvent) {
		for _, p := range told.Parts {
			if told.ID == artifact && p.File != nil && p.File.Name == name {
				found = p.File
			}
		}
	})
	switch {
	case err != nil:
		return nil, api.File{}, err
	case found == nil:
		return nil, api.File{}, fault.New(fault.NotFound, "the run has shown no such file").
			WithHint("its events tell of its artifacts")
	}
	root, err := os.OpenRoot(filepath.Join(dir, layout.Artifacts))
	if err != nil {
		return nil, api.File{}, fault.Wrap(fault.NotFound, err, "the run's files are gone")
	}
	defer func() { _ = root.Close() }() // holds no data
	kept := *found
	kept.Name = found.SHA256
	file, err := f.process.Library.OpenWhole(root, id, kept)
	return file, *found, err
}

// runDir returns the directory of a run that the client of ctx may know of; of no Feature, a fault.
func (f *Feature) runDir(ctx context.Context, id string) (string, error) {
	if f == nil {
		return "", fault.New(fault.Unsupported, "runs show no artifacts at this server")
	}
	return f.process.Library.RunDir(ctx, id)
}

// eachPart goes through the parts of artifacts that a run has shown.
func (f *Feature) eachPart(ctx context.Context, id string, do func(store.Event, api.ArtifactEvent)) error {
	return store.EachTold(ctx, f.process.Events, id, string(api.EventArtifact), func(e store.Event) error {
		var told api.ArtifactEvent
		if err := json.Unmarshal(e.Data, &told); err != nil {
			return run.Corrupt(err)
		}
		do(e, told)
		return nil
	})
}
