package orchestrator

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// TestFollowersOfARunHoldItsEventsOnce isn't parallel: it measures the heap.
func TestFollowersOfARunHoldItsEventsOnce(t *testing.T) {
	const most = 8 << 20
	for name, c := range map[string]struct{ followers, artifacts, bytes int }{
		"many of small ones": {300, 20, 60 << 10},
		"some of large ones": {25, 24, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			gate, shown := make(chan struct{}), make(chan struct{})
			p := newPlays(t, talking(func(ctx context.Context, a *actor) error {
				for range c.artifacts {
					if err := artifact(ctx, a, shows("a", strings.Repeat("x", c.bytes), true, false)); err != nil {
						return err
					}
				}
				close(shown)
				return nil
			}, gate))
			id := p.submit()
			<-shown
			before := testkit.HeapBytes()
			f := followAll(p, id, c.followers)
			if more := testkit.HeapBytes() - before; more > most {
				t.Errorf("%d followers that don't read hold %d KiB", c.followers, more>>10)
			}
			close(gate)
			close(f.read)
			f.done.Wait()
			for i, seen := range f.seen {
				if seen.artifacts != c.artifacts || !seen.end {
					t.Fatalf("follower %d saw %d artifacts, the end: %t", i, seen.artifacts, seen.end)
				}
			}
			p.await(id)
		})
	}
}

// followers read a run up to its first artifact, and go on when they may.
type followers struct {
	read chan struct{}
	done sync.WaitGroup
	seen []seenEvents
}

type seenEvents struct {
	artifacts int
	end       bool
}

// followAll returns when n followers have come to the first artifact.
func followAll(p *plays, id string, n int) *followers {
	f := &followers{read: make(chan struct{}), seen: make([]seenEvents, n)}
	var arrived sync.WaitGroup
	arrived.Add(n)
	for i := range n {
		f.done.Go(func() {
			arrive := sync.OnceFunc(arrived.Done)
			defer arrive()
			for event, err := range p.service.Feed.Events(trusted.Context(p.t), id, 0) {
				if err != nil {
					p.t.Error(err)
					return
				}
				f.seen[i].end = event.Type == api.EventEnd
				if event.Type != api.EventArtifact {
					continue
				}
				f.seen[i].artifacts++
				arrive()
				<-f.read
			}
		})
	}
	arrived.Wait()
	return f
}

func TestWhoSaysToHaveSeenTheEndIsToldOfIt(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newPlays(t, talking(func(context.Context, *actor) error { return nil }, gate))
	id := p.submit()
	told := func(after int64) (types []api.EventType) {
		for event, err := range p.service.Feed.Events(trusted.Context(t), id, after) {
			if err != nil {
				t.Error(err)
			}
			types = append(types, event.Type)
		}
		return types
	}
	live := make(chan []api.EventType)
	go func() { live <- told(1 << 40) }()
	p.until(id, func(r api.Record) bool { return r.State == api.Running })
	close(gate)
	if types := <-live; len(types) != 1 || types[0] != api.EventEnd {
		t.Errorf("beyond what a live run has: %v", types)
	}
	p.await(id)
	last, err := p.service.store.Events.Last(trusted.Context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []int64{last.Seq - 1, last.Seq, last.Seq + 1, 1 << 40} {
		if types := told(after); len(types) != 1 || types[0] != api.EventEnd {
			t.Errorf("after %d of %d: %v", after, last.Seq, types)
		}
	}
	for event, err := range p.service.Feed.Past(trusted.Context(t), id, last.Seq) {
		t.Errorf("the past has more than there was: %v, %v", event, err)
	}
}
