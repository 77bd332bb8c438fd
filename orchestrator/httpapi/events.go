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
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// getEvents sends the run's events as they happen, each once and in order, and ends after
// the last one.
func (a *API) getEvents(c echo.Context) error {
	after, err := eventsAfter(c)
	if err != nil {
		return err
	}
	record, err := a.recordOf(c)
	if err != nil {
		return err
	}
	return a.streamEvents(c, record.ID, after)
}

// streamEvents sends the events of a run that come after one, to the last.
func (a *API) streamEvents(c echo.Context, id string, after int64) error {
	ctx, stop := httpwire.Attached(c.Request().Context())
	defer stop()
	end, err := httpwire.OpenStream(ctx)
	if err != nil {
		return err
	}
	defer end()
	events, wait := a.pump(ctx, id, after)
	defer func() {
		stop() // the pump may be waiting for an event, or for this handler
		wait()
	}()
	return sendEvents(httpwire.NewEventWriter(newStreamer(c, httpwire.TypeEvents)), events)
}

// happening is one event, or the error that ended them.
type happening = httpwire.Item[api.Event]

// pump reads the run's events concurrently with the receiver: see httpwire.Pump.
func (a *API) pump(ctx context.Context, id string, after int64) (events <-chan happening, wait func()) {
	return httpwire.Pump(ctx, func(yield func(api.Event, error) bool) { a.svc.Events(ctx, id, after)(yield) })
}

func sendEvents(out *httpwire.EventWriter, events <-chan happening) error {
	beat := time.NewTicker(httpwire.Heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case h, more := <-events:
			if !more {
				return nil
			}
			beat.Reset(httpwire.Heartbeat)
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
	if h.Err != nil {
		return fmt.Errorf("read events: %w", h.Err)
	}
	line := []byte(h.Value.Data) // as it is, for all who follow the run
	if bytes.ContainsAny(line, "\r\n") {
		var compact bytes.Buffer
		if err := json.Compact(&compact, line); err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		line = compact.Bytes()
	}
	return out.WriteLine(string(h.Value.Type), strconv.FormatInt(h.Value.Seq, 10), line)
}

// eventsAfter returns the number of the last event that the client has seen. A browser that
// reconnects sends it in the header and repeats the address.
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
