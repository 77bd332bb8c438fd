// Package readiness remembers for a moment whether something is ready: however many ask, it is looked at
// once a second at most.
//
// It must not know what is looked at.
//
// Its Go API may change with every release: see docs/stability.md.
package readiness

import (
	"context"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/runtime"
)

// ProbeTime bounds one probe.
const ProbeTime = 5 * time.Second

const (
	probeEvery    = time.Second            // at least between two probes, however many ask
	probeCounts   = 5 * time.Second        // that an answer counts, while the next one is awaited
	probePatience = 500 * time.Millisecond // with a newer answer, where an earlier one counts
)

// Readiness is the last answer to a question that many ask. It is safe for concurrent use.
type Readiness struct {
	mu      sync.Mutex
	err     error         // the last answer
	at      time.Time     // of the last answer; zero before the first
	begun   time.Time     // when the last probe began
	pending chan struct{} // closed at the answer of the probe that is under way, else nil
}

// Get returns an answer of the last second, or waits for the one that probe brings. While
// that takes long, the last one within five seconds counts.
func (r *Readiness) Get(ctx context.Context, probe func(answered func(error)) bool) error {
	pending, patience := r.refresh(probe)
	if pending == nil {
		return r.last()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-pending:
	case <-timer.C:
	case <-ctx.Done():
	}
	return r.last()
}

// refresh begins a probe if the last one began long enough ago. It returns what to wait for,
// nil for nothing, and for how long.
func (r *Readiness) refresh(probe func(answered func(error)) bool) (<-chan struct{}, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil && time.Since(r.begun) >= probeEvery {
		pending := make(chan struct{})
		if probe(func(err error) { r.answered(err, pending) }) {
			r.begun, r.pending = time.Now(), pending
		}
	}
	if r.counts() {
		return r.pending, probePatience
	}
	return r.pending, ProbeTime
}

func (r *Readiness) answered(err error, pending chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err, r.at, r.pending = err, time.Now(), nil
	close(pending)
}

func (r *Readiness) counts() bool { return !r.at.IsZero() && time.Since(r.at) < probeCounts }

func (r *Readiness) last() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.counts() {
		return runtime.Silent(ProbeTime)
	}
	return r.err
}
