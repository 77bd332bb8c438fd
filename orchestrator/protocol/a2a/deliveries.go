package a2a

import (
	"context"
	"sync"
	"time"
)

// deliveryTime bounds how long a message waits that was sent before, while the answer to that is being
// delivered. It is far more than that takes, but for a client that doesn't read.
const deliveryTime = 5 * time.Second

// deliveries are the answers that are being delivered, by the digests of their messages. Whether the
// same message joins its task is not known before their end.
type deliveries struct {
	mu    sync.Mutex
	under map[string]*delivery
}

type delivery struct {
	answers int
	over    chan struct{}
}

// begin notes that an answer is being delivered. end must be called.
func (d *deliveries) begin(resend string) (end func()) {
	if resend == "" {
		return func() {}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.under == nil {
		d.under = map[string]*delivery{}
	}
	one := d.under[resend]
	if one == nil {
		one = &delivery{over: make(chan struct{})}
		d.under[resend] = one
	}
	one.answers++
	return func() { d.end(resend, one) }
}

func (d *deliveries) end(resend string, one *delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one.answers--; one.answers == 0 {
		delete(d.under, resend)
		close(one.over)
	}
}

// await returns when no answer to a message is being delivered.
func (d *deliveries) await(ctx context.Context, resend string) {
	d.mu.Lock()
	one := d.under[resend]
	d.mu.Unlock()
	if one == nil {
		return
	}
	late := time.NewTimer(deliveryTime)
	defer late.Stop()
	select {
	case <-one.over:
	case <-late.C:
	case <-ctx.Done():
	}
}
