package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

// fakeHost runs functions in place of units, and keeps steps in memory.
type fakeHost struct {
	unit   func(ctx context.Context, c Call) (any, error) // nil: gives what it was given
	answer func(ctx context.Context, q Question) (Answer, error)

	mu      sync.Mutex
	started []string // the keys of calls, in the order of their beginning
	ended   map[string]ran
	steps   []Step // one for each address and try, in the order in which they were first kept
	keeps   int
	dieAt   int  // dead with this Keep; 0: never
	lose    bool // that one is lost
	dead    bool
	walks   int // that it died in
}

type ran struct {
	out any
	err error
}

var errKilled = errors.New("killed")

func (h *fakeHost) Call(ctx context.Context, c Call) (Result, error) {
	if err := h.begin(c); err != nil {
		return Result{}, err
	}
	h.mu.Lock()
	done, ok := h.ended[c.Key]
	h.mu.Unlock()
	if !ok {
		done.out, done.err = c.Input, error(nil)
		if h.unit != nil {
			done.out, done.err = h.unit(ctx, c)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var failure *CallError
	if done.err == nil || errors.As(done.err, &failure) {
		if h.ended == nil {
			h.ended = map[string]ran{}
		}
		h.ended[c.Key] = done
	}
	if h.dead {
		return Result{}, errKilled
	}
	return Result{Run: "run of " + c.Key, Output: done.out}, done.err
}

func (h *fakeHost) begin(c Call) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return errKilled
	}
	for _, s := range h.steps {
		if s.Address == c.Address && s.Try == c.Try && s.State != Open {
			panic("called again although it is kept: " + c.Key)
		}
	}
	if !slices.Contains(h.started, c.Key) {
		h.started = append(h.started, c.Key)
	}
	return nil
}

func (h *fakeHost) Keep(ctx context.Context, s Step) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead || ctx.Err() != nil {
		return errKilled
	}
	h.keeps++
	h.dead = h.dieAt > 0 && h.keeps >= h.dieAt
	if h.dead && h.lose {
		return errKilled
	}
	at := slices.IndexFunc(h.steps, func(k Step) bool { return k.Address == s.Address && k.Try == s.Try })
	if at < 0 {
		h.steps = append(h.steps, s)
	} else {
		h.steps[at] = s
	}
	if h.dead {
		return errKilled
	}
	return nil
}

func (*fakeHost) Items(string, int) {}

func (h *fakeHost) Ask(ctx context.Context, q Question) (Answer, error) {
	h.mu.Lock()
	dead := h.dead
	h.mu.Unlock()
	if dead {
		return Answer{}, errKilled
	}
	return h.answer(ctx, q)
}

// revive makes the host live again, as a new process that finds what was kept.
func (h *fakeHost) revive() {
	h.dead, h.lose, h.dieAt, h.keeps, h.walks = false, false, 0, 0, h.walks+1
}

// failingUnit is the error of a unit that failed.
func failingUnit(kind string) *CallError {
	return &CallError{Run: "r", Failure: Failure{Category: "Transient", Kind: kind, Message: "it broke"}}
}

// flowOf reads a flow of a test.
func flowOf(t testing.TB, text string) *Flow {
	t.Helper()
	f, findings := Parse([]byte(text))
	for _, finding := range findings {
		if !finding.Warning {
			t.Fatalf("%s: %s\n%s", finding.Where(), finding.Message, text)
		}
	}
	return f
}

func walked(t testing.TB, text string, input map[string]any, h *fakeHost) Ended {
	t.Helper()
	ended, err := flowOf(t, text).Walk(t.Context(), input, h.steps, h)
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// row is a kept step without its times.
func row(s Step) string {
	kind, waits := "", ""
	if s.Failure != nil {
		kind = " " + s.Failure.Kind + " of " + s.Failure.Node
	}
	if !s.Until.IsZero() {
		waits = " until"
	}
	return fmt.Sprintf("%s~%d %s %q %s %s%s%s", s.Address, s.Try, s.State, s.Action, s.Delta, s.Value, kind, waits)
}

func rows(steps []Step) []string {
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = row(s)
	}
	slices.Sort(out)
	return out
}

var noon = time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
