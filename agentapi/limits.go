package agentapi

import "github.com/agent-on-demand/aod/httpwire"

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
	defaults := DefaultLimits()
	for _, limit := range []struct{ set, otherwise *int64 }{
		{&l.Answer, &defaults.Answer}, {&l.Line, &defaults.Line}, {&l.Event, &defaults.Event}, {&l.Stream, &defaults.Stream},
	} {
		if *limit.set <= 0 {
			*limit.set = *limit.otherwise
		}
	}
	return l
}

// Events are the limits of a stream's reader.
func (l Limits) Events() httpwire.EventLimits {
	l = l.orDefault()
	return httpwire.EventLimits{Line: l.Line, Event: l.Event, Stream: l.Stream, Whose: "the stream of the agent"}
}
