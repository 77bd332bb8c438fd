package orchestrator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/runtime"
)

// childRuns are the calls of one attempt. They are runs like all others, and outlive this
// process as their caller does.
//
// A call is a run below its caller: childRuns.End ends it with the caller, a retried request joins it by its key, and
// childRuns.Recall finds what it gave in an earlier attempt. outputs.Mask renames output files before the end is
// stored, outputs.RestoreTrueNames takes that back in a later process.
type childRuns struct {
	*loop
	job  *job
	slot *queue.Yield // the caller's
}

func newChildRuns(j *job) *childRuns {
	return &childRuns{loop: j.loop, job: j, slot: queue.NewYield(j.permit)}
}

// Unit implements handoff.Runs.
func (c *childRuns) Unit(ctx context.Context, name string) (*handoff.Unit, error) {
	u, err := c.job.callee(ctx, name)
	if err != nil {
		return nil, err
	}
	schema, err := u.Schema()
	if err != nil {
		return nil, err
	}
	return &handoff.Unit{
		Name: u.Name, Description: u.Description, Contract: u.Contract, Schema: schema,
		Budgets: u.Policy.Budgets, Recursion: u.Policy.Recursion, Kind: otherKind(c.kinds, u),
	}, nil
}

// in returns a context of what is done for the run: it belongs to whom the run belongs.
func (c *childRuns) in(ctx context.Context) context.Context {
	return access.WithOwner(ctx, c.job.owner())
}

// owner is to whom a run belongs, and so what it asks for.
func (j *job) owner() access.Owner {
	return access.Owner{Team: api.TeamOf(j.Record.Owner), By: j.Record.By}
}

// audited is what somebody did with the run.
func (j *job) audited(verb, detail string) store.Audited {
	return store.Audited{Team: j.owner().Team, Verb: verb, Noun: "run", Object: j.ID, Detail: detail}
}

// callee returns the unit of a name that the run calls.
func (j *job) callee(ctx context.Context, name string) (*unit.Unit, error) {
	if pinner, pins := j.execution.(run.Pinner); pins {
		return pinner.Callee(ctx, name)
	}
	return j.Units.Get(ctx, name)
}

// otherKind is the kind of a unit that a capsule has to know: it is talked with, and takes no handoff.
func otherKind(kinds run.Kinds, u *unit.Unit) string {
	kind, err := kinds.Of(u)
	if talker, ok := kind.(run.Talker); err == nil && ok && talker.Talks(u) {
		return string(u.Kind)
	}
	return ""
}

// Start implements handoff.Runs.
func (c *childRuns) Start(ctx context.Context, call handoff.Call) (id string, err error) {
	ctx, key := c.in(ctx), c.key(call)
	record, joined, err := c.join(ctx, key)
	if err != nil || joined {
		return record.ID, err
	}
	if err := c.room(handedOver(call.Files)); err != nil {
		return "", err
	}
	u, err := c.job.callee(ctx, call.Target.Name)
	if err != nil {
		return "", err
	}
	files, err := c.NewSpool()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, files.Remove()) }()
	asked, err := c.prepare(ctx, u, call, files)
	if err != nil {
		return "", err
	}
	asked.key = key
	record, joined, err = c.accept(ctx, asked)
	if err == nil && !joined {
		c.job.append(newEvent(time.Now().UTC(), records.CallOf(record)))
	}
	return record.ID, err
}

// Keys implements run.ChildRuns.
func (c *childRuns) Keys() []string {
	if len(c.job.Grants) == 0 || !c.durable {
		return nil
	}
	prefix := keyPrefix(c.job.ID, c.job.Attempt)
	stored, err := c.store.Keys.List(c.life, prefix)
	if err != nil { // then a call that is asked for again counts twice
		c.logger.Warn("keys of calls not read", "run", c.job.ID, fault.LogAttr(err))
	}
	keys := make([]string, len(stored))
	for i, key := range stored {
		keys[i] = strings.TrimPrefix(key, prefix)
	}
	return keys
}

func keyPrefix(caller string, attempt int) string {
	return fmt.Sprintf("handoff/%s/%d/", caller, attempt)
}

// key keeps the caller's keys apart from those of others and of its other attempts.
func (c *childRuns) key(call handoff.Call) store.Key { return keyIn(c.job.ID, c.job.Attempt, call) }

// keyIn is the key that the call has in an attempt of its caller.
func keyIn(caller string, attempt int, call handoff.Call) store.Key {
	if call.Key == "" {
		return store.Key{}
	}
	sum := sha256.Sum256([]byte(call.Target.Name + "\n" + string(call.Args.JSON())))
	return store.Key{Value: keyPrefix(caller, attempt) + call.Key, Fingerprint: hex.EncodeToString(sum[:])}
}

func (c *childRuns) prepare(
	ctx context.Context, u *unit.Unit, call handoff.Call, files *spool.Spool,
) (admission, error) {
	placed, err := copyCallFiles(files.Dir(), call.Files)
	if err != nil {
		return admission{}, err
	}
	lineage := c.job.Lineage.Child("", u, call.Deadline)
	asked := admission{
		Request: run.Request{Unit: u}, units: c.job.Units, observe: c.job.Observer(), caller: c.job,
		people: c.job.People,
		trace:  c.job.traceParent, metadata: c.job.Record.Metadata, unattended: c.job.Unattended,
	}
	asked.Input, asked.Placed, asked.Lineage, asked.Timeout = call.Args, placed, &lineage, call.Timeout
	asked.step, asked.Extra, asked.once = call.Step, call.Extra, call.Extra != nil
	return asked, c.ready(ctx, &asked)
}

// handedOver returns how many bytes a call hands over.
func handedOver(files []handoff.File) (bytes int64) {
	for _, f := range files {
		bytes += f.Size
	}
	return bytes
}

// copyCallFiles copies opened files of the caller's to a directory of ours.
func copyCallFiles(dir string, files []handoff.File) ([]run.PlacedFile, error) {
	placed := make([]run.PlacedFile, 0, len(files))
	for i, f := range files {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := copyOpened(path, f); err != nil {
			return nil, run.StorageFault(err)
		}
		placed = append(placed, run.PlacedFile{Source: path, Name: f.Name, Ours: true})
	}
	return placed, nil
}

func copyOpened(path string, f handoff.File) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = f.CopyTo(out)
	return err
}

// Await implements handoff.Runs.
func (c *childRuns) Await(ctx context.Context, id string) (handoff.Result, error) {
	var record api.Record
	var err error
	if !c.waitsFor(ctx, id) {
		record, err = c.own(context.WithoutCancel(ctx), id) // who doesn't wait gets an answer, too
	}
	if err == nil && record.Outcome == "" {
		c.slot.Await(ctx, func() { // it is known to be the run's call
			record, err = c.runs.Await(access.WithServer(ctx), id)
			if err == nil && record.Outcome == "" { // this process has let go of the callee, and will of its caller
				<-ctx.Done()
			}
		})
	}
	if err != nil {
		return handoff.Result{}, err
	}
	if record.Outcome != "" && !c.slot.Regain(ctx) {
		return stillRunning(id), nil
	}
	return resultOf(record, func(f api.File) string { return c.runs.FilePath(id, f.Name) }), nil
}

// waitsFor reports whether a run that this one asked for is known to go on, and somebody
// waits for it: it needn't be looked up then.
func (c *childRuns) waitsFor(ctx context.Context, id string) bool {
	call := c.jobs.get(id)
	return ctx.Err() == nil && call != nil && call.Lineage.Parent == c.job.ID && !call.live.Outcome.IsSet()
}

func noSuchCall() error {
	return fault.New(fault.NotFound, "this run has made no such handoff").
		WithHint("the answer to POST /handoff has its id")
}

// stillRunning is the answer to a caller that has to ask again.
func stillRunning(id string) handoff.Result {
	return handoff.Result{ID: id, State: string(api.Running)}
}

// own returns a run that this one asked for.
func (c *childRuns) own(ctx context.Context, id string) (api.Record, error) {
	record, err := c.runs.Get(c.in(ctx), id)
	if fault.Is(err, fault.NotFound) || err == nil && record.Parent != c.job.ID && !c.isInherited(ctx, record) {
		return api.Record{}, noSuchCall()
	}
	return record, err
}

// Cancel implements handoff.Runs.
func (c *childRuns) Cancel(ctx context.Context, id, reason string) error {
	if _, err := c.own(ctx, id); err != nil {
		return err
	}
	_, err := c.loop.Cancel(ctx, id, reason)
	return err
}

// Progress implements handoff.Runs.
func (c *childRuns) Progress(p handoff.Progress) { c.job.Tell(run.Event{Progress: &p}) }

// Told implements handoff.Runs.
func (c *childRuns) Told(ctx context.Context, id string) iter.Seq[handoff.Progress] {
	return func(yield func(handoff.Progress) bool) {
		call := c.jobs.get(id)
		if call == nil || call.Lineage.Parent != c.job.ID {
			return
		}
		var last *handoff.Progress
		for {
			news := call.live.News.After() // before the look, so that nothing comes between
			if said := call.said.Load(); said != last {
				if last = said; !yield(*said) {
					return
				}
			}
			select {
			case <-news:
			case <-call.live.Outcome.Done():
				return
			case <-call.live.Gone: // another process goes on with it
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// Mounts implements run.ChildRuns.
func (c *childRuns) Mounts() []capsuleapi.Mount {
	mounts := slices.Clone(c.opts.Mounts)
	for _, part := range c.job.parts {
		mounts = append(mounts, part.Mounts(slot{c.slot, c.job.life})...)
	}
	return mounts
}

// slot implements feature.Slot.
type slot struct {
	yield *queue.Yield
	life  context.Context //nolint:containedctx // of the run in this process
}

// Await implements feature.Slot.
func (s slot) Await(ctx context.Context, wait func()) { s.yield.Await(ctx, wait) }

// Regain implements feature.Slot.
func (s slot) Regain(ctx context.Context) bool { return s.yield.Regain(ctx) }

// Lend implements feature.Slot.
func (s slot) Lend(wait func()) {
	s.yield.Await(s.life, wait)
	s.yield.Regain(s.life)
}

// Lend implements run.ChildRuns. The run doesn't get its slot back: it has little left to do.
func (c *childRuns) Lend(ctx context.Context, wait func()) { c.slot.Await(ctx, wait) }

// CancelAll implements run.ChildRuns.
func (c *childRuns) CancelAll(cause error) {
	if !errors.Is(cause, runtime.ErrDetach) {
		c.cancelCalls(c.job.ID, cause)
	}
}

// End implements run.ChildRuns.
func (c *childRuns) End(cause error) {
	if !errors.Is(cause, runtime.ErrDetach) {
		c.endCalls(c.job.ID, cause)
	}
}

// resultOf tells a caller how its callee ended.
func resultOf(r api.Record, path func(api.File) string) handoff.Result {
	result := handoff.Result{
		ID: r.ID, Ended: r.Outcome != "", State: string(r.State),
		Success: r.Outcome == api.Success, Output: r.Output, ExitCode: r.ExitCode,
	}
	if r.Flow != nil {
		result.Action = r.Flow.Action
	}
	for _, f := range r.Files {
		out := handoff.Output{Name: f.Name, Path: path(f), SizeBytes: f.SizeBytes, SHA256: f.SHA256}
		if f.Pointer != nil {
			out.Field = run.FieldOf(*f.Pointer)
		}
		result.Files = append(result.Files, out)
	}
	if e := r.Error; e != nil {
		result.Error = &handoff.Failure{
			Category: string(e.Category), Kind: e.Kind, Type: e.Type, Message: e.Message, Hint: e.Hint,
			Findings: e.Findings,
		}
	}
	return result
}

// LastWords implements handoff.Runs.
func (c *childRuns) LastWords(ctx context.Context, id string) string {
	record, err := c.own(context.WithoutCancel(ctx), id)
	if err != nil {
		return ""
	}
	return c.runs.LastWords(record)
}

// Ask implements handoff.Runs. The run lends its slot to others while it waits. A program that
// has gone away, or whose attempt has ended, leaves its question open for the next request.
func (c *childRuns) Ask(ctx context.Context, q handoff.Question) (handoff.Answer, error) {
	asked, err := questionFor(q)
	if err != nil {
		return handoff.Answer{}, err
	}
	asking, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	defer context.AfterFunc(ctx, func() { leave(runtime.ErrDetach) })()
	var answer run.Answer
	c.slot.Await(ctx, func() { answer, err = c.job.Ask(asking, asked) })
	var denied *run.Denied
	switch {
	case errors.Is(err, runtime.ErrDetach) || ctx.Err() != nil || !c.slot.Regain(ctx):
		return handoff.Answer{}, fault.New(fault.Unavailable, "the server ends before there is an answer").
			WithHint("the question stays open; ask again with the same Idempotency-Key")
	case errors.As(err, &denied):
		return handoff.Answer{Denied: denied.Reason}, nil
	}
	return handoff.Answer{Option: answer.Action, Filled: answer.Form, By: answer.By, Note: answer.Note}, err
}

// questionFor returns the run's question for one of its program. Under a key it is the same
// question in each attempt.
func questionFor(q handoff.Question) (asked run.Question, err error) {
	id, err := run.NewID()
	return run.Question{
		Address: cmp.Or(q.Key, id), Kind: q.Kind, Text: q.Text, Form: q.Schema, Answers: q.Options,
		Until: q.Until,
	}, err
}

// Recall implements handoff.Runs. Of several attempts the latest counts.
func (c *childRuns) Recall(ctx context.Context, call handoff.Call) (id string, err error) {
	for attempt := c.job.Attempt - 1; attempt > 0 && call.Key != ""; attempt-- {
		id, err = c.recallFrom(ctx, c.job.ID, attempt, call, time.Time{})
		if err != nil || id != "" {
			return id, err
		}
	}
	return c.recallInherited(ctx, call)
}

// recallFrom is Recall for one attempt of a run, and what it called before a time; zero: whenever. A call that didn't
// succeed there binds nobody: it is made again, with whatever arguments.
func (c *childRuns) recallFrom(
	ctx context.Context, caller string, attempt int, call handoff.Call, before time.Time,
) (string, error) {
	key := keyIn(caller, attempt, call)
	id, fingerprint, err := c.journal.Keys.Get(ctx, key.Value)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	record, err := c.runs.Get(c.in(ctx), id)
	late := !before.IsZero() && !record.CreatedAt.Before(before)
	if fault.Is(err, fault.NotFound) || err == nil && (record.Outcome != api.Success || late) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if fingerprint != key.Fingerprint {
		return "", &handoff.Refusal{Rule: handoff.RuleRecall, Fault: fault.New(fault.Input,
			"the flow took another way: in attempt %d this call had another target or other arguments", attempt).
			WithHint("a flow that is to go on after its container's death has to ask for the same again: no clock, " +
				"no chance and no order of threads in its arguments")}
	}
	return id, nil
}
