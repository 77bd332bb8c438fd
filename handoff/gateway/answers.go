package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
)

// answerer is a place that a call may be answered from.
type answerer interface {
	// answer gives the answer, if it has one, and reports whether it did.
	answer(ctx context.Context, to *reply) (answered bool, err error)
}

// keeper is an answerer that keeps what one after it has answered.
type keeper interface {
	keep(ctx context.Context, from Source, a cassette.Answer)
}

// answerFirst has the first of some answerers answer that can. Those before it keep the answer.
func answerFirst(ctx context.Context, to *reply, chain ...answerer) error {
	for i, a := range chain {
		answered, err := a.answer(ctx, to)
		if err != nil {
			return err
		}
		if answered {
			keepBy(context.WithoutCancel(ctx), chain[:i], to)
			return nil
		}
	}
	return nil
}

// keepBy has an answer kept that is whole.
func keepBy(ctx context.Context, chain []answerer, given *reply) {
	answer, whole := given.kept.answer(given.status)
	if !whole {
		return
	}
	for _, a := range chain {
		if k, keeps := a.(keeper); keeps {
			k.keep(ctx, given.source, answer)
		}
	}
}

// storedAnswer is the answer that the Idempotency-Key of a call had before.
type storedAnswer struct {
	answers     Answers
	key, digest string // of the call; a key of "" is none
}

func (s *storedAnswer) answer(ctx context.Context, to *reply) (bool, error) {
	if s.key == "" {
		return false, nil
	}
	a, digest, found := s.answers.Find(ctx, s.key)
	if !found {
		return false, nil
	}
	if digest != s.digest {
		return false, refuse(http.StatusUnprocessableEntity, RuleIdempotency,
			"another request was sent with this Idempotency-Key").hint("send a key of its own with each request")
	}
	to.kept.wanted = false // it is
	return true, to.give(FromKey, a)
}

func (s *storedAnswer) keep(ctx context.Context, from Source, a cassette.Answer) {
	if s.key != "" && from != FromProvider { // of which it is stored
		s.answers.Keep(ctx, s.key, s.digest, a)
	}
}

// storeAhead stores the answer of a provider before the last of it is given.
func (s *storedAnswer) storeAhead(ctx context.Context, given *kept, rest *upstream) {
	if s.key == "" {
		return
	}
	all := given.with(rest)
	if a, whole := all.answer(rest.status); whole {
		s.answers.Keep(context.WithoutCancel(ctx), s.key, s.digest, a)
	}
}

// replay is a cassette in the place of all providers, or before them.
type replay struct {
	player *cassette.Player // nil: there is none
	asked  cassette.Request
	before bool // what isn't in it providers are asked
}

func (r *replay) answer(_ context.Context, to *reply) (bool, error) {
	if r.player == nil {
		return false, nil
	}
	a, err := r.player.Next(r.asked)
	var miss *cassette.Miss
	if errors.As(err, &miss) {
		if r.before {
			return false, nil
		}
		return false, refuse(http.StatusBadRequest, RuleReplay, "%s", miss).
			hint("record the cassette anew, or send what was recorded").because(miss)
	}
	if err != nil {
		return false, err
	}
	return true, to.give(FromReplay, a)
}

// cachedAnswer is what a provider has answered to an equal request.
type cachedAnswer struct {
	answers Answers // nil: there are none
	asked   cassette.Request
	digest  string
	key     string // "" until it is known
}

func (c *cachedAnswer) answer(ctx context.Context, to *reply) (bool, error) {
	if c.answers == nil {
		return false, nil
	}
	key, err := cassette.KeyOf(c.asked)
	if err != nil {
		return false, nil //nolint:nilerr // nothing equals such a request
	}
	c.key = key
	a, _, found := c.answers.Find(ctx, key)
	if !found {
		return false, nil
	}
	return true, to.give(FromCache, a)
}

func (c *cachedAnswer) keep(ctx context.Context, _ Source, a cassette.Answer) {
	if c.key != "" {
		c.answers.Keep(ctx, c.key, c.digest, a)
	}
}

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

// maxKey is how long an Idempotency-Key may be, in bytes.
const maxKey = 255

// keyring lets one request under a key go at a time, so that the next one finds its answer.
type keyring struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the key is free
}

// hold waits for a key; "" is none, for which nobody waits. The error is a *Refusal, or the cause of
// ctx's end.
func (k *keyring) hold(ctx context.Context, key string) (release func(), err error) {
	if key == "" {
		return func() {}, nil
	}
	if len(key) > maxKey {
		return nil, refuse(http.StatusBadRequest, RuleIdempotency,
			"the Idempotency-Key has more than %d bytes", maxKey).hint("send a shorter one")
	}
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
