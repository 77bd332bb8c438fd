package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// The bounds of the artifacts of one run, in all its attempts.
const (
	maxArtifacts         = 1000
	maxArtifactParts     = 10_000
	maxArtifactBytes     = 64 << 20 // of the parts together, as they are stored
	maxArtifactFiles     = 1000
	maxArtifactFileBytes = 1 << 30 // together; one has at most as many as the result may have
)

// shown counts what a run has shown before its end.
type shown struct {
	mu     sync.Mutex // one part is taken after the other
	known  bool       // what follows was counted
	closed bool       // the run is over
	ids    map[string]bool
	began  map[string]bool    // the artifacts of this attempt, by id
	names  map[shownAs]string // the true names of files
	parts  int
	bytes  int
	files  int
	size   int64 // bytes of the files
}

// shownAs is a file of an artifact, by the name under which it is shown.
type shownAs struct{ artifact, name string }

// begin is for a run that is new.
func (s *shown) begin() { s.known, s.ids, s.began = true, map[string]bool{}, map[string]bool{} }

// nameOf returns the name under which a file is shown: the masked one, or one with a number where
// that is another file's. This process knows which those are.
func (s *shown) nameOf(artifact, name, masked string) string {
	if s.names == nil {
		s.names = map[shownAs]string{}
	}
	free := shownAs{artifact, masked}
	for n := 2; ; n++ {
		if is, taken := s.names[free]; !taken || is == name {
			s.names[free] = name
			return free.name
		}
		free.name = fmt.Sprintf("%d-%s", n, masked)
	}
}

// close has everything further refused. It waits for what is being taken.
func (s *shown) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// beginAgain is called between two attempts: what the next one shows takes the place of what this
// one did, by its ids.
func (s *shown) beginAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = map[string]bool{}
}

// Artifact implements handoff.Runs.
func (c *childRuns) Artifact(ctx context.Context, a handoff.Artifact) error {
	key := keyOfTold(fmt.Sprintf("artifact/%d", c.job.Attempt), c.job.ID, a.Key, digestOfJSON(a.Part))
	s := &c.job.shown
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, err := c.wasTold(ctx, key); known || err != nil {
		return err
	}
	if s.closed || c.job.hasEnded() {
		return fault.New(fault.Conflict, "the run is over")
	}
	if err := c.job.countShown(ctx); err != nil {
		return err
	}
	return c.job.show(ctx, a, key)
}

// show stores a part of an artifact, and tells of it.
func (j *job) show(ctx context.Context, a handoff.Artifact, key store.Key) error {
	part := a.Part
	part.At = time.Now().UTC()
	part.Append = part.Append && j.shown.began[part.ID] // it goes on with nothing of an attempt before
	if a.Open != nil {
		file, err := j.keepShown(a.Open)
		if err != nil {
			return err
		}
		file.Name = j.shown.nameOf(part.ID, file.Name, j.Masked(file.Name))
		part.Parts = []api.Part{{File: &file, MediaType: part.Parts[0].MediaType}}
	}
	part = j.MaskedArtifact(part)
	part.Parts = append([]api.Part{}, part.Parts...) // none is [], not null
	event := newEvent(part.At, part)
	if err := errors.Join(j.shown.allows(a.Part.ID, len(event.Data)), j.loop.room(int64(len(event.Data)))); err != nil {
		return err
	}
	if err := j.loop.storeTold(ctx, key, j.ID, event); err != nil {
		return err
	}
	j.shown.add(a.Part.ID, len(event.Data))
	j.shown.began[a.Part.ID] = true
	j.news.Notify()
	j.Tell(run.Event{Artifact: &part})
	return nil
}

func (s *shown) add(id string, bytes int) {
	s.ids[id] = true
	s.parts, s.bytes = s.parts+1, s.bytes+bytes
}

// allows returns a TooLarge fault for a part that is one too many.
func (s *shown) allows(id string, bytes int) error {
	switch {
	case !s.ids[id] && len(s.ids) >= maxArtifacts:
		return fault.New(fault.TooLarge, "this run has shown %d artifacts already", len(s.ids)).
			WithHint("put more into one of them, or into the result")
	case s.parts >= maxArtifactParts:
		return fault.New(fault.TooLarge, "this run has shown its artifacts in %d parts already", s.parts).
			WithHint("send larger parts, or put the rest into the result")
	case s.bytes+bytes > maxArtifactBytes:
		return fault.New(fault.TooLarge, "the artifacts of this run have %d bytes; %d are allowed", s.bytes,
			maxArtifactBytes).
			WithHint("put what is large into a file")
	}
	return nil
}

// keepShown copies a file as it is now, to where it is known by its digest.
func (j *job) keepShown(open func() (handoff.File, error)) (api.File, error) {
	file, err := open()
	if err != nil {
		return api.File{}, err
	}
	defer func() { _ = file.Open.Close() }() // read only
	if err := j.allowsFile(file.Size); err != nil {
		return api.File{}, err
	}
	size, sum, err := j.copyShown(file)
	if err != nil {
		return api.File{}, run.StorageFault(err)
	}
	return api.File{Name: file.Name, SizeBytes: size, SHA256: sum}, nil
}

func (j *job) allowsFile(size int64) error {
	s, most := &j.shown, j.Limits.OutputBytes
	switch {
	case most > 0 && size > most:
		return fault.New(fault.TooLarge, "the file has %d bytes; %d are allowed", size, most).
			WithHint("raise limits.output in agent.yaml if it needs that much")
	case s.files >= maxArtifactFiles:
		return fault.New(fault.TooLarge, "this run has shown %d files already", s.files).
			WithHint("put the rest into the result, or into one archive")
	case s.size+size > maxArtifactFileBytes:
		return fault.New(fault.TooLarge, "the files that this run has shown have %d bytes; %d are allowed", s.size,
			maxArtifactFileBytes).
			WithHint("put the rest into the result")
	}
	return j.loop.room(size)
}

// copyShown copies a file into the directory of artifacts. One that is there already stays.
func (j *job) copyShown(file handoff.File) (size int64, sum string, err error) {
	dir := j.ArtifactsDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, "", err
	}
	temp := filepath.Join(dir, safefs.TempName())
	defer func() { err = errors.Join(err, safefs.IgnoreMissing(os.Remove(temp))) }()
	if size, sum, err = copyWithDigest(temp, file); err != nil {
		return 0, "", err
	}
	target := filepath.Join(dir, sum)
	if _, err := os.Lstat(target); err == nil {
		return size, sum, nil
	}
	if err := os.Rename(temp, target); err != nil {
		return 0, "", err
	}
	j.shown.files, j.shown.size = j.shown.files+1, j.shown.size+size
	if j.Durable {
		err = errors.Join(safefs.Sync(target), safefs.Sync(dir), safefs.Sync(j.Dir))
	}
	return size, sum, err
}

func copyWithDigest(path string, file handoff.File) (size int64, sum string, err error) {
	out, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err = file.CopyTo(out); err != nil {
		return 0, "", err
	}
	if _, err = out.Seek(0, io.SeekStart); err != nil {
		return 0, "", err
	}
	return safefs.Digest(out)
}

// countShown counts what an earlier process stored.
func (j *job) countShown(ctx context.Context) error {
	if j.shown.known {
		return nil
	}
	s := shown{ids: map[string]bool{}, began: map[string]bool{}}
	var last int64 // of the attempts before
	err := j.loop.eachTold(ctx, j.ID, api.EventAttempt, func(e store.Event) error {
		last = e.Seq
		return nil
	})
	if err != nil {
		return err
	}
	err = j.loop.eachTold(ctx, j.ID, api.EventArtifact, func(e store.Event) error {
		var part api.ArtifactEvent
		if err := json.Unmarshal(e.Data, &part); err != nil {
			return undecodable(err)
		}
		s.add(part.ID, len(e.Data))
		s.began[part.ID] = s.began[part.ID] || e.Seq > last
		return nil
	})
	if err != nil {
		return err
	}
	if s.files, s.size, err = keptShown(j.ArtifactsDir()); err != nil {
		return run.StorageFault(err)
	}
	now := &j.shown
	now.known, now.ids, now.began, now.parts, now.bytes, now.files, now.size = true, s.ids, s.began, s.parts, s.bytes,
		s.files, s.size
	return nil
}

// keptShown counts the files of a directory of artifacts, and removes what a dead process left of
// one that it was copying.
func keptShown(dir string) (files int, size int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0, safefs.IgnoreMissing(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), safefs.TempPrefix) {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return 0, 0, err
			}
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return 0, 0, err
		}
		files, size = files+1, size+info.Size()
	}
	return files, size, nil
}

// Artifacts returns a part of what a run told of its artifacts, what comes after a number, in its
// order. The limit is 1 to 1000; 0 is 100. An unknown run is a NotFound fault.
func (s *Service) Artifacts(ctx context.Context, id string, after int64, limit int) (api.ArtifactPage, error) {
	limit, err := api.PageLimit(limit)
	if err != nil {
		return api.ArtifactPage{}, err
	}
	if _, err := s.Get(ctx, id); err != nil {
		return api.ArtifactPage{}, err
	}
	events, err := s.store.Told(ctx, id, string(api.EventArtifact), after, limit)
	page := api.ArtifactPage{Artifacts: make([]api.ToldArtifact, len(events))}
	for i, e := range events {
		page.Artifacts[i].N = e.Seq
		if err := json.Unmarshal(e.Data, &page.Artifacts[i].ArtifactEvent); err != nil {
			return api.ArtifactPage{}, undecodable(err)
		}
	}
	if store.Full(events, limit) {
		page.Next = &events[len(events)-1].Seq
	}
	return page, err
}

// OpenArtifact opens a file of an artifact of a run, the last one of that name that it has shown.
func (s *Service) OpenArtifact(ctx context.Context, id, artifact, name string) (*os.File, api.File, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, api.File{}, err
	}
	var found *api.File
	err := s.eachTold(ctx, id, api.EventArtifact, func(e store.Event) error {
		var part api.ArtifactEvent
		if err := json.Unmarshal(e.Data, &part); err != nil {
			return undecodable(err)
		}
		for _, p := range part.Parts {
			if part.ID == artifact && p.File != nil && p.File.Name == name {
				found = p.File
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, api.File{}, err
	case found == nil:
		return nil, api.File{}, fault.New(fault.NotFound, "the run has shown no such file").
			WithHint("its events tell of its artifacts")
	}
	root, err := os.OpenRoot(filepath.Join(s.runPath(id), layout.Artifacts))
	if err != nil {
		return nil, api.File{}, fault.Wrap(fault.NotFound, err, "the run's files are gone")
	}
	defer func() { _ = root.Close() }() // holds no data
	kept := *found
	kept.Name = found.SHA256
	f, err := s.openWhole(root, id, kept)
	return f, *found, err
}
