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
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/metrics"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/runlog"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/turns"
)

// accepted is a request that may become a run.
type accepted struct {
	run.Request
	input run.Input // set by ready
	kind  run.Kind  // likewise

	id         string // "" makes a new one
	key        store.Key
	trace      string
	rerunOf    string
	session    *turns.Session // whose next turn it is; nil: of none
	occurrence *occurrence    // of a schedule; nil: of none
	step       string         // of the flow that calls it
	metadata   map[string]string
	context    string
	message    *api.MessageEvent // with which it begins; nil: none
	find       finder
	unattended bool // nobody answers its questions
	pushes     []store.Push

	// Of a run that lives with its caller.
	outDir  string // where output files are delivered; "" keeps them in the run's directory
	keep    bool   // the attempt's directory is kept
	once    bool   // it is never tried again
	observe func(run.Event)
	source  models.Source
	taken   *takenOver                                              // of an earlier run; nil: nothing
	answer  func(context.Context, run.Question) (run.Answer, error) // nil: as the journal does
}

// ready prepares a request and checks it against the unit's policy, its kind and its
// contract.
func (l *loop) ready(ctx context.Context, asked *accepted) (err error) {
	if err := l.permits(asked.Unit); err != nil {
		return err
	}
	if err := l.refuseSelfWait(asked.Unit); err != nil {
		return err
	}
	if err := checkStart(asked.Request); err != nil {
		return err
	}
	if asked.Project != nil {
		if _, err := projectRules(asked.Unit); err != nil {
			return err
		}
	}
	if asked.kind, err = l.kinds.Of(asked.Unit); err != nil {
		return err
	}
	asked.input, err = asked.Prepare(ctx, asked.kind)
	return err
}

// permits refuses a unit that may not be run, or is switched off.
func (l *loop) permits(u *unit.Unit) error {
	if refusal := u.Policy.Refusal; refusal != nil {
		return refusal
	}
	return l.switches.check(u)
}

// checkStart refuses what a caller may not say of the start of a unit's program.
func checkStart(asked run.Request) error {
	c, ok := asked.Unit.Definition.(*capsule.Capsule)
	if !ok {
		c = &capsule.Capsule{Name: asked.Unit.Name}
	}
	return c.CheckStart(asked.Start)
}

// refuseSelfWait refuses a flow that may call itself while the operator bounds how many runs of
// it go on: a run could wait for its own caller to end, and that for it.
func (l *loop) refuseSelfWait(u *unit.Unit) error {
	if !l.conducts(u) || u.Policy.Recursion == 0 || l.opts.Units[u.Name].Concurrency == 0 {
		return nil
	}
	return fault.New(fault.Unsupported,
		"%q may call itself, and the operator bounds how many of its runs go on at once: one could wait for itself "+
			"for ever", u.Name).
		WithHint("leave out unit.%s.concurrency, or recursion in its agent.yaml", u.Name)
}

// accept gives the run a place in the queue, stores it and starts to lead it. It returns the
// record of the run. If an earlier run has the same key, it returns the record of that run.
func (l *loop) accept(ctx context.Context, asked accepted) (record api.Record, joined bool, err error) {
	j, err := l.admit(ctx, asked)
	if err == nil {
		record = j.Record
		j.joinSchedule()
		go j.drive()
		return record, false, nil
	}
	var taken *store.Taken
	if errors.As(err, &taken) {
		return l.joinTo(ctx, asked.key, *taken)
	}
	return api.Record{}, false, err
}

// admit stores a run before its job starts. A turn of a session gets its number, and its place
// behind those before it. After an error nothing is left of the run.
func (l *loop) admit(ctx context.Context, asked accepted) (j *job, err error) {
	if asked.session == nil {
		return l.admitRun(ctx, asked)
	}
	err = asked.session.Admit(func() (id string, at time.Time, err error) {
		if j, err = l.admitRun(ctx, asked); err != nil {
			return "", time.Time{}, err
		}
		return j.ID, j.Record.CreatedAt, nil
	})
	return j, err
}

// admitRun is admit for a run whose turn it is, or that has none.
func (l *loop) admitRun(ctx context.Context, asked accepted) (*job, error) {
	j, err := l.newJob(asked)
	if err != nil {
		return nil, err
	}
	j.Record.By = access.ClientOf(ctx)
	if err := l.checkMemory(j); err != nil {
		return nil, err
	}
	l.metrics.UnitMet(asked.Unit.Name)
	if err := l.enqueue(j); err != nil {
		l.metrics.RunRefused(asked.Unit.Name)
		return nil, err
	}
	l.warnOfWait(j)
	if err := l.register(j); err != nil {
		j.leaveSlot()
		return nil, err
	}
	j.models.Open()
	if err = l.insert(ctx, j, asked.key); err == nil {
		return j, nil
	}
	j.leaveSlot()
	l.unregister(j)
	return nil, errors.Join(err, safefs.RemoveTree(j.Dir))
}

// enqueue gives a new run a place in the queue. A turn of a session gets one when the turns
// before it are over.
func (l *loop) enqueue(j *job) (err error) {
	bound := l.queueBound(j.Unit)
	if j.session != nil {
		return l.queue.Takes(l.place(j), bound)
	}
	j.permit, err = l.queue.Enter(l.place(j), bound)
	return err
}

// queueBound returns how many runs of a unit may wait. A command's own runs all get their turn.
func (l *loop) queueBound(u *unit.Unit) int {
	if !l.durable {
		return l.opts.Queue
	}
	return cmp.Or(l.opts.Units[u.Name].Queue, u.Policy.Queue, l.opts.Queue)
}

// queueWait returns how long a run of a unit may wait.
func (l *loop) queueWait(u *unit.Unit) time.Duration {
	if !l.durable {
		return l.opts.QueueWait
	}
	return cmp.Or(l.opts.Units[u.Name].QueueWait, u.Policy.QueueWait, l.opts.QueueWait)
}

// warnOfWait warns in the record of a new run that its turn will probably come too late.
func (l *loop) warnOfWait(j *job) {
	name := j.Record.Unit
	ahead, most := metrics.Ahead{Runs: l.queue.Waiting(name), Lanes: l.queue.Lanes(name)}, l.queueWait(j.Unit)
	wait, passed := l.recent.ExpectedWait(name, ahead, most, time.Now())
	if passed {
		l.logger.Warn("runs will wait longer than queue_wait", "unit", name, "waiting", ahead.Runs, "expected_ms",
			wait.Milliseconds())
	}
	if wait > most {
		j.Record.Warnings = append(j.Record.Warnings, fmt.Sprintf(
			"%d runs of this unit wait for their turn: by how long such runs took lately that of this one comes in "+
				"about %v, and queue_wait ends it after %v",
			ahead.Runs, wait.Round(time.Second), most))
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
	r.Lineage.Path[len(r.Lineage.Path)-1].Flow = l.conducts(u)
	r.Grants, r.Handoffs = u.Policy.Grants, l.opts.Handoffs
	r.Record.Version, r.Record.RerunOf, r.Record.Metadata = u.Version, asked.rerunOf, maps.Clone(asked.metadata)
	r.Record.Step, r.Record.Context = asked.step, asked.context
	if asked.occurrence != nil {
		r.Record.Schedule = &api.ScheduleRef{Name: asked.occurrence.name, Planned: asked.occurrence.Planned}
	}
	if warning := asked.shortened(r.Limits.Timeout); warning != "" {
		r.Record.Warnings = append(r.Record.Warnings, warning)
	}
	j := l.lead(r, asked.observe, asked.source)
	j.find, j.answer, j.taken = asked.find, asked.answer, asked.taken
	j.project, j.occurrence, j.pushes = asked.Project, asked.occurrence, asked.pushes
	j.heard.begin(r, asked.message)
	j.shown.begin()
	j.private = l.privateOf(asked)
	r.Record.MaxRetries, r.Record.TimeoutMS = j.private.Retries, r.Limits.Timeout.Milliseconds()
	j.private.Path, j.private.Deadline = r.Lineage.Path, r.Lineage.Deadline
	l.seat(j, asked)
	j.execution = asked.kind.Execution(r)
	return j, nil
}

// privateOf returns the settings that the operator and the unit have for a run.
func (l *loop) privateOf(asked accepted) private {
	policy, settings := asked.Unit.Policy, l.opts.Units[asked.Unit.Name]
	p := private{
		Timeout: asked.Timeout, Retries: l.opts.Retries, TraceParent: asked.trace, Unattended: asked.unattended,
		Masking: policy.Masking, Start: asked.Start,
		Concurrency: cmp.Or(settings.Concurrency, policy.Concurrency),
	}
	if policy.ReadWrite {
		p.Concurrency = 1
	}
	if l.durable {
		p.Retries = l.retries(asked.Unit)
	}
	_, _, silent := l.conversation(asked.Unit)
	if asked.once || l.conducts(asked.Unit) || silent == nil { // what a program was told isn't told again
		p.Retries = 0
	}
	return p
}

// lead makes the job of a run, which is new or recovered.
func (l *loop) lead(r *run.Run, observe func(run.Event), source models.Source) *job {
	r.Dir, r.Durable = l.runPath(r.ID), l.durable
	j := &job{Run: r, loop: l, log: runlog.New(r.Dir), ended: make(chan struct{}), gone: make(chan struct{})}
	j.life, j.cancel = context.WithCancelCause(l.life)
	j.models = models.New(models.Options{
		Run: r, Models: l.opts.Models, Source: source, Ledger: l.ledger, Cache: &l.modelCache, Journal: l.journal,
		Logger: l.logger, Asked: l.metrics.ModelAsked, Span: j.spanOfRequest,
	})
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
	if err := errors.Join(j.keepInputs(), j.keepTrueInput()); err != nil {
		return err
	}
	if err := j.placeProject(ctx); err != nil {
		return err
	}
	row, err := j.row()
	if err != nil {
		return err
	}
	row.Metadata = j.Record.Metadata
	row.Occurrence, row.Pushes = j.occurrence.startedAs(j.ID), j.pushes
	if row.Steps, err = j.takeSteps(); err != nil {
		return err
	}
	events := append(stored(run.Event{State: &j.Record.Transitions[0]}), j.heard.first...)
	j.heard.first = nil
	return l.journal.Insert(ctx, row, key, events...)
}

// retire removes a finished or released job from the jobs of this process.
func (l *loop) retire(j *job) {
	l.unregister(j)
	j.news.Notify()
}

// countEnd counts a run that has its outcome, and tells the run that called it.
func (l *loop) countEnd(j *job) {
	l.metrics.RunEnded(j.Record)
	l.recent.Ended(j.Record, time.Now())
	l.tellCaller(j)
}
