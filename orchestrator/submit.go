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
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/store"
	"github.com/agent-on-demand/aod/unit"
)

// Submit accepts a run. An error is a fault with the reason, and nothing is left then. An
// accepted run is stored, and ends even if this process or ctx ends before. If an earlier
// submission had the same key, Submit returns the run of that one, and joined is true.
func (s *Service) Submit(ctx context.Context, sub Submission) (record api.Record, joined bool, err error) {
	defer func() {
		if sub.Files != nil {
			err = errors.Join(err, sub.Files.Remove())
		}
	}()
	if err := api.CheckMetadata(sub.Metadata); err != nil {
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
	u, err := s.units.Get(ctx, sub.Unit)
	if err != nil {
		return api.Record{}, false, err
	}
	asked, err := s.prepare(ctx, u, sub)
	if err != nil {
		return api.Record{}, false, err
	}
	asked.key, asked.trace, asked.metadata = key, sub.TraceParent, sub.Metadata
	return s.accept(ctx, asked)
}

// key returns the submission's key with a fingerprint of everything that it asks for.
func (sub Submission) key() (store.Key, error) {
	if sub.Key == "" {
		return store.Key{}, nil
	}
	var input bytes.Buffer
	if err := json.Compact(&input, orEmpty(sub.Input)); err != nil {
		return store.Key{}, fault.Wrap(fault.Input, err, "the input is not JSON")
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %q %v\n%s", sub.Unit, input.Bytes(), sub.Timeout, sub.Files.digest())
	if sub.Within > 0 {
		_, _ = fmt.Fprintf(sum, "\n%v", sub.Within)
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
	if taken.Fingerprint != key.Fingerprint {
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
	asked := accepted{Request: run.Request{Unit: u}, find: s.units.Get}
	asked.Input, asked.Files, asked.Timeout = input, sub.Files.inputs(), sub.Timeout
	if most := s.maxTimeout(u); asked.Timeout < 0 || asked.Timeout > most {
		return accepted{}, fault.New(fault.Input, "the timeout %v is out of range: up to %v (max_timeout)", asked.Timeout, most)
	}
	if own := asked.Limits(s.opts.Limits).Timeout; sub.Within > 0 && sub.Within < own {
		asked.Timeout = sub.Within
	}
	return asked, s.ready(ctx, &asked)
}
