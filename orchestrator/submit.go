package orchestrator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/turns"
)

// Submit accepts a run. An error is a fault with the reason, and nothing is left then. An
// accepted run is stored, and ends even if this process or ctx ends before. If an earlier
// submission had the same key, Submit returns the run of that one, and joined is true.
func (s *Service) Submit(ctx context.Context, sub Submission) (record api.Record, joined bool, err error) {
	defer func() { err = errors.Join(err, sub.Files.Remove()) }()
	if err := api.CheckMetadata(sub.Metadata); err != nil {
		return api.Record{}, false, err
	}
	if err := api.CheckContext(sub.Context); err != nil {
		return api.Record{}, false, err
	}
	key, err := sub.key()
	if err != nil {
		return api.Record{}, false, err
	}
	if record, joined, err = s.join(ctx, key); joined || err != nil {
		return record, joined, err
	}
	if err := s.admits(ctx); err != nil {
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
	if asked.pushes, err = s.pushesOf(ctx, sub.Pushes); err != nil {
		return api.Record{}, false, err
	}
	asked.session = talk
	asked.key, asked.trace, asked.metadata, asked.context = key, sub.TraceParent, sub.Metadata, sub.Context
	if asked.message, err = sub.firstMessage(asked.input.Files); err != nil {
		return api.Record{}, false, err
	}
	return s.accept(ctx, asked)
}

// unitOf returns the unit of a submission, and the session of which the run is a turn.
func (s *Service) unitOf(ctx context.Context, sub Submission) (*turns.Session, *unit.Unit, error) {
	if sub.Session != "" {
		return s.sessionUnit(ctx, sub)
	}
	u, err := s.units.Get(ctx, sub.Unit)
	return nil, u, err
}

// key returns the submission's key with a fingerprint of everything that it asks for.
func (sub Submission) key() (store.Key, error) {
	if sub.Resend != "" {
		return sub.resendKey()
	}
	if sub.Key == "" {
		return store.Key{}, nil
	}
	var input bytes.Buffer
	if err := json.Compact(&input, orEmpty(sub.Input)); err != nil {
		return store.Key{}, fault.Wrap(fault.Input, err, "the input is not JSON")
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %q %v\n%s", sub.Unit, input.Bytes(), sub.Timeout, sub.Files.Digest())
	if sub.Within > 0 {
		_, _ = fmt.Fprintf(sum, "\n%v", sub.Within)
	}
	if sub.Unattended {
		_, _ = fmt.Fprint(sum, "\nunattended")
	}
	if sub.Session != "" {
		_, _ = fmt.Fprintf(sum, "\nsession %q", sub.Session)
	}
	if !sub.Start.IsZero() {
		start, err := json.Marshal(sub.Start)
		if err != nil {
			return store.Key{}, err
		}
		_, _ = fmt.Fprintf(sum, "\nstart %s", start)
	}
	if sub.Context != "" {
		_, _ = fmt.Fprintf(sum, "\ncontext %q", sub.Context)
	}
	if sub.Message != nil {
		_, _ = fmt.Fprintf(sum, "\nmessage %s", digestOfMessage(*sub.Message))
	}
	hashMetadata(sum, sub.Metadata)
	return store.Key{Value: clientKey(sub.Key), Fingerprint: hex.EncodeToString(sum.Sum(nil))}, nil
}

// clientKey keeps the keys of clients apart from those of runs, see childRuns.
func clientKey(key string) string {
	if key == "" {
		return ""
	}
	return "client/" + key
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
	id, fingerprint, err := l.journal.ByKey(ctx, key.Value)
	if fault.Is(err, fault.NotFound) {
		return api.Record{}, false, nil
	}
	if err != nil {
		return api.Record{}, false, err
	}
	return l.joinTo(ctx, key, store.Taken{Run: id, Fingerprint: fingerprint})
}

func (l *loop) joinTo(ctx context.Context, key store.Key, taken store.Taken) (api.Record, bool, error) {
	if taken.Fingerprint != key.Fingerprint || l.seen(ctx, taken.Run) != nil {
		return api.Record{}, false, fault.New(fault.Input, "the idempotency key belongs to another submission").
			WithHint("use a new key for each thing that is asked for")
	}
	record, err := l.Get(ctx, taken.Run)
	return record, err == nil, err
}

// prepare checks a submission against the unit's kind and contract.
func (s *Service) prepare(ctx context.Context, u *unit.Unit, sub Submission) (accepted, error) {
	input, err := contract.Decode(orEmpty(sub.Input), s.opts.PayloadBytes)
	if err != nil {
		return accepted{}, err
	}
	asked := accepted{Request: run.Request{Unit: u}, find: s.units.Get, unattended: sub.Unattended}
	asked.Input, asked.Files, asked.Timeout, asked.Project = input, sub.Files.Inputs(), sub.Timeout, sub.Files.Project()
	asked.Start = sub.Start
	if !sub.Start.IsZero() && sub.Session != "" {
		return accepted{}, fault.New(fault.Input,
			"a turn of a session has no env and no dir of its own: its program may have started long ago").
			WithHint("leave them out, or run the unit without a session")
	}
	if asked.Project != nil && sub.Session != "" {
		return accepted{}, fault.New(fault.Input, "a turn of a session gets no workspace of its own").
			WithHint("give it when the session begins: all its turns work on it")
	}
	if most := s.maxTimeout(u); asked.Timeout < 0 || asked.Timeout > most {
		return accepted{}, fault.New(fault.Input, "the timeout %v is out of range: up to %v (max_timeout)",
			asked.Timeout, most)
	}
	if own := asked.Limits(s.opts.Limits).Timeout; sub.Within > 0 && sub.Within < own {
		asked.Timeout = sub.Within
	}
	return asked, s.ready(ctx, &asked)
}
