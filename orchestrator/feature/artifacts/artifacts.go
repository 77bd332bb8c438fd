// Package artifacts has runs show parts of what they give before their end.
//
//	Feature.Join     gives a run its part, which counts from what is stored
//	part.Mounts      is POST /artifact in the capsule API
//	part.Artifact    copies the file of a part by its digest, and tells it once
//	part.Conclude    refuses what comes after the end
//	Feature.List     is what a run has shown, and Feature.Open a file of it
//
// The file is opened through no link (handoff.Broker.OpenOutput). Artifacts are counted.
//
// It must not know who leads a run, or HTTP.
//
// Its Go API may change with every release: see docs/stability.md.
package artifacts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Feature implements feature.Feature.
type Feature struct {
	process feature.Process
}

// New returns the Feature.
func New() *Feature { return &Feature{} }

// Init implements feature.Initializer.
func (f *Feature) Init(p feature.Process) error {
	f.process = p
	return nil
}

// Join implements feature.Feature.
func (f *Feature) Join(_ context.Context, r *run.Run, _ feature.Part) feature.Part {
	return &part{feature: f, run: r}
}

// part is what a run has shown.
type part struct {
	feature.Indifferent
	feature *Feature
	run     *run.Run

	mu     sync.Mutex // one artifact is taken after the other
	known  bool       // counts is what is stored
	closed bool       // the run is over
	counts counts
	names  map[shownAs]string // the true names of files
}

// shownAs is a file of an artifact, by the name under which it is shown.
type shownAs struct{ artifact, name string }

// Open implements feature.Part.
func (p *part) Open() { p.known, p.counts = true, newCounts() }

// Again implements feature.Part: what the next attempt shows takes the place of what the one before it did,
// by its ids.
func (p *part) Again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.began = map[string]bool{}
}

// Conclude implements feature.Part: it waits for what is being taken, and refuses the rest.
func (p *part) Conclude() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// Mounts implements feature.Part.
func (p *part) Mounts(feature.Slot) []capsuleapi.Mount {
	return []capsuleapi.Mount{capsuleapi.ArtifactMount(p.Artifact)}
}

// Artifact takes a part of an artifact. A key that was used before does nothing; with another part it is
// an Input fault.
func (p *part) Artifact(ctx context.Context, a handoff.Artifact) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	once := run.Once{Fingerprint: run.Digest(a.Part)}
	if a.Key != "" {
		once.Key = fmt.Sprintf("artifact/%d/%s/%s", p.run.Attempt, p.run.ID, a.Key)
	}
	if known, err := p.run.WasTold(ctx, once); known || err != nil {
		return err
	}
	if p.closed {
		return fault.New(fault.Conflict, "the run is over")
	}
	if err := p.count(ctx); err != nil {
		return err
	}
	return p.show(ctx, a, once)
}

// show stores a part of an artifact, and tells of it.
func (p *part) show(ctx context.Context, a handoff.Artifact, once run.Once) error {
	told := a.Part
	told.At = time.Now().UTC()
	told.Append = told.Append && p.counts.began[told.ID] // it goes on with nothing of an attempt before
	if a.Open != nil {
		file, err := p.keep(a.Open)
		if err != nil {
			return err
		}
		file.Name = p.nameOf(told.ID, file.Name, p.run.Masked(file.Name))
		told.Parts = []api.Part{{File: &file, MediaType: told.Parts[0].MediaType}}
	}
	told = p.run.MaskedArtifact(told)
	told.Parts = append([]api.Part{}, told.Parts...) // none is [], not null
	raw, err := json.Marshal(told)
	if err != nil {
		return err
	}
	err = errors.Join(p.counts.allows(a.Part.ID, len(raw)), p.feature.process.Home.Disks.Room(int64(len(raw))))
	if err != nil {
		return err
	}
	if err := p.run.TellOnce(ctx, once, told); err != nil {
		return err
	}
	p.counts.add(a.Part.ID, len(raw))
	p.counts.began[a.Part.ID] = true
	return nil
}

// nameOf returns the name under which a file is shown: the masked one, or one with a number where
// that is another file's. This process knows which those are.
func (p *part) nameOf(artifact, name, masked string) string {
	if p.names == nil {
		p.names = map[shownAs]string{}
	}
	free := shownAs{artifact, masked}
	for n := 2; ; n++ {
		if is, taken := p.names[free]; !taken || is == name {
			p.names[free] = name
			return free.name
		}
		free.name = fmt.Sprintf("%d-%s", n, masked)
	}
}

// count counts what an earlier process stored.
func (p *part) count(ctx context.Context) error {
	if p.known {
		return nil
	}
	counted := newCounts()
	var last int64 // of the attempts before
	err := store.EachTold(ctx, p.feature.process.Events, p.run.ID, string(api.EventAttempt), func(e store.Event) error {
		last = e.Seq
		return nil
	})
	if err != nil {
		return err
	}
	err = p.feature.eachPart(ctx, p.run.ID, func(e store.Event, told api.ArtifactEvent) {
		counted.add(told.ID, len(e.Data))
		counted.began[told.ID] = counted.began[told.ID] || e.Seq > last
	})
	if err != nil {
		return err
	}
	if counted.files, counted.size, err = keptIn(p.run.ArtifactsDir()); err != nil {
		return run.StorageFault(err)
	}
	p.known, p.counts = true, counted
	return nil
}
