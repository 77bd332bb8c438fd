package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
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
		f := follower{client: c, id: id, after: after, patience: c.newPatience()}
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
			if err := f.patience.wait(ctx, err); err != nil {
				yield(api.Event{}, err)
				return
			}
		}
	}
}

// follower reads the events of a run over as many connections as it takes.
type follower struct {
	client   *Client
	id       string
	after    int64
	patience *patience
	emit     func(api.Event) bool // whether there shall be more
}

// connection reads one connection to its end. It is over when no more is wanted.
func (f *follower) connection(ctx context.Context) (over bool, err error) {
	s, err := f.client.openStream(ctx, request{
		method: http.MethodGet, path: []string{"v1", "runs", f.id, "events"},
		header: map[string]string{"Accept": "text/event-stream", "Last-Event-ID": strconv.FormatInt(f.after, 10)},
	}, silence)
	if err != nil {
		return false, err
	}
	defer s.close()
	defer f.steady(time.Now())
	var reader eventReader
	for {
		line, ok := s.next()
		if !ok {
			return false, f.broken(ctx, s.err())
		}
		event, whole, err := reader.line(line)
		if err != nil {
			return false, f.client.strange(err)
		}
		if !whole || event.Seq <= f.after {
			continue
		}
		f.after = event.Seq
		f.patience.renew()
		if !f.emit(event) {
			return true, nil
		}
	}
}

// steady renews the patience after a connection that has lasted.
func (f *follower) steady(since time.Time) {
	if time.Since(since) > steadyTime {
		f.patience.renew()
	}
}

// broken says why a stream ended that had not come to its last event.
func (f *follower) broken(ctx context.Context, err error) error {
	if err == nil {
		err = errCut
	}
	return f.client.streamFault(ctx, err)
}

// streamFault tells what can't be read from what didn't come.
func (c *Client) streamFault(ctx context.Context, err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return c.strange(errNotEvents)
	}
	return c.lost(ctx, err)
}

// errNotEvents says that an answer is not what its media type promises.
var errNotEvents = errors.New("it is no stream of ours")

// eventReader puts events together from the lines of a stream (HTML Living Standard,
// "Server-sent events").
type eventReader struct {
	event api.Event
	data  []byte
}

// line takes one line and returns the event that it completes.
func (r *eventReader) line(line []byte) (event api.Event, whole bool, err error) {
	if len(line) == 0 {
		return r.complete()
	}
	field, value := cutField(line)
	switch field {
	case "id":
		if r.event.Seq, err = strconv.ParseInt(value, 10, 64); err != nil || r.event.Seq < 1 {
			return event, false, errNotEvents
		}
	case "event":
		r.event.Type = api.EventType(value)
	case "data":
		if r.data != nil {
			r.data = append(r.data, '\n')
		}
		if r.data = append(r.data, value...); len(r.data) > maxLine {
			return event, false, errNotEvents
		}
	}
	return event, false, nil
}

// complete ends an event at an empty line; one without data is none.
func (r *eventReader) complete() (api.Event, bool, error) {
	event := r.event
	event.Data = json.RawMessage(r.data)
	*r = eventReader{}
	if event.Data == nil {
		return event, false, nil
	}
	if event.Seq == 0 || event.Type == "" || !json.Valid(event.Data) {
		return event, false, errNotEvents
	}
	return event, true, nil
}

// cutField takes a line apart; a comment has the empty field.
func cutField(line []byte) (field, value string) {
	field, value, _ = strings.Cut(string(line), ":")
	return field, strings.TrimPrefix(value, " ")
}
