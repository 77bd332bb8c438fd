package orchestrator

import (
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
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/runtime"
)

// childRuns are the calls of one attempt. They are runs like all others, and outlive this
// process as their caller does.
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
		Budgets: u.Policy.Budgets, Recursion: u.Policy.Recursion, Kind: c.otherKind(u),
	}, nil
}

// otherKind is the kind of a unit that a capsule has to know: it is talked with, and takes no handoff.
func (l *loop) otherKind(u *unit.Unit) string {
	if _, err := l.sessionRules(u); err == nil {
		return string(u.Kind)
	}
	return ""
}

// Start implements handoff.Runs.
func (c *childRuns) Start(ctx context.Context, call handoff.Call) (id string, err error) {
	key := c.key(call)
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
	record, joined, err = c.accept(access.WithClient(ctx, c.job.Record.By), asked)
	if err == nil && !joined {
		c.job.append(newEvent(time.Now().UTC(), callOf(record)))
	}
	return record.ID, err
}

// Keys implements run.ChildRuns.
func (c *childRuns) Keys() []string {
	if len(c.job.Grants) == 0 || !c.durable {
		return nil
	}
	prefix := c.keyPrefix(c.job.Attempt)
	stored, err := c.store.Keys(c.life, prefix)
	if err != nil { // then a call that is asked for again counts twice
		c.logger.Warn("keys of calls not read", "run", c.job.ID, fault.LogAttr(err))
	}
	keys := make([]string, len(stored))
	for i, key := range stored {
		keys[i] = strings.TrimPrefix(key, prefix)
	}
	return keys
}

func (c *childRuns) keyPrefix(attempt int) string {
	return fmt.Sprintf("handoff/%s/%d/", c.job.ID, attempt)
}

// key keeps the caller's keys apart from those of others and of its other attempts.
func (c *childRuns) key(call handoff.Call) store.Key { return c.keyIn(c.job.Attempt, call) }

// keyIn is the key that the call has in one of the caller's attempts.
func (c *childRuns) keyIn(attempt int, call handoff.Call) store.Key {
	if call.Key == "" {
		return store.Key{}
	}
	sum := sha256.Sum256([]byte(call.Target.Name + "\n" + string(call.Args.JSON())))
	return store.Key{Value: c.keyPrefix(attempt) + call.Key, Fingerprint: hex.EncodeToString(sum[:])}
}

func (c *childRuns) prepare(
	ctx context.Context, u *unit.Unit, call handoff.Call, files *spool.Spool,
) (accepted, error) {
	placed, err := copyCallFiles(files.Dir(), call.Files)
	if err != nil {
		return accepted{}, err
	}
	lineage := c.job.Lineage.Child("", u, call.Deadline)
	asked := accepted{
		Request: run.Request{Unit: u}, find: c.job.find, observe: c.job.Observer(), source: c.job.models.Source(),
		answer: c.job.answer,
		trace:  c.job.traceParent, metadata: c.job.Record.Metadata, unattended: c.job.private.Unattended,
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
		c.slot.Await(ctx, func() {
			record, err = c.loop.Await(ctx, id)
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
	return resultOf(record, func(f api.File) string { return c.FilePath(id, f.Name) }), nil
}

// waitsFor reports whether a run that this one asked for is known to go on, and somebody
// waits for it: it needn't be looked up then.
func (c *childRuns) waitsFor(ctx context.Context, id string) bool {
	call := c.loop.job(id)
	return ctx.Err() == nil && call != nil && call.Lineage.Parent == c.job.ID && !pause.Over(call.ended)
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
	record, err := c.Get(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && record.Parent != c.job.ID {
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
		call := c.loop.job(id)
		if call == nil || call.Lineage.Parent != c.job.ID {
			return
		}
		var last *handoff.Progress
		for {
			news := call.news.After() // before the look, so that nothing comes between
			if said := call.said.Load(); said != last {
				if last = said; !yield(*said) {
					return
				}
			}
			select {
			case <-news:
			case <-call.ended:
				return
			case <-call.gone: // another process goes on with it
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// Mounts implements run.ChildRuns. The run lends its slot to others while it waits for a
// model, as it does while it waits for a call.
func (c *childRuns) Mounts() []handoff.Mount {
	return slices.Concat(c.job.models.Mounts(c.slot), c.job.upstreamMounts(),
		[]handoff.Mount{c.sessionMount(), c.job.egressMount()}, c.opts.Mounts)
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

// hasEnded reports whether the run has its outcome.
func (j *job) hasEnded() bool { return pause.Over(j.ended) }

// LastWords implements handoff.Runs.
func (c *childRuns) LastWords(ctx context.Context, id string) string {
	record, err := c.own(context.WithoutCancel(ctx), id)
	if err != nil {
		return ""
	}
	return c.loop.LastWords(record)
}
