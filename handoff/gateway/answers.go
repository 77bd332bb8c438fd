package gateway

import (
	"context"
	"sync"

	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
)

// Memory keeps answers in memory: up to 256, and 32 MiB. What came first is forgotten first.
type Memory struct {
	mu    sync.Mutex
	known map[string]stored
	order []string
	size  int
}

type stored struct {
	answer cassette.Answer
	digest string
	size   int
}

const (
	maxStored      = 256
	maxStoredBytes = 32 << 20
)

// NewMemory returns a Memory that holds nothing.
func NewMemory() *Memory { return &Memory{known: map[string]stored{}} }

// Find implements Answers.
func (m *Memory) Find(_ context.Context, key string) (cassette.Answer, string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.known[key]
	return s.answer, s.digest, ok
}

// Keep implements Answers. A key that is there keeps its answer.
func (m *Memory) Keep(_ context.Context, key, digest string, a cassette.Answer) {
	size := 0
	for _, c := range a.Chunks {
		size += len(c)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.known[key]; there || size > maxStoredBytes {
		return
	}
	m.known[key] = stored{a, digest, size}
	m.order = append(m.order, key)
	for m.size += size; m.size > maxStoredBytes || len(m.order) > maxStored; m.order = m.order[1:] {
		m.size -= m.known[m.order[0]].size
		delete(m.known, m.order[0])
	}
}

// keyring lets one request under a key go at a time, so that the next one finds its answer.
type keyring struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the key is free
}

// hold waits for a key. The error is the cause of ctx's end.
func (k *keyring) hold(ctx context.Context, key string) (release func(), err error) {
	for {
		k.mu.Lock()
		if k.held == nil {
			k.held = map[string]chan struct{}{}
		}
		busy, taken := k.held[key]
		if !taken {
			mine := make(chan struct{})
			k.held[key] = mine
			k.mu.Unlock()
			return func() { k.release(key, mine) }, nil
		}
		k.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (k *keyring) release(key string, mine chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, key)
	close(mine)
}
