package mcp

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
)

// replays keep what was written to the streams of sessions, so that a client can come back to one that was cut. The
// streams that are oldest are dropped for newer ones. Of a stream that belongs to no request nothing is kept: it tells
// of changes, and its client looks anew. The SDK's own store has no bound of streams.
type replays struct {
	bytes, streams int // at most

	mu    sync.Mutex
	each  map[streamName]*replay
	order []streamName // the oldest first
	size  int
}

type streamName struct{ session, stream string }

// replay is what was written to a stream.
type replay struct {
	events [][]byte
	size   int
	lost   bool // some of it isn't there any more
}

const (
	maxReplays       = 4 << 20 // bytes
	maxReplayStreams = 1000
)

func newReplays() *replays {
	return &replays{bytes: maxReplays, streams: maxReplayStreams, each: map[streamName]*replay{}}
}

// Open implements sdk.EventStore.
func (r *replays) Open(_ context.Context, session, stream string) error {
	if stream == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(streamName{session, stream}, false)
	return nil
}

// of returns what is kept of a stream.
func (r *replays) of(name streamName, lost bool) *replay {
	if known := r.each[name]; known != nil {
		return known
	}
	if len(r.order) >= r.streams {
		r.drop(r.order[0])
	}
	r.each[name] = &replay{lost: lost}
	r.order = append(r.order, name)
	return r.each[name]
}

func (r *replays) drop(name streamName) {
	r.size -= r.each[name].size
	delete(r.each, name)
	r.order = slices.DeleteFunc(r.order, func(n streamName) bool { return n == name })
}

// Append implements sdk.EventStore.
func (r *replays) Append(_ context.Context, session, stream string, data []byte) error {
	if stream == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := streamName{session, stream}
	kept := r.of(name, true) // one that was dropped goes on
	if kept.lost || kept.size+len(data) > r.bytes {
		r.size -= kept.size
		*kept = replay{lost: true}
		return nil
	}
	for r.size+len(data) > r.bytes {
		oldest := r.order[0]
		if oldest == name {
			oldest = r.order[1] // of the others: this one has room for itself
		}
		r.drop(oldest)
	}
	kept.events = append(kept.events, data)
	kept.size += len(data)
	r.size += len(data)
	return nil
}

// After implements sdk.EventStore.
func (r *replays) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.each[streamName{session, stream}]
	if stream == "" {
		kept = &replay{}
	}
	if kept == nil || kept.lost || index < -1 {
		return func(yield func([]byte, error) bool) {
			yield(nil, fault.New(fault.NotFound, "what the stream held isn't there any more"))
		}
	}
	events := kept.events[min(index+1, len(kept.events)):]
	return func(yield func([]byte, error) bool) {
		for _, data := range events {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// SessionClosed implements sdk.EventStore.
func (r *replays) SessionClosed(_ context.Context, session string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Clone(r.order) {
		if name.session == session {
			r.drop(name)
		}
	}
	return nil
}
