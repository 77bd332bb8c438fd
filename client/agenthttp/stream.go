package agenthttp

import (
	"errors"
	"io"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// lingerTime is how long a stream may stay open after its terminal event.
const lingerTime = 5 * time.Second

// follower reads one stream.
type follower struct {
	answer   *Answer
	asked    Request
	each     func(Event)
	silence  *httpwire.Silence
	messages *httpwire.EventReader
}

// follow reads the stream to its end.
func (f *follower) follow() (Response, error) {
	most := f.answer.client.opts.Silence
	f.silence = httpwire.EndAfterSilence(f.answer.end, most)
	defer f.silence.Stop(nil)
	f.messages = f.answer.eventsOf(f.silence.Reader(f.answer.Body, most))
	for {
		event, err := f.next()
		if err != nil {
			return Response{}, err
		}
		if event.Type.Terminal() {
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
	case f.answer.over() != nil:
		return Event{}, f.answer.over()
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
	f.silence.Last(lingerTime)
	m, err := f.messages.Next()
	switch {
	case err == nil && TypeOf(m).Terminal():
		return Response{}, broken(document.StreamSingle, "the stream has more than one terminal event")
	case err == nil:
		return Response{}, broken(document.StreamLast, "an event follows the terminal one")
	case fault.Is(err, fault.TooLarge):
		return Response{}, err
	case f.answer.over() != nil && !errors.Is(f.answer.over(), errSilent):
		return Response{}, f.answer.over()
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
