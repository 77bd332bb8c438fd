package flow

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/capsule/flow/expr"
)

// Ended is how a walk ended, or how far it came.
type Ended struct {
	Output  map[string]any // JSON values and Files; nil where the walk has failed
	State   map[string]any // of the flow itself, as it was at the end
	Action  string         // the last one
	Failure *Failure       // why the walk has failed, with the address; nil: it hasn't
	Counts  Counts
}

// Counts are the ends of nodes, items and branches, those of earlier walks too. A try that is
// followed by another one is none.
type Counts struct{ Steps, Failed, Skipped int }

func (c *Counts) add(s Step) {
	if !s.Final() || strings.HasSuffix(s.Address, patchMark) {
		return
	}
	c.Steps++
	switch s.State {
	case Failed:
		c.Failed++
	case Skipped:
		c.Skipped++
	}
}

// Walk goes through the flow. It takes over the kept steps of earlier walks with the same
// input, in any order, and evaluates nothing of them again. It returns when nothing of it goes on.
// The error says that the process has to stop: it is the host's, or the cause of ctx's end.
// What was kept until then is whole, and Ended says how far the walk came.
func (f *Flow) Walk(ctx context.Context, input map[string]any, kept []Step, host Host) (Ended, error) {
	w := newWalk(host, kept)
	root := &scope{graph: &f.Scope, frame: frame{walk: w, state: newState()}}
	action, err := root.begin(ctx, input)
	var output map[string]any
	if err == nil {
		output, err = root.output(ctx, f.Output)
	}
	ended := Ended{Output: output, State: root.state.values, Action: action, Counts: w.counts}
	if failure := failureIn(err); failure != nil {
		ended.Failure, err = failure, nil
	}
	return ended, err
}

// begin walks the flow itself, whose state begins as the input.
func (s *scope) begin(ctx context.Context, input map[string]any) (string, error) {
	first, err := newPatch(input)
	if err != nil {
		return "", failed("", KindStateLimit, "the input: %s", err)
	}
	if !s.state.fits(first) {
		return "", overLimit("")
	}
	s.input = maps.Collect(maps.All(first.values)) // never nil
	s.state.apply(first)
	return s.run(ctx)
}

func (s *scope) output(ctx context.Context, fields map[string]*expr.Template) (map[string]any, error) {
	output := make(map[string]any, len(fields))
	for name, template := range fields {
		value, err := s.eval(ctx, "", template, nil)
		if err != nil {
			return nil, err
		}
		output[name] = value
	}
	return output, nil
}

// walk is what all scopes of a walk share.
type walk struct {
	host Host
	kept map[string]Step // by address: the last try of it that an earlier walk has kept

	mu      sync.Mutex
	counts  Counts
	stopped error // the host's: nothing more is kept
}

func newWalk(host Host, kept []Step) *walk {
	w := &walk{host: host, kept: make(map[string]Step, len(kept))}
	for _, step := range kept {
		if last, ok := w.kept[step.Address]; !ok || last.Try <= step.Try {
			w.kept[step.Address] = step
		}
	}
	for _, step := range w.kept {
		w.counts.add(step)
	}
	return w
}

// ended returns the kept end of a node, an item or a branch.
func (w *walk) ended(address string) (Step, bool) {
	step, ok := w.kept[address]
	return step, ok && step.Final()
}

// keep stores a step. It does so also where ctx has ended: what has ended is kept whole.
func (w *walk) keep(ctx context.Context, s Step) error {
	if err := w.halted(); err != nil {
		return err
	}
	if err := w.host.Keep(context.WithoutCancel(ctx), s); err != nil {
		return w.halt(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.add(s)
	return nil
}

func (w *walk) halted() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

// halt has nothing more be kept or begun, since the process has to stop.
func (w *walk) halt(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped == nil {
		w.stopped = err
	}
	return err
}

// stopping returns the error with which a walk ends where the host gave nothing although no
// call has failed: the cause of ctx's end, or the host's own.
func (w *walk) stopping(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause != nil &&
		(errors.Is(err, cause) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return cause
	}
	return w.halt(err)
}

// now is a wall time, since it may be compared in another process.
func now() time.Time { return time.Now().UTC().Round(0) }
