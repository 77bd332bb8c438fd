package orchestrator

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/store"
	"github.com/agent-on-demand/aod/unit"
)

// Submit accepts a run, or says with a fault why not: nothing is left then. An accepted
// run is stored, and comes to its end whatever becomes of this process or of ctx. When
// the submission's key was seen before, the run that it made is returned, and joined is
// true.
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
	if err := s.admits(); err != nil {
		return api.Record{}, false, err
	}
	u, err := s.units.Get(ctx, sub.Unit)
	if err != nil {
		return api.Record{}, false, err
	}
	req, ready, err := s.prepare(u, sub)
	if err != nil {
		return api.Record{}, false, err
	}
	return s.accept(ctx, u, req, ready, key, accepted{trace: sub.TraceParent, metadata: sub.Metadata})
}

// accepted is what else is known of a run when it is accepted.
type accepted struct {
	trace    string
	rerunOf  string
	metadata map[string]string
}

// key makes a submission's key, with a fingerprint of all that it asks for.
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

// clientKey keeps the keys of clients apart from those of runs, see serviceCalls.
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
func (s *Service) join(ctx context.Context, key store.Key) (api.Record, bool, error) {
	if key.Value == "" {
		return api.Record{}, false, nil
	}
	id, fingerprint, err := s.store.ByKey(ctx, key.Value)
	if fault.Is(err, fault.NotFound) {
		return api.Record{}, false, nil
	}
	if err != nil {
		return api.Record{}, false, err
	}
	return s.joinTo(ctx, key, store.Taken{Run: id, Fingerprint: fingerprint})
}

func (s *Service) joinTo(ctx context.Context, key store.Key, taken store.Taken) (api.Record, bool, error) {
	if taken.Fingerprint != key.Fingerprint {
		return api.Record{}, false, fault.New(fault.Input, "the idempotency key belongs to another submission").
			WithHint("use a new key for each thing that is asked for")
	}
	record, err := s.Get(ctx, taken.Run)
	return record, err == nil, err
}

// prepare checks a submission against the unit's contract.
func (s *Service) prepare(u *unit.Unit, sub Submission) (Request, prepared, error) {
	input, err := contract.Decode(orEmpty(sub.Input), s.opts.PayloadBytes)
	if err != nil {
		return Request{}, prepared{}, err
	}
	req := s.request(u)
	req.Input, req.Files, req.Timeout = input, sub.Files.inputs(), cmp.Or(sub.Timeout, req.Timeout)
	if req.Timeout < 0 || req.Timeout > s.opts.MaxTimeout {
		return Request{}, prepared{}, fault.New(fault.Input, "the timeout %v is out of range: up to %v", req.Timeout, s.opts.MaxTimeout)
	}
	if own := req.limits(s.opts.Limits).Timeout; sub.Within > 0 && sub.Within < own {
		req.Timeout = sub.Within
	}
	ready, err := req.prepare()
	return req, ready, err
}

// request is what every run of a unit is asked for with.
func (s *Service) request(u *unit.Unit) Request {
	settings := s.opts.Units[u.Name]
	return Request{
		Capsule: u.Capsule, Timeout: settings.Timeout,
		ModelPath: settings.ModelPath, StdinBytes: settings.StdinBytes,
	}
}

// accept gives the run a place in the queue, stores it and lets it go.
func (s *Service) accept(ctx context.Context, u *unit.Unit, req Request, ready prepared, key store.Key, more accepted) (api.Record, bool, error) {
	id, err := newRunID("")
	if err != nil {
		return api.Record{}, false, err
	}
	j := s.newJob(id, u, req, ready, more)
	settings := s.opts.Units[u.Name]
	j.ticket, err = s.queue.Enter(u.Name, j.private.Concurrency, cmp.Or(settings.Queue, s.opts.Queue))
	if err != nil {
		s.metrics.refused(u.Name)
		return api.Record{}, false, err
	}
	if err := s.register(j); err != nil {
		j.ticket.Leave()
		return api.Record{}, false, err
	}
	err = s.insert(ctx, j, key)
	if err == nil {
		record := j.record
		go j.drive()
		return record, false, nil
	}
	j.ticket.Leave()
	s.unregister(j)
	err = errors.Join(err, removeRun(s.runPath(id)))
	var taken *store.Taken
	if errors.As(err, &taken) {
		return s.joinTo(ctx, key, *taken)
	}
	return api.Record{}, false, err
}

// newJob makes a job of an accepted request. Its record is whole before it is stored.
func (s *Service) newJob(id string, u *unit.Unit, req Request, ready prepared, more accepted) *job {
	j := s.blankJob(newRun(id, ready, req))
	agent, settings := u.Capsule.Agent, s.opts.Units[u.Name]
	j.private = private{
		Timeout: req.Timeout, Retries: s.opts.Retries, TraceParent: more.trace,
		Concurrency: cmp.Or(settings.Concurrency, agent.Concurrency),
	}
	if settings.ReadWrite {
		j.private.Concurrency = 1
	}
	if agent.Retries != nil {
		j.private.Retries = *agent.Retries
	}
	if settings.Retries != nil {
		j.private.Retries = *settings.Retries
	}
	j.record.Kind, j.record.Version, j.record.Root, j.record.RerunOf = string(u.Kind), u.Version, j.family.root, more.rerunOf
	j.private.Path, j.private.Deadline = j.family.path, j.family.deadline
	j.record.Metadata, j.record.Input = maps.Clone(more.metadata), ready.input.JSON()
	j.record.Transitions = []api.Transition{{State: api.Idle, At: j.record.CreatedAt, Reason: "accepted"}}
	return j
}

// blankJob is what every job has, a new one and one that is recovered.
func (s *Service) blankJob(run *Run) *job {
	dir := s.runPath(run.id)
	j := &job{Run: run, service: s, log: newLogFile(dir), ended: make(chan struct{}), gone: make(chan struct{})}
	j.life, j.cancel = context.WithCancelCause(s.life)
	run.journal = j
	run.inputs, run.published = filepath.Join(dir, "input"), filepath.Join(dir, "output")
	return j
}

// insert stores a run with its files. What it made of files is the caller's to remove
// when it fails.
func (s *Service) insert(ctx context.Context, j *job, key store.Key) error {
	if err := os.MkdirAll(j.inputs, 0o755); err != nil {
		return noRoom(err)
	}
	if err := placeInputs(j.inputs, j.ready.files); err != nil {
		return err
	}
	j.ready.files = nil // they are where they belong
	row, err := j.row()
	if err != nil {
		return err
	}
	row.Metadata = j.record.Metadata
	return s.store.Insert(ctx, row, key, stored(Event{State: &j.record.Transitions[0]})...)
}

// register makes the job known, so that nobody takes its files for an orphan's.
func (s *Service) register(j *job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return fault.New(fault.Unavailable, "the server is shutting down").WithHint("try again in a moment")
	}
	s.live[j.id] = j
	s.jobs.Add(1)
	return nil
}

func (s *Service) unregister(j *job) {
	s.mu.Lock()
	delete(s.live, j.id)
	s.mu.Unlock()
	j.cancel(nil)
	close(j.gone)
	s.jobs.Done()
}

// retire forgets a job with which this process has nothing more to do.
func (s *Service) retire(j *job) {
	s.pool.forget(j.private.Boxes)
	s.unregister(j)
	j.news.notify()
}

// concluded counts a run that has its outcome, and tells whoever called it.
func (s *Service) concluded(j *job) {
	s.metrics.ended(j.record)
	s.tellCaller(j)
}
