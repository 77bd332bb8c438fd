package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

// heartbeat is how often a stream on which nothing happens shows that it lives.
const heartbeat = 15 * time.Second

// getEvents sends the run's events as they happen, each once and in order, and ends
// after the last one.
func (a *API) getEvents(c echo.Context) error {
	after, err := eventsAfter(c)
	if err != nil {
		return err
	}
	record, err := a.recordOf(c)
	if err != nil {
		return err
	}
	ctx, stop := httpwire.Attached(c.Request().Context())
	defer stop()
	events, wait := a.pump(ctx, record.ID, after)
	defer func() {
		stop() // the pump may be waiting for an event, or for us
		wait()
	}()
	return sendEvents(httpwire.NewEventWriter(newStreamer(c, httpwire.TypeEvents)), events)
}

// happening is one event, or the error that ended them.
type happening struct {
	event api.Event
	err   error
}

// pump reads the run's events on a goroutine of its own, so that the reader of the
// channel may wait for other things too. It ends with the events or, without a word,
// with ctx; wait returns when it has.
func (a *API) pump(ctx context.Context, id string, after int64) (events <-chan happening, wait func()) {
	out := make(chan happening)
	go func() {
		defer close(out)
		err := httpwire.Catch(func() error { a.drain(ctx, id, after, out); return nil })
		if err != nil { // it would end the process: nobody catches what a goroutine of ours panics with
			hand(ctx, out, happening{err: err})
		}
	}()
	return out, func() {
		for range out {
			continue // it came too late for us
		}
	}
}

func (a *API) drain(ctx context.Context, id string, after int64, out chan<- happening) {
	for event, err := range a.svc.Events(ctx, id, after) {
		if ctx.Err() != nil || !hand(ctx, out, happening{event, err}) {
			return
		}
	}
}

// hand reports whether there was somebody to take it.
func hand(ctx context.Context, out chan<- happening, h happening) bool {
	select {
	case out <- h:
		return true
	case <-ctx.Done():
		return false
	}
}

func sendEvents(out *httpwire.EventWriter, events <-chan happening) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case h, more := <-events:
			if !more {
				return nil
			}
			beat.Reset(heartbeat)
			err = sendEvent(out, h)
		case <-beat.C:
			err = out.Comment("still here")
		}
		if err != nil {
			return err
		}
	}
}

func sendEvent(out *httpwire.EventWriter, h happening) error {
	if h.err != nil {
		return fmt.Errorf("read events: %w", h.err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, h.event.Data); err != nil { // data must be one line
		return fmt.Errorf("encode event: %w", err)
	}
	return out.Write(httpwire.Event{Name: string(h.event.Type), Data: line.String(), LastID: strconv.FormatInt(h.event.Seq, 10)})
}

// eventsAfter returns the number of the last event that the client has seen. A browser
// that connects again says it in the header and repeats the address.
func eventsAfter(c echo.Context) (int64, error) {
	q := queryOf(c, "after")
	after := q.integer("after", 0, math.MaxInt64, "the number of an event")
	last := c.Request().Header.Get("Last-Event-ID")
	if q.err != nil || last == "" {
		return after, q.err
	}
	after, err := strconv.ParseInt(last, 10, 64)
	if err != nil || after < 0 {
		return 0, fault.New(fault.BadRequest, "the header Last-Event-ID is not valid").
			WithHint("it is the id of the last event that was received, a number")
	}
	return after, nil
}
