package certs

import (
	"context"
	"crypto/tls"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
)

// lookEvery is the time between two looks at the files.
const lookEvery = time.Second

// Keeper has the certificate of a server. New connections get the newest good one of its files; those that are open
// keep theirs. It is safe for concurrent use.
type Keeper struct {
	pair    Pair
	told    func(State)
	current atomic.Pointer[tls.Certificate]

	mu     sync.Mutex
	loaded digest // of what is current
	failed digest // of what can't be used, as seen last; zero: nothing
	state  State
}

// State is what may be told of a Keeper.
type State struct {
	Pins    []Pin        // of the certificate in use; while it changes, then that of the one before
	Until   time.Time    // the end of its validity
	Problem *fault.Error // why what is in the files now isn't in use; nil: it is
}

// Open reads a pair. told hears of the state at once, before and after each change of the certificate, and when the
// files can't be used any more, or again. It must not ask the Keeper. The error is that of the files.
func Open(pair Pair, told func(State)) (*Keeper, error) {
	k := &Keeper{pair: pair, told: told}
	cert, seen, err := pair.read()
	if err != nil {
		return nil, err
	}
	k.use(cert, seen)
	return k, nil
}

// Config returns the settings of connections that speak one of the protocols above TLS.
func (k *Keeper) Config(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.current.Load(), nil },
	}
}

// State returns the state.
func (k *Keeper) State() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

// Watch looks at the files until ctx ends.
func (k *Keeper) Watch(ctx context.Context) {
	for pause.For(ctx, lookEvery) == nil {
		k.look()
	}
}

// look takes what has changed. What can't be used may be half of a change: it is told of when it is still there at the
// next look, once.
func (k *Keeper) look() {
	cert, seen, err := k.pair.read()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil && seen != k.loaded:
		k.use(cert, seen)
	case err == nil && (k.state.Problem != nil || len(k.state.Pins) > 1): // they are as they were, or a change is over
		k.state.Problem, k.state.Pins = nil, k.state.Pins[:1]
		k.told(k.state)
	case err != nil && seen == k.failed && k.state.Problem == nil:
		k.state.Problem = fault.Public(err)
		k.told(k.state)
	}
	if k.failed = seen; err == nil {
		k.failed = digest{}
	}
}

// use puts a certificate to use. Whoever goes by the pins that are told knows the old and the new one at this moment.
func (k *Keeper) use(cert *tls.Certificate, seen digest) {
	pins := []Pin{PinOf(cert.Leaf)}
	if len(k.state.Pins) > 0 && k.state.Pins[0] != pins[0] {
		pins = append(pins, k.state.Pins[0])
	}
	k.loaded, k.state = seen, State{Pins: pins, Until: cert.Leaf.NotAfter}
	k.told(k.state)
	k.current.Store(cert)
}
