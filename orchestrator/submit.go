package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/keys"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/turns"
)

// Submit accepts a run. An error is a fault with the reason, and nothing is left then. An
// accepted run is stored, and ends even if this process or ctx ends before. If an earlier
// submission had the same key, Submit returns the run of that one, and joined is true.
func (s *Service) Submit(ctx context.Context, sub spool.Submission) (record api.Record, joined bool, err error) {
	defer func() { err = errors.Join(err, sub.Files.Remove()) }()
	if err := api.CheckMetadata(sub.Metadata); err != nil {
		return api.Record{}, false, err
	}
	if err := api.CheckContext(sub.Context); err != nil {
		return api.Record{}, false, err
	}
	key, err := keys.Of(access.OwnerOf(ctx), sub)
	if err != nil {
		return api.Record{}, false, err
	}
	if record, joined, err = s.join(ctx, key); joined || err != nil {
		return record, joined, err
	}
	if err := errors.Join(s.Admits(ctx), s.Quotas.CheckStorage(ctx)); err != nil {
		return api.Record{}, false, err
	}
	talk, u, err := s.unitOf(ctx, sub)
	if err != nil {
		return api.Record{}, false, err
	}
	asked, err := s.prepare(ctx, u, sub)
	if err != nil {
		return api.Record{}, false, err
	}
	asked.session = talk
	asked.key, asked.trace, asked.metadata, asked.context = key, sub.TraceParent, sub.Metadata, sub.Context
	if asked.message, err = firstMessage(sub, asked.input.Files); err != nil {
		return api.Record{}, false, err
	}
	return s.accept(ctx, asked)
}

// Check returns the fault with which a submission would be refused now, and starts nothing. It doesn't look at its
// key, its session and its message.
func (s *Service) Check(ctx context.Context, sub spool.Submission) error {
	u, err := s.Units.Get(ctx, sub.Unit)
	if err != nil {
		return err
	}
	_, err = s.prepare(ctx, u, sub)
	return err
}

// unitOf returns the unit of a submission, and the session of which the run is a turn.
func (s *Service) unitOf(ctx context.Context, sub spool.Submission) (*turns.Session, *unit.Unit, error) {
	if sub.Session != "" {
		return s.Sessions.Choose(ctx, sub.Session, sub.Unit)
	}
	u, err := s.Units.Get(ctx, sub.Unit)
	return nil, u, err
}

func orEmpty(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return json.RawMessage("{}")
	}
	return input
}

// join returns the run that was made with the key.
func (l *loop) join(ctx context.Context, key store.Key) (api.Record, bool, error) {
	if key.Value == "" {
		return api.Record{}, false, nil
	}
	id, fingerprint, err := l.journal.Keys.Get(ctx, key.Value)
	if before := keys.BeforeTeams(key.Value); fault.Is(err, fault.NotFound) && before != "" {
		id, fingerprint, err = l.journal.Keys.Get(ctx, before)
		if err == nil && !isOf(ctx, l.runs, id) {
			return api.Record{}, false, nil
		}
	}
	if fault.Is(err, fault.NotFound) {
		return api.Record{}, false, nil
	}
	if err != nil {
		return api.Record{}, false, err
	}
	return l.joinTo(ctx, key, store.Taken{Run: id, Fingerprint: fingerprint})
}

// isOf reports whether a run belongs to the client of ctx.
func isOf(ctx context.Context, runs *records.Reader, id string) bool {
	record, err := runs.Get(ctx, id)
	owner := access.OwnerOf(ctx)
	return err == nil && owner == access.Owner{Team: api.TeamOf(record.Owner), By: record.By}
}

func (l *loop) joinTo(ctx context.Context, key store.Key, taken store.Taken) (api.Record, bool, error) {
	err := l.runs.Seen(ctx, taken.Run)
	if taken.Fingerprint != key.Fingerprint || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) {
		return api.Record{}, false, fault.New(fault.Input, "the idempotency key belongs to another submission").
			WithHint("use a new key for each thing that is asked for")
	}
	if err != nil { // whether it is their own isn't known now
		return api.Record{}, false, err
	}
	record, err := l.runs.Get(ctx, taken.Run)
	return record, err == nil, err
}

// prepare checks a submission against the unit's kind and contract.
func (s *Service) prepare(ctx context.Context, u *unit.Unit, sub spool.Submission) (admission, error) {
	input, err := contract.Decode(orEmpty(sub.Input), s.opts.PayloadBytes)
	if err != nil {
		return admission{}, err
	}
	asked := admission{Request: run.Request{Unit: u}, units: s.Units, people: s.Questions, unattended: sub.Unattended}
	asked.Input, asked.Files, asked.Timeout, asked.Project = input, sub.Files.Inputs(), sub.Timeout, sub.Files.Project()
	asked.Start, asked.Extra, asked.once = sub.Start, sub.Extra, sub.Extra != nil
	if !sub.Start.IsZero() && sub.Session != "" {
		return admission{}, fault.New(fault.Input,
			"a turn of a session has no env and no dir of its own: its program may have started long ago").
			WithHint("leave them out, or run the unit without a session")
	}
	if asked.Project != nil && sub.Session != "" {
		return admission{}, fault.New(fault.Input, "a turn of a session gets no workspace of its own").
			WithHint("give it when the session begins: all its turns work on it")
	}
	if most := s.rules.MaxTimeoutOf(u); asked.Timeout < 0 || asked.Timeout > most {
		return admission{}, fault.New(fault.Input, "the timeout %v is out of range: up to %v (max_timeout)",
			asked.Timeout, most)
	}
	if own := asked.Limits(s.opts.Limits).Timeout; sub.Within > 0 && sub.Within < own {
		asked.Timeout = sub.Within
	}
	return asked, s.ready(ctx, &asked)
}

// NewSpool returns an empty spool. The caller removes it if no submission took it.
func (l *loop) NewSpool() (*spool.Spool, error) {
	return spool.New(filepath.Join(l.home.Dir, "spool"), l.room)
}

// firstMessage is the message that a run begins with, whose files are among those that it gets.
func firstMessage(sub spool.Submission, placed []run.PlacedFile) (*api.MessageEvent, error) {
	if sub.Message == nil {
		return nil, nil
	}
	m := *sub.Message
	m.Parts = append([]api.Part(nil), m.Parts...)
	used := map[int]bool{}
	for i, part := range m.Parts {
		if part.File == nil {
			continue
		}
		file, err := placedAs(part.File.Name, sub.Files.Files(), placed, used)
		if err != nil {
			return nil, err
		}
		m.Parts[i].File = &file
	}
	if err := run.CompleteMessage(&m); err != nil {
		return nil, err
	}
	return &m, api.CheckMessage(m)
}

// placedAs returns a received file under the name that it has in /io/input. Of several with one name
// each is used once.
func placedAs(name string, files []spool.File, placed []run.PlacedFile, used map[int]bool) (api.File, error) {
	for i, f := range files {
		if f.Name == name && !used[i] && i < len(placed) {
			used[i] = true
			return api.File{Name: placed[i].Name, SizeBytes: f.Size, SHA256: f.SHA256}, nil
		}
	}
	return api.File{}, fault.New(fault.Input, "the message names a file that was not given")
}
