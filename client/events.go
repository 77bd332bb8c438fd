package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// silence is the longest time without a byte on an event stream: the server sends a
// heartbeat every 15 seconds.
const silence = time.Minute

// Events follows the events of a run, from the event after the given one (0: from the
// first), each once and in order, and ends after the event of type EventEnd. A lost
// connection is made again and continues from the last event. A server that is away for
// longer than about 40 seconds is an Unavailable fault. Callers ignore types that they
// don't know.
func (c *Client) Events(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		f := follower{client: c, id: id, after: after, retries: c.newRetrier()}
		f.emit = func(e api.Event) bool { return yield(e, nil) && e.Type != api.EventEnd }
		for {
			over, err := f.connection(ctx)
			if over {
				return
			}
			if !isLost(err) {
				yield(api.Event{}, err)
				return
			}
			if err := f.retries.wait(ctx, err); err != nil {
				yield(api.Event{}, err)
				return
			}
		}
	}
}

// follower reads the events of a run over as many connections as it takes.
type follower struct {
	client  *Client
	id      string
	after   int64
	retries *retrier
	emit    func(api.Event) bool // returns whether the caller wants more
}

// connection reads one connection to its end. over is true when the caller wants no more.
func (f *follower) connection(ctx context.Context) (over bool, err error) {
	r := toRun(http.MethodGet, f.id, "events")
	r.header["Accept"], r.header["Last-Event-ID"] = httpwire.TypeEvents, strconv.FormatInt(f.after, 10)
	s, err := f.client.openStream(ctx, r, silence)
	if err != nil {
		return false, err
	}
	defer s.close()
	defer f.steady(time.Now())
	reader := httpwire.NewEventReader(s, eventLimits)
	for {
		told, err := reader.Next()
		if err != nil {
			return false, f.broken(ctx, err)
		}
		event, err := eventOf(told)
		if err != nil {
			return false, f.client.strange(err)
		}
		if event.Seq <= f.after {
			continue
		}
		f.after = event.Seq
		f.retries.renew()
		if !f.emit(event) {
			return true, nil
		}
	}
}

// steady resets the retries after a connection that has lasted.
func (f *follower) steady(since time.Time) {
	if time.Since(since) > steadyTime {
		f.retries.renew()
	}
}

// broken says why a stream ended before its last event.
func (f *follower) broken(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) {
		err = errCut
	}
	return f.client.streamFault(ctx, err)
}

// streamFault distinguishes an unreadable stream from a lost connection.
func (c *Client) streamFault(ctx context.Context, err error) error {
	if errors.Is(err, bufio.ErrTooLong) || fault.Is(err, fault.TooLarge) {
		return c.strange(errNotEvents)
	}
	return c.lost(ctx, err)
}

// errNotEvents is the error for an answer that isn't of its media type.
var errNotEvents = errors.New("it is no stream of ours")

// eventLimits leave room for the name and the id of an event. The length of a stream isn't
// bounded: it lasts as long as its run.
var eventLimits = httpwire.EventLimits{
	Line: maxLine, Event: maxLine + 1<<10, Stream: math.MaxInt64,
	Whose: "the stream",
}

// eventOf converts an event of a stream into an event of a run.
func eventOf(told httpwire.Event) (api.Event, error) {
	seq, err := strconv.ParseInt(told.LastID, 10, 64)
	event := api.Event{Seq: seq, Type: api.EventType(told.Name), Data: json.RawMessage(told.Data)}
	if err != nil || seq < 1 || told.Name == httpwire.DefaultEventName || !json.Valid(event.Data) {
		return api.Event{}, errNotEvents
	}
	return event, nil
}
