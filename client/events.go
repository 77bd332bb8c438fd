package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api"
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
func (c Runs) Events(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return c.follow(ctx, toRun(http.MethodGet, id, "events"), after)
}

// EventsAndTokens is Events, and between them what models say to the run at the moment: events of type EventTokens
// without a number, which don't come again after a lost connection.
func (c Runs) EventsAndTokens(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	r := toRun(http.MethodGet, id, "events")
	r.query = url.Values{"tokens": {"true"}}
	return c.follow(ctx, r, after)
}

func (c Runs) follow(ctx context.Context, r request, after int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		f := follower{conn: c.conn, to: r, after: after, retries: c.conn.newRetrier()}
		f.emit = func(e api.Event) bool { return yield(e, nil) && e.Type != api.EventEnd }
		if err := f.follow(ctx); err != nil {
			yield(api.Event{}, err)
		}
	}
}

// follower reads a stream of events over as many connections as it takes.
type follower struct {
	conn    *conn
	to      request
	after   int64 // the number of the last one; below 0: the server begins where it likes
	sealed  bool  // the numbers tell nothing of the order
	retries *retrier
	emit    func(api.Event) bool // returns whether the caller wants more
}

// follow returns when the caller wants no more, or with an error.
func (f *follower) follow(ctx context.Context) error {
	for {
		over, err := f.connection(ctx)
		if over || !isLost(err) {
			return err
		}
		if err := f.retries.wait(ctx, err); err != nil {
			return err
		}
	}
}

// connection reads one connection to its end. over is true when the caller wants no more.
func (f *follower) connection(ctx context.Context) (over bool, err error) {
	r := f.to
	r.header["Accept"] = httpwire.TypeEvents
	if f.after >= 0 {
		r.header["Last-Event-ID"] = strconv.FormatInt(f.after, 10)
	}
	s, err := f.conn.openStream(ctx, r, silence)
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
			return false, f.conn.strange(err)
		}
		if f.has(event) {
			continue
		}
		f.retries.renew()
		if event.Type != api.EventTokens {
			f.after = event.Seq
		}
		if !f.emit(event) {
			return true, nil
		}
	}
}

// has reports whether an event came before. A reset may go back.
func (f *follower) has(e api.Event) bool {
	return !ofNoThing(e.Type) && e.Type != api.EventTokens && (e.Seq == f.after || e.Seq < f.after && !f.sealed)
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
	return f.conn.streamFault(ctx, err)
}

// eventLimits leave room for the name and the id of an event. The length of a stream isn't
// bounded: it lasts as long as its run.
var eventLimits = httpwire.EventLimits{
	Line: maxLine, Event: maxLine + 1<<10, Stream: math.MaxInt64,
	Whose: "the stream",
}

// eventOf converts an event of a stream into an event of a run.
func eventOf(told httpwire.Event) (api.Event, error) {
	event := api.Event{Type: api.EventType(told.Name), Data: json.RawMessage(told.Data)}
	if event.Type == api.EventTokens && json.Valid(event.Data) {
		return event, nil // it has no number
	}
	seq, err := strconv.ParseInt(told.LastID, 10, 64)
	event.Seq = seq
	if err != nil || seq < 0 || seq == 0 && !ofNoThing(event.Type) || told.Name == httpwire.DefaultEventName ||
		!json.Valid(event.Data) {
		return api.Event{}, errNotEvents
	}
	return event, nil
}

// Log returns lines that a run has written, and with Follow also those to come, to its
// end. A lost connection is made again and continues after the last line, as with Events.
func (c Runs) Log(ctx context.Context, id string, wanted api.LogFilter) iter.Seq2[api.LogEntry, error] {
	return func(yield func(api.LogEntry, error) bool) {
		l := logReader{conn: c.conn, id: id, wanted: wanted, retries: c.conn.newRetrier(), yield: yield}
		if err := l.read(ctx); err != nil {
			yield(api.LogEntry{}, err)
		}
	}
}

// logReader reads a log over as many connections as it takes.
type logReader struct {
	conn    *conn
	id      string
	wanted  api.LogFilter // what is still to be read
	older   bool          // the server is an older one: it numbers no lines, and begins each connection with the first
	over    bool          // the caller wants no more
	retries *retrier
	yield   func(api.LogEntry, error) bool
}

func (l *logReader) read(ctx context.Context) error {
	for {
		err := l.connection(ctx)
		ended := err == nil
		if ended && !l.over {
			ended, err = l.ended(ctx)
		}
		if l.over || ended {
			return nil
		}
		if err != nil && !isLost(err) {
			return err
		}
		if err := l.retries.wait(ctx, err); err != nil {
			return err
		}
	}
}

// ended distinguishes the end of a run from the end of a server, which closes its streams
// as well.
func (l *logReader) ended(ctx context.Context) (bool, error) {
	if !l.wanted.Follow {
		return true, nil
	}
	record, err := l.conn.record(ctx, toRun(http.MethodGet, l.id))
	return record.FinishedAt != nil, err
}

func (l *logReader) connection(ctx context.Context) error {
	r := toRun(http.MethodGet, l.id, "logs")
	r.header["Accept"] = "application/x-ndjson"
	r.query = l.query()
	s, err := l.conn.openStream(ctx, r, 0)
	if err != nil {
		return err
	}
	defer s.close()
	lines := s.lines()
	for n := int64(1); lines.Scan(); n++ {
		var entry api.LogEntry
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return l.conn.strange(err)
		}
		if l.older = entry.Line == 0; l.older {
			entry.Line = n
		}
		switch {
		case entry.Line <= l.wanted.After && l.older:
			continue
		case entry.Line <= l.wanted.After:
			return l.conn.strange(errNotEvents)
		}
		l.wanted.After, l.wanted.Tail = entry.Line, 0
		l.retries.renew()
		if !l.yield(entry, nil) {
			l.over = true
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return l.conn.streamFault(ctx, err)
	}
	return nil
}

// query chooses what is still to be read, as far as the server understands that.
func (l *logReader) query() url.Values {
	q := url.Values{}
	if l.wanted.Follow {
		q.Set("follow", "true")
	}
	if l.older {
		return q
	}
	for name, n := range map[string]int64{
		"tail": l.wanted.Tail, "after": l.wanted.After, "before": l.wanted.Before,
	} {
		if n != 0 {
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	return q
}
