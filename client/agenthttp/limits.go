package agenthttp

import (
	"cmp"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Limits bound what is read from an agent, in bytes. A limit of 0 is the default.
type Limits struct {
	Answer int64 // the body of a sync answer
	Line   int64 // one line of a stream, without its end
	Event  int64 // the data of one event of a stream
	Stream int64 // a stream as a whole
}

// maxRefusal bounds the body of an error response, in bytes; the rest is ignored.
const maxRefusal = 1 << 20

// DefaultLimits are 16 MiB for an answer, a line and an event, and 256 MiB for a stream.
func DefaultLimits() Limits {
	const answer = 16 << 20
	return Limits{Answer: answer, Line: answer, Event: answer, Stream: 16 * answer}
}

// orDefault replaces zero limits by the defaults.
func (l Limits) orDefault() Limits {
	otherwise := DefaultLimits()
	return Limits{
		Answer: cmp.Or(max(l.Answer, 0), otherwise.Answer), Line: cmp.Or(max(l.Line, 0), otherwise.Line),
		Event: cmp.Or(max(l.Event, 0), otherwise.Event), Stream: cmp.Or(max(l.Stream, 0), otherwise.Stream),
	}
}

// Events are the limits of a stream's reader.
func (l Limits) Events() httpwire.EventLimits {
	l = l.orDefault()
	return httpwire.EventLimits{Line: l.Line, Event: l.Event, Stream: l.Stream, Whose: "the stream of the agent"}
}
