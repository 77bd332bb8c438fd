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
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

// silence is how long an event stream may say nothing: the server's heart beats every
// 15 seconds.
const silence = time.Minute

// Events follows what happens in a run, from the event after the given one (0: from the
// first), each once and in order, and ends after the event of type EventEnd. A lost
// connection is made again and goes on where it was; what a server that is away for
// longer than about 40 seconds leaves is an Unavailable fault. Types that the caller
// doesn't know are to be left alone.
func (c *Client) Events(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if err := checkID(id); err != nil {
			yield(api.Event{}, err)
			return
		}
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
	emit    func(api.Event) bool // whether there shall be more
}

// connection reads one connection to its end. It is over when no more is wanted.
func (f *follower) connection(ctx context.Context) (over bool, err error) {
	s, err := f.client.openStream(ctx, request{
		method: http.MethodGet, path: []string{"v1", "runs", f.id, "events"},
		header: map[string]string{"Accept": httpwire.TypeEvents, "Last-Event-ID": strconv.FormatInt(f.after, 10)},
	}, silence)
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

// steady renews the retries after a connection that has lasted.
func (f *follower) steady(since time.Time) {
	if time.Since(since) > steadyTime {
		f.retries.renew()
	}
}

// broken says why a stream ended that had not come to its last event.
func (f *follower) broken(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) {
		err = errCut
	}
	return f.client.streamFault(ctx, err)
}

// streamFault tells what can't be read from what didn't come.
func (c *Client) streamFault(ctx context.Context, err error) error {
	if errors.Is(err, bufio.ErrTooLong) || fault.Is(err, fault.TooLarge) {
		return c.strange(errNotEvents)
	}
	return c.lost(ctx, err)
}

// errNotEvents says that an answer is not what its media type promises.
var errNotEvents = errors.New("it is no stream of ours")

// eventLimits leave room for the name and the id of an event. A stream is as long as its run.
var eventLimits = httpwire.EventLimits{Line: maxLine, Event: maxLine + 1<<10, Stream: math.MaxInt64, Whose: "the stream"}

// eventOf reads an event of a stream as one of a run.
func eventOf(told httpwire.Event) (api.Event, error) {
	seq, err := strconv.ParseInt(told.LastID, 10, 64)
	event := api.Event{Seq: seq, Type: api.EventType(told.Name), Data: json.RawMessage(told.Data)}
	if err != nil || seq < 1 || told.Name == httpwire.DefaultEventName || !json.Valid(event.Data) {
		return api.Event{}, errNotEvents
	}
	return event, nil
}
