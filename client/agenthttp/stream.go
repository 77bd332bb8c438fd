package agenthttp

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// lingerTime is how long a stream may stay open after its terminal event.
const lingerTime = 5 * time.Second

var errLingered = errors.New("the stream stayed open after its terminal event")

// Stream requests events and calls each with every one as it comes, except the terminal
// one: its content is the Response, as of Run. The stream must have exactly one terminal
// event, and it must be the last; else the error is a *Violation that says what was
// missing. An event of type progress is never the terminal one, whatever its step is
// called. Errors are those of Run.
func (c *Client) Stream(ctx context.Context, asked Request, each func(Event)) (Response, error) {
	take := func(answer *Answer) (Response, error) {
		if httpwire.MediaType(answer.Header) != httpwire.TypeEvents {
			return Response{}, broken(document.StreamMedia, "the Content-Type of its stream is not %s",
				httpwire.TypeEvents)
		}
		f := follower{Answer: answer, asked: asked, each: each}
		return f.follow()
	}
	return c.call(ctx, asked, Exchange{Path: StreamPath, Accept: httpwire.TypeEvents}, take)
}

// follower reads one stream.
type follower struct {
	*Answer
	asked    Request
	each     func(Event)
	messages *httpwire.EventReader
}

// follow reads the stream to its end.
func (f *follower) follow() (Response, error) {
	most := f.client.opts.Silence
	quiet := time.AfterFunc(most, func() { f.end(errSilent) })
	defer quiet.Stop()
	alive := &readNotifier{from: f.Body, notify: func() { quiet.Reset(most) }}
	f.messages = f.eventsOf(alive)
	for {
		event, err := f.next()
		if err != nil {
			return Response{}, err
		}
		if event.Type.Terminal() {
			alive.notify = func() {}
			quiet.Stop()
			return f.readTerminal(event)
		}
		f.each(event)
	}
}

// next returns the next event of a stream that must not end yet.
func (f *follower) next() (Event, error) {
	m, err := f.messages.Next()
	switch {
	case err == nil:
		return eventOf(m)
	case !errors.Is(err, io.EOF):
		return Event{}, err
	case f.over() != nil:
		return Event{}, f.over()
	case f.messages.Unfinished():
		return Event{}, broken(document.StreamTerminal,
			"the stream ended amid an event, without the empty line that ends one, and no terminal event came before")
	}
	return Event{}, broken(document.StreamTerminal,
		"the stream ended without a terminal event, which is final, complete or done")
}

// readTerminal reads the terminal event, and checks that it is the last.
func (f *follower) readTerminal(terminal Event) (Response, error) {
	response, err := final(terminal, f.asked)
	if err != nil {
		return Response{}, err
	}
	defer time.AfterFunc(lingerTime, func() { f.end(errLingered) }).Stop()
	m, err := f.messages.Next()
	switch {
	case err == nil && TypeOf(m).Terminal():
		return Response{}, broken(document.StreamSingle, "the stream has more than one terminal event")
	case err == nil:
		return Response{}, broken(document.StreamLast, "an event follows the terminal one")
	case fault.Is(err, fault.TooLarge):
		return Response{}, err
	case f.over() != nil && !errors.Is(f.over(), errLingered):
		return Response{}, f.over()
	}
	return response, nil // also if the connection broke after the last event
}

// final reads the content of a terminal event.
func final(terminal Event, asked Request) (Response, error) {
	f, err := document.Read(terminal.Data)
	if err != nil {
		return Response{}, broken(document.StreamJSON, "the data of the terminal event %s", err)
	}
	return responseOf(f, asked, document.Terminal)
}

// readNotifier calls notify after each read that brings bytes.
type readNotifier struct {
	from   io.Reader
	notify func()
}

func (r *readNotifier) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if n > 0 {
		r.notify()
	}
	return n, err
}
