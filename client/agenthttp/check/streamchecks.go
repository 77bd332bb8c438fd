package check

import (
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/checklist"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func streamChecks() []checklist.Rule[*evidence] {
	list := []checklist.Rule[*evidence]{
		rule(
			"stream-status", "the stream endpoint answers a known task with 2xx", document.SectionEndpoints,
			judgeStreamStatus,
		),
		rule(
			document.StreamMedia, "the stream is declared as "+httpwire.TypeEvents, document.SectionSSE,
			judgeStreamMedia,
		),
		rule(
			"stream-framing", "the stream ends, after the empty line of its last event", document.SectionSSE,
			judged(judgeFraming),
		),
		rule("stream-event-type", "each event has an event: line", document.SectionSSE, judged(judgeTypes)),
		rule(document.StreamJSON, "the data of each event is JSON", document.SectionSSE, judged(judgeJSON)),
		rule(
			"stream-data-type", "the data of each event repeats the event's type", document.SectionByType,
			judged(judgeDataType),
		),
		rule("stream-unbuffered", "events are sent when they happen", document.SectionEndpoints,
			judged(judgeUnbuffered)),
		rule("stream-started", "a started event echoes request_id", document.SectionByType, judged(judgeStarted)),
		rule(
			document.StreamTerminal, "there is a terminal event: final, complete or done", document.SectionInvariant,
			judged(judgeTerminal),
		),
		rule(
			document.StreamSingle, "there is one terminal event, not more", document.SectionInvariant,
			judged(judgeSingle),
		),
		rule(document.StreamLast, "the terminal event is the last one", document.SectionInvariant, judged(judgeLast)),
	}
	for _, r := range document.Terminal {
		list = append(list, rule(r.ID, r.Title, r.Section, judged(judgeTerminalBy(r))))
	}
	list = append(list, answerChecks("stream-terminal", "the terminal event's", terminalAnswer)...)
	return append(
		list,
		rule(
			"stream-request-id-required", "a stream without request_id is refused with 4xx", document.SectionRequest,
			judgeStreamWithoutID,
		),
		rule(
			"stream-unsupported", "a stream of an unknown task_type is refused, or ends in a failure",
			document.SectionEndpoints, judgeStreamUnsupported,
		),
	)
}

func judgeStreamStatus(e *evidence) (Verdict, string) { return judgeStatus(&e.stream.answer) }

func judgeStreamWithoutID(e *evidence) (Verdict, string) {
	return judgeRefused(&e.stream.answer, &e.streamNoID)
}

func judgeStreamMedia(e *evidence) (Verdict, string) {
	if why := needs(&e.stream.answer); why != "" {
		return NotApplicable, why
	}
	if !e.stream.isStream() {
		return Fail, "its Content-Type is not " + httpwire.TypeEvents
	}
	return Pass, ""
}

// judged applies a rule to the stream of a known task, if there is one.
func judged(judge func(*streamed) (Verdict, string)) func(*evidence) (Verdict, string) {
	return func(e *evidence) (Verdict, string) {
		if why := hasStream(e); why != "" {
			return NotApplicable, why
		}
		return judge(&e.stream)
	}
}

// hasStream says why there is no stream of a known task, "" if there is one.
func hasStream(e *evidence) string {
	if why := needs(&e.stream.answer); why != "" {
		return why
	}
	if !e.stream.isStream() {
		return "there is no stream of events"
	}
	return ""
}

func judgeFraming(s *streamed) (Verdict, string) {
	if s.end != "" {
		return Fail, s.end
	}
	return Pass, ""
}

// judgeUnbuffered detects a buffered stream: it took a while, and all of its events came
// together at its end.
func judgeUnbuffered(s *streamed) (Verdict, string) {
	const slow, together = time.Second, 20 // a twentieth of the time
	switch {
	case len(s.messages) < 2:
		return NotApplicable, "there are not two events to compare"
	case s.took < slow:
		return NotApplicable, "the stream is too short to tell: give it inputs that take longer than a second"
	case s.messages[0].at > s.took-s.took/together:
		return Fail, fmt.Sprintf("all %d events came together, after %s: flush after each", len(s.messages),
			s.took.Round(time.Millisecond))
	}
	return Pass, ""
}

func judgeStarted(s *streamed) (Verdict, string) {
	for _, m := range s.messages {
		if m.kind() != agenthttp.Started {
			continue
		}
		f, err := document.Read([]byte(m.Data))
		if err != nil {
			return NotApplicable, "its data isn't a JSON object"
		}
		if why := document.EchoesID(f, s.ids()); why != "" {
			return Fail, why
		}
		return Pass, ""
	}
	return NotApplicable, "there is no event of this type"
}

// judgeStreamUnsupported accepts a failure in the stream as a refusal, too: the status may
// have been sent before the agent looks at the task.
func judgeStreamUnsupported(e *evidence) (Verdict, string) {
	s := &e.streamNoTask
	if !s.isStream() {
		return judgeRefused(&e.stream.answer, &s.answer)
	}
	if !s.failed() {
		return Fail, "it is answered with a stream that doesn't end in a failure"
	}
	return Pass, ""
}

func judgeTypes(s *streamed) (Verdict, string) {
	if len(s.messages) == 0 {
		return NotApplicable, "there is no event"
	}
	for i, m := range s.messages {
		if m.Name == httpwire.DefaultEventName {
			return Fail, fmt.Sprintf("event %d of %d has none", i+1, len(s.messages))
		}
	}
	return Pass, ""
}

func judgeJSON(s *streamed) (Verdict, string) {
	if len(s.messages) == 0 {
		return NotApplicable, "there is no event"
	}
	for i, m := range s.messages {
		err := document.Check([]byte(m.Data))
		if err == nil && m.kind().Terminal() {
			_, err = document.Read([]byte(m.Data))
		}
		if err != nil {
			return Fail, fmt.Sprintf("the data of event %d of %d %s", i+1, len(s.messages), err)
		}
	}
	return Pass, ""
}

func (m timed) kind() agenthttp.EventType { return agenthttp.TypeOf(m.Event) }

// judgeDataType wants the type of an event in its data as well, for readers that see the data
// alone. A type that is left out is allowed, and so is one of the agent's own in a progress
// event, which has no strict shape. Another of the contract's types would mislead.
func judgeDataType(s *streamed) (Verdict, string) {
	if len(s.messages) == 0 {
		return NotApplicable, "there is no event"
	}
	advice := ""
	for i, m := range s.messages {
		f, err := document.Read([]byte(m.Data))
		said := agenthttp.EventType(f.Text("type"))
		if err != nil || m.Name == httpwire.DefaultEventName || said == m.kind() {
			continue // or it has rules of its own
		}
		which := fmt.Sprintf("the data of event %d of %d", i+1, len(s.messages))
		switch {
		case !f.Has("type"):
			advice = which + " has no type: repeat the event's name in it"
		case said.Known() || m.kind() == agenthttp.Started || m.kind().Terminal():
			return Fail, which + " has another type than its event: line"
		default:
			advice = which + " has a type of its own: who reads data alone takes it for the event's"
		}
	}
	if advice != "" {
		return Advice, advice
	}
	return Pass, ""
}

// terminals counts the terminal events and returns the last one.
func (s *streamed) terminals() (n int, last *timed) {
	for i := range s.messages {
		if s.messages[i].kind().Terminal() {
			n, last = n+1, &s.messages[i]
		}
	}
	return n, last
}

func judgeTerminal(s *streamed) (Verdict, string) {
	switch n, _ := s.terminals(); {
	case n == 0 && s.end != "":
		return NotApplicable, "the stream didn't come to its end"
	case n == 0:
		return Fail, fmt.Sprintf("none of its %d events is one", len(s.messages))
	}
	return Pass, ""
}

const noTerminal = "there is no terminal event"

func judgeSingle(s *streamed) (Verdict, string) {
	switch n, _ := s.terminals(); n {
	case 0:
		return NotApplicable, noTerminal
	case 1:
		return Pass, ""
	default:
		return Fail, fmt.Sprintf("there are %d", n)
	}
}

func judgeLast(s *streamed) (Verdict, string) {
	n, last := s.terminals()
	switch {
	case n == 0:
		return NotApplicable, noTerminal
	case last != &s.messages[len(s.messages)-1]:
		return Fail, "another event follows it"
	}
	return Pass, ""
}

// terminalOf is the last terminal event of a stream.
func terminalOf(s *streamed) (subject, string) {
	switch {
	case s.raw == nil:
		return subject{}, noTerminal
	case s.docErr != nil:
		return subject{}, "its data isn't a JSON object"
	}
	return subject{s.doc, s.ids(), document.Terminal}, ""
}

// terminalAnswer is the terminal event for a known task.
func terminalAnswer(e *evidence) (subject, string) {
	if why := hasStream(e); why != "" {
		return subject{}, why
	}
	return terminalOf(&e.stream)
}

func judgeTerminalBy(r document.Rule) func(*streamed) (Verdict, string) {
	return func(s *streamed) (Verdict, string) {
		a, why := terminalOf(s)
		if why != "" {
			return NotApplicable, why
		}
		return judgeBy(r, a.doc, a.asked)
	}
}
