package handoff

import (
	"context"
	"sync"
)

// keys remembers the idempotency keys whose call was counted. Calls of one key are made one
// after the other, so that the second joins what the first made.
type keys struct {
	mu    sync.Mutex
	known map[string]*key
}

// key is in the map while somebody uses it, and always when its call was counted. The budget
// of calls bounds how many those are.
type key struct {
	turn    chan struct{} // holds one token while a call of this key is being made
	users   int
	counted bool // is changed by the holder of the token
}

// enter waits for the key's turn, at most until ctx ends. leave must follow.
func (k *keys) enter(ctx context.Context, name string) (*key, error) {
	e := k.use(name)
	select {
	case e.turn <- struct{}{}:
		return e, nil
	case <-ctx.Done():
		k.release(name, e)
		return nil, context.Cause(ctx)
	}
}

// leave ends the turn.
func (k *keys) leave(name string, e *key) {
	<-e.turn
	k.release(name, e)
}

// use returns the entry of a name. Without a name it returns a new one.
func (k *keys) use(name string) *key {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.known[name]
	if e == nil {
		e = &key{turn: make(chan struct{}, 1)}
	}
	if name != "" {
		e.users++
		k.known[name] = e
	}
	return e
}

func (k *keys) release(name string, e *key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e.users--
	if e.users <= 0 && !e.counted { // without users nobody else holds the token
		delete(k.known, name)
	}
}

// remember marks a key whose call an earlier process made.
func (k *keys) remember(name string) {
	e := k.use(name)
	e.turn <- struct{}{}
	e.counted = true
	k.leave(name, e)
}
