package orchestrator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/runtime"
)

// attachedCalls are the calls of a run that lives with its caller: they live with it.
type attachedCalls struct {
	o    *Orchestrator
	run  *Run
	dir  string // for their files
	life context.Context
	stop context.CancelCauseFunc
	slot *queue.Yield // the caller's

	mu    sync.Mutex
	all   map[string]*attachedCall
	byKey map[string]string
	over  bool
}

type attachedCall struct {
	run    *Run
	cancel context.CancelCauseFunc
	asked  string // what for, to tell a repeat from another call with the same key
}

func (o *Orchestrator) attachedCalls(ctx context.Context, run *Run, layout runtime.Layout) *attachedCalls {
	c := &attachedCalls{o: o, run: run, dir: filepath.Join(layout.Dir, "calls"), slot: queue.NewYield(run.slot), all: map[string]*attachedCall{}, byKey: map[string]string{}}
	c.life, c.stop = context.WithCancelCause(ctx)
	return c
}

// Unit implements handoff.Runs.
func (c *attachedCalls) Unit(_ context.Context, name string) (*handoff.Unit, error) {
	found, err := c.run.req.callee(name)
	if err != nil {
		return nil, err
	}
	return unitOf(found)
}

func unitOf(c *capsule.Capsule) (*handoff.Unit, error) {
	schema, err := c.Schema()
	if err != nil {
		return nil, err
	}
	return &handoff.Unit{
		Name: c.Name, Description: c.Description, Contract: c.Contract, Schema: schema,
		Budgets: c.Agent.Budgets, Recursion: c.Agent.Recursion,
	}, nil
}

// Start implements handoff.Runs.
func (c *attachedCalls) Start(_ context.Context, call handoff.Call) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := call.Target.Name + " " + string(call.Args.JSON())
	if id, again := c.byKey[call.Key]; again && call.Key != "" {
		if c.all[id].asked != asked {
			return "", otherCall()
		}
		return id, nil
	}
	if c.over {
		return "", errCallerEnded
	}
	id, err := newRunID("")
	if err != nil {
		return "", err
	}
	req, err := c.request(id, call)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(c.life)
	run, err := c.o.Submit(ctx, req)
	if err != nil {
		cancel(nil)
		return "", err
	}
	c.all[id] = &attachedCall{run: run, cancel: cancel, asked: asked}
	c.byKey[call.Key] = id
	return id, nil
}

func otherCall() error {
	return fault.New(fault.Input, "the idempotency key belongs to another call").
		WithHint("use a new key for each thing that is asked for")
}

// request makes a request of a call; its files are copied where the caller doesn't reach.
func (c *attachedCalls) request(id string, call handoff.Call) (Request, error) {
	found, err := c.run.req.callee(call.Target.Name)
	if err != nil {
		return Request{}, err
	}
	dir := filepath.Join(c.dir, id)
	files, err := copyCallFiles(filepath.Join(dir, "in"), call.Files)
	if err != nil {
		return Request{}, err
	}
	family := c.run.family.child(id, found, call.Deadline)
	return Request{
		ID: id, Capsule: found, Input: call.Args, placed: files, family: &family,
		Timeout: call.Timeout, OutDir: filepath.Join(dir, "out"), Observe: c.run.req.Observe, Find: c.run.req.Find,
	}, nil
}

// copyCallFiles copies opened files of the caller's to a directory of ours.
func copyCallFiles(dir string, files []handoff.File) ([]placedFile, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, noRoom(err)
	}
	placed := make([]placedFile, 0, len(files))
	for i, f := range files {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := copyOpened(path, f); err != nil {
			return nil, noRoom(err)
		}
		placed = append(placed, placedFile{source: path, name: f.Name})
	}
	return placed, nil
}

func copyOpened(path string, f handoff.File) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	_, err = f.CopyTo(out)
	return err
}

// Await implements handoff.Runs.
func (c *attachedCalls) Await(ctx context.Context, id string) (handoff.Result, error) {
	call, err := c.call(id)
	if err != nil {
		return handoff.Result{}, err
	}
	if !call.run.hasEnded() {
		c.slot.Await(ctx, func() {
			select {
			case <-call.run.done:
			case <-ctx.Done():
			}
		})
	}
	if !call.run.hasEnded() || !c.slot.Regain(ctx) {
		return goesOn(id), nil
	}
	return resultOf(call.run.record, func(f api.File) string { return f.Path }), nil
}

func (c *attachedCalls) call(id string) (*attachedCall, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.all[id]; call != nil {
		return call, nil
	}
	return nil, noSuchCall()
}

func noSuchCall() error {
	return fault.New(fault.NotFound, "this run has made no such handoff").WithHint("the answer to POST /handoff has its id")
}

// Cancel implements handoff.Runs.
func (c *attachedCalls) Cancel(_ context.Context, id, reason string) error {
	call, err := c.call(id)
	if err != nil {
		return err
	}
	if call.run.hasEnded() {
		return fault.New(fault.Conflict, "the run has ended: it is %s", call.run.record.State)
	}
	call.cancel(wishOf(reason))
	return nil
}

// Progress implements handoff.Runs.
func (c *attachedCalls) Progress(p handoff.Progress) { c.run.tell(Event{Progress: &p}) }

// keys implements callee: there is no earlier process.
func (c *attachedCalls) keys() []string { return nil }

// cancel implements callee.
func (c *attachedCalls) cancel(cause error) { c.stop(cause) }

// end implements callee.
func (c *attachedCalls) end(cause error) {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.stop(cause)
	for _, call := range c.all {
		<-call.run.done
		c.run.record.Calls = append(c.run.record.Calls, callOf(call.run.record))
	}
	sortCalls(c.run.record.Calls)
}

// resultOf tells a caller how its callee ended.
func resultOf(r api.Record, path func(api.File) string) handoff.Result {
	result := handoff.Result{ID: r.ID, Ended: r.Outcome != "", State: string(r.State), Success: r.Outcome == api.Success, Output: r.Output}
	for _, f := range r.Files {
		out := handoff.Output{Name: f.Name, Path: path(f), SizeBytes: f.SizeBytes, SHA256: f.SHA256}
		if f.Pointer != nil {
			out.Field = fieldOf(*f.Pointer)
		}
		result.Files = append(result.Files, out)
	}
	if e := r.Error; e != nil {
		result.Error = &handoff.Failure{
			Category: string(e.Category), Kind: e.Kind, Type: e.Type, Message: e.Message, Hint: e.Hint, Findings: e.Findings,
		}
	}
	return result
}
