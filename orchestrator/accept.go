package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/inputs"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/runlog"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/turns"
	"github.com/agent-on-demand/aod/orchestrator/units"
)

// admission is a request that may become a run.
type admission struct {
	run.Request
	input run.Input // set by ready
	kind  run.Kind  // likewise

	id         string // "" makes a new one
	key        store.Key
	trace      string
	rerunOf    string
	session    *turns.Session // whose next turn it is; nil: of none
	step       string         // of the flow that calls it
	metadata   map[string]string
	context    string
	message    *api.MessageEvent // with which it begins; nil: none
	units      run.Units         // for its calls
	unattended bool              // nobody answers its questions

	// Of a run that lives with its caller.
	outDir  string // where output files are delivered; "" keeps them in the run's directory
	keep    bool   // the attempt's directory is kept
	once    bool   // it is never tried again
	observe func(run.Event)
	caller  *job       // nil: none of this process
	taken   *takenOver // of an earlier run; nil: nothing
	rewound *rewound   // likewise, of an agent
	people  run.People // who answer its questions
}

// ready prepares a request and checks it against the unit's policy, its kind and its
// contract.
func (l *loop) ready(ctx context.Context, asked *admission) (err error) {
	if err := l.permits(asked.Unit); err != nil {
		return err
	}
	if err := l.refuseSelfWait(asked.Unit); err != nil {
		return err
	}
	if l.placer != nil {
		if err := l.placer.Admit(asked.Unit); err != nil {
			return err
		}
	}
	if err := checkStart(asked.Request); err != nil {
		return err
	}
	if asked.Project != nil {
		if _, err := inputs.ProjectRules(asked.Unit); err != nil {
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
	return l.switches.Check(u)
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
	if !l.conducts(u) || u.Policy.Recursion == 0 || l.rules.Of(u.Name).Concurrency == 0 {
		return nil
	}
	return fault.New(fault.Unsupported,
		"%q may call itself, and the operator bounds how many of its runs go on at once: one could wait for itself "+
			"for ever", u.Name).
		WithHint("leave out unit.%s.concurrency, or recursion in its agent.yaml", u.Name)
}

// accept gives the run a place in the queue, stores it and starts to lead it. It returns the
// record of the run. If an earlier run has the same key, it returns the record of that run.
func (l *loop) accept(ctx context.Context, asked admission) (record api.Record, joined bool, err error) {
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

// admit stores a run before its job starts. A turn of a session gets its number, and its place
// behind those before it. After an error nothing is left of the run.
func (l *loop) admit(ctx context.Context, asked admission) (j *job, err error) {
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
func (l *loop) admitRun(ctx context.Context, asked admission) (*job, error) {
	j, err := l.newJob(ctx, asked)
	if err != nil {
		return nil, err
	}
	owner := access.OwnerOf(ctx)
	j.Record.By, j.Record.Owner = owner.By, api.OwnerOf(owner.Team, owner.By)
	if err := l.checkMemory(j); err != nil {
		return nil, err
	}
	l.metrics.UnitMet(asked.Unit.Name)
	if err := l.enqueue(j); err != nil {
		l.metrics.RunRefused(asked.Unit.Name)
		return nil, err
	}
	l.warnOfWait(ctx, j)
	if err := l.jobs.admit(j, access.MostRuns(ctx)); err != nil {
		j.leaveSlot()
		return nil, err
	}
	j.eachPart(feature.Part.Open)
	if err = l.insert(ctx, j, asked); err == nil {
		return j, nil
	}
	j.leaveSlot()
	l.unregister(j)
	return nil, errors.Join(err, safefs.RemoveTree(j.Dir))
}

// newJob makes a job of an accepted request, with a complete record.
func (l *loop) newJob(ctx context.Context, asked admission) (*job, error) {
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
	if warning := asked.shortened(r.Limits.Timeout); warning != "" {
		r.Record.Warnings = append(r.Record.Warnings, warning)
	}
	r.First, r.Units = asked.message, units.CallsOf(asked.units, u)
	r.People, r.Unattended = asked.people, asked.unattended
	j := l.lead(ctx, r, asked.observe, asked.caller)
	j.terms, j.rewound = l.termsOf(asked), asked.rewound
	r.Record.TraceID = traceIDOf(asked.trace)
	r.Record.MaxRetries, r.Record.TimeoutMS = j.terms.Retries, r.Limits.Timeout.Milliseconds()
	j.turn = l.sessions.Attach(r, asked.session)
	j.execution = executionOf(l.placer, asked.kind, r)
	return j, nil
}

// termsOf returns what the operator and the unit have for a run.
func (l *loop) termsOf(asked admission) run.Terms {
	policy, settings := asked.Unit.Policy, l.rules.Of(asked.Unit.Name)
	t := run.Terms{
		Timeout: asked.Timeout, Retries: l.opts.Retries, Concurrency: cmp.Or(settings.Concurrency, policy.Concurrency),
		TraceParent: asked.trace,
	}
	if policy.ReadWrite {
		t.Concurrency = 1
	}
	if l.durable {
		t.Retries = l.rules.RetriesOf(asked.Unit)
	}
	_, _, silent := l.sessions.Conversation(asked.Unit)
	if asked.once || l.conducts(asked.Unit) || silent == nil { // what a program was told isn't told again
		t.Retries = 0
	}
	return t
}

// lead makes the job of a run, which is new or recovered, and has the features join it.
func (l *loop) lead(ctx context.Context, r *run.Run, observe func(run.Event), caller *job) *job {
	r.Dir, r.Durable = l.runPath(r.ID), l.durable
	j := &job{Run: r, loop: l, log: runlog.New(r.Dir), live: records.NewLive()}
	j.life, j.cancel = context.WithCancelCause(l.life)
	r.LedBy(j, observe)
	for i, f := range l.opts.Features {
		var above feature.Part
		if caller != nil {
			above = caller.parts[i]
		}
		j.parts = append(j.parts, f.Join(ctx, r, above))
	}
	return j
}

// insert stores a run with its files. After an error the caller removes the files.
func (l *loop) insert(ctx context.Context, j *job, asked admission) error {
	with, err := j.prepareParts(ctx)
	if err != nil {
		return err
	}
	if j.given, err = inputs.Place(ctx, j.Run, asked.Project, l.home.Runs); err != nil {
		return err
	}
	if err := j.inherit(); err != nil {
		return err
	}
	row, err := j.row()
	if err != nil {
		return err
	}
	row.Metadata, row.With = j.Record.Metadata, with
	if row.Steps, err = asked.taken.placeIn(j.Run); err != nil {
		return err
	}
	events := stored(run.Event{State: &j.Record.Transitions[0]})
	for _, part := range j.parts {
		for _, told := range part.Begin() {
			events = append(events, newEvent(j.Record.CreatedAt, told))
		}
	}
	if row.Parent == "" {
		ctx = store.Audit(ctx, j.audited("start", ""))
	}
	return l.journal.Runs.Insert(ctx, row, asked.key, events...)
}

// prepareParts returns what the features store with a new run.
func (j *job) prepareParts(ctx context.Context) (all []store.WithRun, err error) {
	for _, part := range j.parts {
		rows, err := part.Prepare(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// retire removes a finished or released job from the jobs of this process.
func (l *loop) retire(j *job) {
	l.unregister(j)
	j.live.News.Notify()
}

// countEnd counts a run that has its outcome, and tells the run that called it.
func (l *loop) countEnd(j *job) {
	l.metrics.RunEnded(j.Record)
	l.recent.Ended(j.Record, time.Now())
	l.tellCaller(j)
}

// shortened is a warning if a request asked for more time than there is, else "".
func (a admission) shortened(holds time.Duration) string {
	if a.Timeout <= holds {
		return ""
	}
	return fmt.Sprintf("the timeout of %s was shortened to %s (%s)",
		quantity.DurationText(a.Timeout), quantity.DurationText(holds), a.Unit.Policy.Bounds.Rule("timeout"))
}
