// Package traces has the lines of a log that are about a run say of which trace it is.
//
//	Runs.Begin   notes the trace of a run that this process leads
//	Runs.Logger  adds it to each line that has the run's id
//
// It must not know how runs are led, or what makes their spans.
//
// Its Go API may change with every release: see docs/stability.md.
package traces

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// The keys of attributes: what names a run, and what names its trace.
const (
	runKey   = "run"
	traceKey = "trace"
)

// Runs know the traces of the runs that go on. They are safe for concurrent use; a nil Runs knows none.
type Runs struct {
	mu sync.Mutex
	of map[string]string // by run
}

// New returns Runs that know none yet.
func New() *Runs { return &Runs{of: map[string]string{}} }

// Begin notes of which trace a run is, until End; "": of none.
func (r *Runs) Begin(run, trace string) {
	if r == nil || trace == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[run] = trace
}

// End forgets a run.
func (r *Runs) End(run string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, run)
}

func (r *Runs) trace(run string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[run]
}

// Logger returns a logger whose lines about a run, those with the attribute run, have the attribute trace, too, where
// the run is of one and the line doesn't name another.
func (r *Runs) Logger(to *slog.Logger) *slog.Logger { return slog.New(handler{to.Handler(), r}) }

type handler struct {
	slog.Handler
	runs *Runs
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, line slog.Record) error {
	trace := ""
	for a := range line.Attrs {
		switch a.Key {
		case runKey:
			trace = h.runs.trace(a.Value.String())
		case traceKey:
			return h.Handler.Handle(ctx, line)
		}
	}
	if trace != "" {
		line = line.Clone()
		line.AddAttrs(slog.String(traceKey, trace))
	}
	return h.Handler.Handle(ctx, line)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	of := slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == runKey })
	if of >= 0 {
		if trace := h.runs.trace(attrs[of].Value.String()); trace != "" {
			attrs = append(slices.Clone(attrs), slog.String(traceKey, trace))
		}
	}
	return handler{h.Handler.WithAttrs(attrs), h.runs}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.runs}
}
