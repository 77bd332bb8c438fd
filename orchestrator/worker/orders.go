package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
)

// follow does what the server orders, over one stream after the other, until ctx ends. Its error is errRevoked, a fault
// that only a person can mend, or nil.
func (w *Worker) follow(ctx context.Context) error {
	waits := newWaits()
	for {
		began := time.Now()
		err := w.followOnce(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
		}
		if !mayPass(err) {
			return err
		}
		if time.Since(began) > wire.Beat {
			waits.Reset()
		}
		w.logger.Info("no orders from the server", fault.LogAttr(err))
		_ = pause.For(ctx, waits.NextBackOff()) // an end is seen above
	}
}

// followOnce reads one stream to its end.
func (w *Worker) followOnce(ctx context.Context) error {
	hello, err := json.Marshal(w.hello())
	if err != nil {
		return err
	}
	ctx, silence := httpwire.WatchSilence(ctx, wire.Silence)
	defer silence.Stop(nil)
	r, err := w.link.request(ctx, http.MethodPost, wire.Orders, bytes.NewReader(hello))
	if err != nil {
		return err
	}
	response, err := w.link.do(w.link.control, r)
	var late *lateError
	if errors.As(err, &late) { // it had another clock
		w.hellos = late.last
		return fault.Wrap(fault.Unavailable, err, "the server has heard a later request")
	}
	if err != nil {
		return silent(err)
	}
	defer func() { _ = response.Body.Close() }() // it has ended, or it is to
	w.logger.Info("connected", "server", w.member.Server)
	orders := json.NewDecoder(silence.Reader(response.Body, wire.Silence))
	for {
		var order wire.Order
		if err := orders.Decode(&order); err != nil {
			return silent(err)
		}
		w.obey(order)
	}
}

// silent is the fault of a stream that has ended.
func silent(err error) error {
	if errors.Is(err, errRevoked) || fault.KindOf(err) != fault.Internal && !errors.Is(err, io.EOF) {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "the stream of orders has ended")
}

// hello is what this worker tells of itself.
func (w *Worker) hello() wire.Hello {
	w.hellos = max(w.hellos+1, time.Now().UnixMilli())
	return wire.Hello{
		Protocol: wire.Protocol, Number: w.hellos, Home: w.member.Home, Version: w.opts.Version,
		Slots: w.opts.Slots, MemoryBytes: w.memory, Labels: w.opts.Labels, Node: w.opts.Node,
		Held: w.holds(),
	}
}

// obey does what an order says. It doesn't wait for that.
func (w *Worker) obey(order wire.Order) {
	switch {
	case order.Offer != nil && w.isClosed():
		w.underway.Go(func() { w.renewOnce(w.life) }) // it is closed, which declines it
	case order.Offer != nil:
		w.begin(newHeld(w, entry{Nonce: rand.Text(), Offer: order.Offer.ID}))
	case order.Cancel != nil:
		w.cancel(order.Cancel)
	case order.Transfer != nil:
		if h := w.of(order.Transfer.Lease); h != nil {
			carrier{h}.transfer(*order.Transfer)
		}
	case order.Rest != "":
		w.rest(order.Rest, false)
	case order.Over != "":
		w.rest(order.Over, true)
	case order.Void != "":
		if h := w.of(order.Void); h != nil {
			h.void()
		}
	}
}

// cancel ends an attempt. The server knows its lease before this worker does.
func (w *Worker) cancel(c *wire.Cancel) {
	if h := w.of(c.Lease); h != nil {
		h.cancelBy(c)
		return
	}
	for _, h := range w.all() {
		h.mayCancel(c)
	}
}

// renew tells the server what this worker holds, every few seconds, and gives up what it holds in vain.
func (w *Worker) renew(ctx context.Context) {
	for pause.For(ctx, wire.Renewal) == nil {
		w.renewOnce(ctx)
	}
}

func (w *Worker) renewOnce(ctx context.Context) {
	var answer wire.Renewed
	if err := w.link.call(ctx, wire.Renew, w.holds(), &answer); err != nil {
		return // the stream of orders says what is wrong
	}
	for _, id := range answer.Over {
		w.rest(id, true)
	}
	for _, lease := range answer.Void {
		if h := w.of(lease); h != nil {
			h.void()
		}
	}
}
