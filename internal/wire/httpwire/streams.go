package httpwire

import (
	"context"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/bytegate"
)

// streamBytes is what a stream holds by itself: its connection's buffers, and two goroutines.
const streamBytes = 64 << 10

// Streams bounds how many answers without an end of their own each client has at the same time. It is
// safe for concurrent use.
type Streams struct {
	most int

	mu   sync.Mutex
	open map[string]int // by client
}

// NewStreams returns a bound of so many streams for each client.
func NewStreams(most int) *Streams { return &Streams{most: most, open: map[string]int{}} }

type streamsKey struct{}

// clientStreams are those of one client.
type clientStreams struct {
	*Streams
	client string
}

// WithStreams returns a context for the requests of a client, whose streams count.
func WithStreams(ctx context.Context, s *Streams, client string) context.Context {
	return context.WithValue(ctx, streamsKey{}, clientStreams{s, client})
}

// OpenStream counts a stream of whoever made a request until end is called, once or more, and what it
// holds in memory. The error is a Busy fault where the client has too many, and an Unavailable fault
// where there is no memory for another.
func OpenStream(ctx context.Context) (end func(), err error) {
	free, err := bytegate.Hold(ctx, streamBytes)
	if err != nil {
		return nil, err
	}
	s, counts := ctx.Value(streamsKey{}).(clientStreams)
	if !counts {
		return free, nil
	}
	if err := s.take(s.client); err != nil {
		free()
		return nil, err
	}
	return sync.OnceFunc(func() { free(); s.leave(s.client) }), nil
}

func (s *Streams) take(client string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[client] >= s.most {
		return fault.New(fault.Busy, "the token has %d streams open already", s.most).
			WithHint("end some of them, or give each client a token of its own")
	}
	s.open[client]++
	return nil
}

// Open counts the streams of all clients.
func (s *Streams) Open() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.open {
		n += open
	}
	return n
}

func (s *Streams) leave(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[client]--; s.open[client] == 0 {
		delete(s.open, client)
	}
}
