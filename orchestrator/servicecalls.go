package orchestrator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/store"
	"github.com/agent-on-demand/aod/unit"
)

// serviceCalls are the calls of one attempt of a Service's run. They are runs like all
// others, and outlive this process as their caller does.
type serviceCalls struct {
	service *Service
	job     *job
	slot    *queue.Yield // the caller's
}

func (s *Service) newCalls(_ context.Context, run *Run, _ runtime.Layout) callee {
	j := s.job(run.id)
	return &serviceCalls{service: s, job: j, slot: queue.NewYield(j.ticket)}
}

// Unit implements handoff.Runs.
func (c *serviceCalls) Unit(ctx context.Context, name string) (*handoff.Unit, error) {
	u, err := c.service.units.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return unitOf(u.Capsule)
}

// Start implements handoff.Runs.
func (c *serviceCalls) Start(ctx context.Context, call handoff.Call) (id string, err error) {
	s := c.service
	key := c.key(call)
	record, joined, err := s.join(ctx, key)
	if err != nil || joined {
		return record.ID, err
	}
	u, err := s.units.Get(ctx, call.Target.Name)
	if err != nil {
		return "", err
	}
	spool, err := s.NewSpool()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, spool.Remove()) }()
	req, ready, err := c.prepare(u, call, spool)
	if err != nil {
		return "", err
	}
	record, joined, err = s.accept(ctx, u, req, ready, key, accepted{
		trace: c.job.private.TraceParent, metadata: c.job.record.Metadata,
	})
	if err == nil && !joined {
		c.job.append(newEvent(time.Now().UTC(), callOf(record)))
	}
	return record.ID, err
}

// keys implements callee.
func (c *serviceCalls) keys() []string {
	if len(c.service.exec.grants(c.job.req.Capsule)) == 0 {
		return nil
	}
	prefix := c.keyPrefix()
	stored, err := c.service.store.Keys(c.service.life, prefix)
	if err != nil { // then a call that is asked for again counts twice
		c.service.logger.Warn("keys of calls not read", "run", c.job.id, about(err))
	}
	keys := make([]string, len(stored))
	for i, key := range stored {
		keys[i] = strings.TrimPrefix(key, prefix)
	}
	return keys
}

func (c *serviceCalls) keyPrefix() string {
	return fmt.Sprintf("handoff/%s/%d/", c.job.id, c.job.attempt)
}

// key keeps the caller's keys apart from those of others and of its other attempts.
func (c *serviceCalls) key(call handoff.Call) store.Key {
	if call.Key == "" {
		return store.Key{}
	}
	sum := sha256.Sum256([]byte(call.Target.Name + "\n" + string(call.Args.JSON())))
	return store.Key{Value: c.keyPrefix() + call.Key, Fingerprint: hex.EncodeToString(sum[:])}
}

func (c *serviceCalls) prepare(u *unit.Unit, call handoff.Call, spool *Spool) (Request, prepared, error) {
	files, err := copyCallFiles(spool.dir, call.Files)
	if err != nil {
		return Request{}, prepared{}, err
	}
	family := c.job.family.child("", u.Capsule, call.Deadline)
	req := c.service.request(u)
	req.Input, req.placed, req.family, req.Timeout = call.Args, files, &family, cmp.Or(call.Timeout, req.Timeout)
	ready, err := req.prepare()
	return req, ready, err
}

// Await implements handoff.Runs.
func (c *serviceCalls) Await(ctx context.Context, id string) (handoff.Result, error) {
	var record api.Record
	var err error
	if !c.waitsFor(ctx, id) {
		record, err = c.own(context.WithoutCancel(ctx), id) // who doesn't wait gets an answer, too
	}
	if err == nil && record.Outcome == "" {
		c.slot.Await(ctx, func() {
			record, err = c.service.Await(ctx, id)
			if err == nil && record.Outcome == "" { // this process has let go of the callee, and will of its caller
				<-ctx.Done()
			}
		})
	}
	if err != nil {
		return handoff.Result{}, err
	}
	if record.Outcome != "" && !c.slot.Regain(ctx) {
		return goesOn(id), nil
	}
	return resultOf(record, func(f api.File) string { return c.service.FilePath(id, f.Name) }), nil
}

// waitsFor reports whether a run that this one asked for is known to go on, and somebody
// waits for it: it needn't be looked up then.
func (c *serviceCalls) waitsFor(ctx context.Context, id string) bool {
	call := c.service.job(id)
	return ctx.Err() == nil && call != nil && call.family.parent == c.job.id && !closed(call.ended)
}

// goesOn is what a caller hears that has to ask again.
func goesOn(id string) handoff.Result { return handoff.Result{ID: id, State: string(api.Running)} }

// own returns a run that this one asked for.
func (c *serviceCalls) own(ctx context.Context, id string) (api.Record, error) {
	record, err := c.service.Get(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && record.Parent != c.job.id {
		return api.Record{}, noSuchCall()
	}
	return record, err
}

// Cancel implements handoff.Runs.
func (c *serviceCalls) Cancel(ctx context.Context, id, reason string) error {
	if _, err := c.own(ctx, id); err != nil {
		return err
	}
	_, err := c.service.Cancel(ctx, id, reason)
	return err
}

// Progress implements handoff.Runs.
func (c *serviceCalls) Progress(p handoff.Progress) { c.job.tell(Event{Progress: &p}) }

// cancel implements callee.
func (c *serviceCalls) cancel(cause error) {
	if !errors.Is(cause, runtime.ErrDetach) {
		c.service.cancelCalls(c.job.id, cause)
	}
}

// end implements callee.
func (c *serviceCalls) end(cause error) {
	if !errors.Is(cause, runtime.ErrDetach) {
		c.service.endCalls(c.job.id, cause)
	}
}

// cancelCalls asks for the end of all that a run has called, and returns what that is.
func (s *Service) cancelCalls(caller string, cause error) []*job {
	calls := s.childrenOf(caller)
	for _, call := range calls {
		call.cancel(cause)
	}
	return calls
}

// endCalls returns when all that a run has called has its outcome, or is left to the next
// process.
func (s *Service) endCalls(caller string, cause error) {
	for _, call := range s.cancelCalls(caller, cause) {
		select {
		case <-call.ended:
		case <-call.gone:
		}
	}
}

// callsEnd says why the calls of an attempt end that ended with err.
func callsEnd(err error) error {
	if errors.Is(err, runtime.ErrDetach) {
		return err
	}
	return errCallerEnded
}

// childrenOf returns the runs that go on and were asked for by another one.
func (s *Service) childrenOf(id string) []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	var children []*job
	for _, j := range s.live {
		if j.family.parent == id {
			children = append(children, j)
		}
	}
	return children
}

// callsOf lists the runs that a run asked for, as its record shows them.
func (s *Service) callsOf(ctx context.Context, id string) ([]api.Call, error) {
	const most = 1000
	page, err := s.store.Runs(ctx, store.Filter{Parent: id, Limit: most})
	if err != nil {
		return nil, err
	}
	var calls []api.Call
	for _, row := range page.Runs {
		record, err := recordOf(row)
		if err != nil {
			return nil, err
		}
		calls = append(calls, callOf(record))
	}
	sortCalls(calls)
	return calls, nil
}

// tellCaller notes the end of a call among the events of the run that made it.
func (s *Service) tellCaller(j *job) {
	if caller := s.job(j.family.parent); caller != nil {
		caller.append(newEvent(time.Now().UTC(), callOf(j.record)))
	}
}

// noteCalls puts the calls of a run into its record before that is final.
func (j *job) noteCalls(ctx context.Context) {
	if len(j.service.exec.grants(j.req.Capsule)) == 0 {
		return
	}
	calls, err := j.service.callsOf(context.WithoutCancel(ctx), j.id)
	if err != nil {
		j.service.logger.Warn("calls not in the record", "run", j.id, about(err))
	}
	j.record.Calls = calls
}

// recoverTree counts the calls of a tree that began in an earlier process.
func (s *Service) recoverTree(ctx context.Context, root string) (*handoff.Tree, error) {
	parents, err := s.parentsIn(ctx, root)
	if err != nil {
		return nil, err
	}
	below := map[string]int{}
	for _, parent := range parents {
		for run := parent; run != ""; run = parents[run] {
			below[run]++
		}
	}
	tree := handoff.NewTree()
	for run, calls := range below {
		tree.Restore(run, calls)
	}
	return tree, nil
}

// parentsIn returns the parent of each run of a tree.
func (s *Service) parentsIn(ctx context.Context, root string) (map[string]string, error) {
	parents := map[string]string{}
	filter := store.Filter{Root: root, Limit: 1000}
	for {
		page, err := s.store.Runs(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Runs {
			parents[row.ID] = row.Parent
		}
		if filter.Cursor = page.Next; filter.Cursor == "" {
			return parents, nil
		}
	}
}

// cancelOrphans cancels calls whose caller ended while nobody was there to do it.
func (s *Service) cancelOrphans() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.live {
		if parent := j.family.parent; parent != "" && (s.live[parent] == nil || s.live[parent].spent) {
			j.cancel(errCallerEnded)
		}
	}
}
