package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Rerun submits the input of an earlier run again, to the current version of its unit. A flow
// may begin with steps of the earlier run.
func (s *Service) Rerun(
	ctx context.Context, id, key string, from api.Rerun,
) (record api.Record, joined bool, err error) {
	old, err := s.Get(ctx, id)
	if err != nil {
		return api.Record{}, false, err
	}
	if err := run.CheckRerun(old); err != nil {
		return api.Record{}, false, err
	}
	files, err := s.spoolInputs(id)
	if err != nil {
		return api.Record{}, false, err
	}
	defer func() { err = errors.Join(err, files.Remove()) }()
	k := store.Key{Value: clientKey(key), Fingerprint: rerunFingerprint(id, from)}
	if record, joined, err = s.join(ctx, k); joined || err != nil {
		return record, joined, err
	}
	if err := s.admits(ctx); err != nil {
		return api.Record{}, false, err
	}
	u, err := s.units.Get(ctx, old.Unit)
	if err != nil {
		return api.Record{}, false, err
	}
	asked, err := s.prepareAgain(ctx, u, old, files)
	if err != nil {
		return api.Record{}, false, err
	}
	if from.From != "" {
		if asked.taken, err = s.takeOver(ctx, u, id, from); err != nil {
			return api.Record{}, false, err
		}
	}
	if asked.Project, err = s.projectOf(id); err != nil {
		return api.Record{}, false, err
	}
	asked.key, asked.rerunOf, asked.metadata = k, id, old.Metadata
	asked.context = old.Context
	return s.accept(ctx, asked)
}

func rerunFingerprint(id string, from api.Rerun) string {
	if from.From == "" {
		return "rerun of " + id
	}
	sum := sha256.Sum256(from.Set)
	return "rerun of " + id + " from " + from.From + " " + hex.EncodeToString(sum[:])
}

// prepareAgain checks an input whose files were named by the earlier run.
func (s *Service) prepareAgain(
	ctx context.Context, u *unit.Unit, old api.Record, files *spool.Spool,
) (asked accepted, err error) {
	asked = accepted{Request: run.Request{Unit: u}, find: s.units.Get}
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
	row, err := s.store.Run(ctx, id)
	if err != nil {
		return capsule.AgentStart{}, err
	}
	var p private
	if err := json.Unmarshal(row.Private, &p); err != nil {
		return p.Start, undecodable(err)
	}
	return p.Start, nil
}

// spoolInputs links the input files of a run into a spool, under their names in
// /io/input.
func (s *Service) spoolInputs(id string) (*spool.Spool, error) {
	linked, err := s.NewSpool()
	if err != nil {
		return nil, err
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
		return linked.Link(path, spool.File{Name: filepath.ToSlash(name)})
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(run.StorageFault(err), linked.Remove())
	}
	return linked, nil
}
