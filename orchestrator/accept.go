package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/flow"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/safefs"
	"github.com/agent-on-demand/aod/store"
)

// accepted is a request that may become a run.
type accepted struct {
	run.Request
	input run.Input // set by ready
	kind  run.Kind  // likewise

	id       string // "" makes a new one
	key      store.Key
	trace    string
	rerunOf  string
	metadata map[string]string
	find     finder

	// Of a run that lives with its caller.
	outDir  string // where output files are delivered; "" keeps them in the run's directory
	keep    bool   // the attempt's directory is kept
	once    bool   // it is never tried again
	observe func(run.Event)
	source  ModelSource
	taken   *takenOver                                                // of an earlier run; nil: nothing
	answer  func(context.Context, flow.Question) (flow.Answer, error) // nil: as the journal does
}

// ready prepares a request and checks it against the unit's policy, its kind and its
// contract.
func (l *loop) ready(ctx context.Context, asked *accepted) (err error) {
	if refusal := asked.Unit.Policy.Refusal; refusal != nil {
		return refusal
	}
	if asked.kind, err = l.kinds.Of(asked.Unit); err != nil {
		return err
	}
	asked.input, err = asked.Prepare(ctx, asked.kind)
	return err
}

// accept gives the run a place in the queue, stores it and starts to lead it. It returns the
// record of the run. If an earlier run has the same key, it returns the record of that run.
func (l *loop) accept(ctx context.Context, asked accepted) (record api.Record, joined bool, err error) {
	j, err := l.admit(ctx, asked)
	if err == nil {
		record = j.Record
		go j.drive()
		return record, false, nil
	}
	var taken *store.Taken
	if errors.As(err, &taken) {
		return l.joinTo(ctx, asked.key, *taken)
	}
	return api.Record{}, false, err
}

// admit stores a run before its job starts. After an error nothing is left of the run.
func (l *loop) admit(ctx context.Context, asked accepted) (*job, error) {
	j, err := l.newJob(asked)
	if err != nil {
		return nil, err
	}
	if err := l.checkMemory(j); err != nil {
		return nil, err
	}
	settings := l.opts.Units[asked.Unit.Name]
	j.permit, err = l.queue.Enter(l.place(j), cmp.Or(settings.Queue, l.opts.Queue))
	if err != nil {
		l.metrics.refused(asked.Unit.Name)
		return nil, err
	}
	l.warnOfWait(j)
	if err := l.register(j); err != nil {
		j.permit.Leave()
		return nil, err
	}
	j.openAccount()
	if err = l.insert(ctx, j, asked.key); err == nil {
		return j, nil
	}
	j.permit.Leave()
	l.unregister(j)
	return nil, errors.Join(err, safefs.RemoveTree(j.Dir))
}

// warnOfWait warns in the record of a new run that its turn will probably come too late.
func (l *loop) warnOfWait(j *job) {
	name := j.Record.Unit
	ahead := l.queue.Waiting(name)
	wait, passed := l.recent.expectedWait(name, ahead, l.opts.QueueWait, time.Now())
	if passed {
		l.logger.Warn("runs will wait longer than queue_wait", "unit", name, "waiting", ahead, "expected_ms", wait.Milliseconds())
	}
	if wait > l.opts.QueueWait {
		j.Record.Warnings = append(j.Record.Warnings, fmt.Sprintf(
			"%d runs of this unit wait for their turn: at the rate of the last minutes that of this one comes in about %v, and queue_wait ends it after %v",
			ahead, wait.Round(time.Second), l.opts.QueueWait))
	}
}

// newJob makes a job of an accepted request, with a complete record.
func (l *loop) newJob(asked accepted) (*job, error) {
	id := asked.id
	if id == "" {
		var err error
		if id, err = run.NewID(); err != nil {
			return nil, err
		}
	}
	u := asked.Unit
	r := run.New(id, asked.Request, asked.input, l.opts.Limits)
	r.OutDir, r.Keep = asked.outDir, asked.keep
	r.Grants, r.Handoffs = u.Policy.Grants, l.opts.Handoffs
	r.Record.Version, r.Record.RerunOf, r.Record.Metadata = u.Version, asked.rerunOf, maps.Clone(asked.metadata)
	if warning := asked.shortened(r.Limits.Timeout); warning != "" {
		r.Record.Warnings = append(r.Record.Warnings, warning)
	}
	j := l.lead(r, asked.observe)
	j.find, j.source, j.answer, j.taken = asked.find, asked.source, asked.answer, asked.taken
	j.private = l.privateOf(asked)
	j.private.Path, j.private.Deadline = r.Lineage.Path, r.Lineage.Deadline
	j.execution = asked.kind.Execution(r)
	return j, nil
}

// privateOf returns the settings that the operator and the unit have for a run.
func (l *loop) privateOf(asked accepted) private {
	policy, settings := asked.Unit.Policy, l.opts.Units[asked.Unit.Name]
	p := private{
		Timeout: asked.Timeout, Retries: l.opts.Retries, TraceParent: asked.trace,
		Concurrency: cmp.Or(settings.Concurrency, policy.Concurrency),
	}
	if settings.ReadWrite {
		p.Concurrency = 1
	}
	if l.durable {
		p.Retries = l.retries(asked.Unit)
	}
	if asked.once || isFlow(asked.Unit) {
		p.Retries = 0
	}
	return p
}

// lead makes the job of a run, which is new or recovered.
func (l *loop) lead(r *run.Run, observe func(run.Event)) *job {
	r.Dir, r.Durable = l.runPath(r.ID), l.durable
	j := &job{Run: r, loop: l, log: newLogFile(r.Dir), transcript: newTranscript(r.Dir), ended: make(chan struct{}), gone: make(chan struct{})}
	j.life, j.cancel = context.WithCancelCause(l.life)
	r.LedBy(j, observe)
	return j
}

// insert stores a run with its files. After an error the caller removes the files.
func (l *loop) insert(ctx context.Context, j *job, key store.Key) error {
	if err := os.MkdirAll(j.InputDir(), 0o755); err != nil {
		return run.StorageFault(err)
	}
	if err := placeInputs(j.InputDir(), j.Input.Files); err != nil {
		return err
	}
	if err := j.keepInputs(); err != nil {
		return err
	}
	row, err := j.row()
	if err != nil {
		return err
	}
	row.Metadata = j.Record.Metadata
	if row.Steps, err = j.takeSteps(); err != nil {
		return err
	}
	return l.journal.Insert(ctx, row, key, stored(run.Event{State: &j.Record.Transitions[0]})...)
}

// retire removes a finished or released job from the jobs of this process.
func (l *loop) retire(j *job) {
	l.unregister(j)
	j.news.notify()
}

// countEnd counts a run that has its outcome, and tells the run that called it.
func (l *loop) countEnd(j *job) {
	l.metrics.countEnd(j.Record)
	l.recent.ended(j.Record, time.Now())
	l.tellCaller(j)
}
