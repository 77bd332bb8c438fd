package orchestrator

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	probeEvery    = time.Second            // at least between two probes, however many ask
	probeTime     = 5 * time.Second        // bounds one probe
	probeCounts   = 5 * time.Second        // that an answer counts, while the next one is awaited
	probePatience = 500 * time.Millisecond // with a newer answer, where an earlier one counts
)

// Ready returns a fault with the reason why the service can't take runs now, or nil. The
// kinds are asked at most once a second: an engine under load is slow to answer, and every
// further question makes it slower.
func (s *Service) Ready(ctx context.Context) error {
	if err := s.admits(ctx); err != nil {
		return err
	}
	return s.readiness.get(ctx, s.probe)
}

// probe starts to ask the kinds, unless the service shuts down.
func (s *Service) probe(answered func(error)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.tasks.Go(func() {
		ctx, cancel := context.WithTimeoutCause(s.life, probeTime, runtime.Silent(probeTime))
		defer cancel()
		answered(s.askKinds(ctx))
	})
	return true
}

func (s *Service) askKinds(ctx context.Context) error {
	for kind := range s.kinds.Each() {
		if sweeper, ok := kind.(run.Sweeper); ok {
			if err := sweeper.Ready(ctx); err != nil {
				return cmp.Or(context.Cause(ctx), err)
			}
		}
	}
	return nil
}

// readiness is the last answer to a question that many ask. It is safe for concurrent use.
type readiness struct {
	mu      sync.Mutex
	err     error         // the last answer
	at      time.Time     // of the last answer; zero before the first
	begun   time.Time     // when the last probe began
	pending chan struct{} // closed at the answer of the probe that is under way, else nil
}

// get returns an answer of the last second, or waits for the one that probe brings. While
// that takes long, the last one within five seconds counts.
func (r *readiness) get(ctx context.Context, probe func(answered func(error)) bool) error {
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
func (r *readiness) refresh(probe func(answered func(error)) bool) (<-chan struct{}, time.Duration) {
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
	return r.pending, probeTime
}

func (r *readiness) answered(err error, pending chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err, r.at, r.pending = err, time.Now(), nil
	close(pending)
}

func (r *readiness) counts() bool { return !r.at.IsZero() && time.Since(r.at) < probeCounts }

func (r *readiness) last() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.counts() {
		return runtime.Silent(probeTime)
	}
	return r.err
}
