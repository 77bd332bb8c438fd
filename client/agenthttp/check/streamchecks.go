package check

import (
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func streamChecks() []check {
	list := []check{
		{
			"stream-status", "the stream endpoint answers a known task with 2xx", document.SectionEndpoints,
			judgeStreamStatus,
		},
		{
			document.StreamMedia, "the stream is declared as " + httpwire.TypeEvents, document.SectionSSE,
			judgeStreamMedia,
		},
		{
			"stream-framing", "the stream ends, after the empty line of its last event", document.SectionSSE,
			judged(judgeFraming),
		},
		{"stream-event-type", "each event has an event: line", document.SectionSSE, judged(judgeTypes)},
		{document.StreamJSON, "the data of each event is JSON", document.SectionSSE, judged(judgeJSON)},
		{
			"stream-data-type", "the data of each event repeats the event's type", document.SectionByType,
			judged(judgeDataType),
		},
		{"stream-unbuffered", "events are sent when they happen", document.SectionEndpoints, judged(judgeUnbuffered)},
		{"stream-started", "a started event echoes request_id", document.SectionByType, judged(judgeStarted)},
		{
			document.StreamTerminal, "there is a terminal event: final, complete or done", document.SectionInvariant,
			judged(judgeTerminal),
		},
		{
			document.StreamSingle, "there is one terminal event, not more", document.SectionInvariant,
			judged(judgeSingle),
		},
		{document.StreamLast, "the terminal event is the last one", document.SectionInvariant, judged(judgeLast)},
	}
	for _, r := range document.Terminal {
		list = append(list, check{r.ID, r.Title, r.Section, judged(judgeTerminalBy(r))})
	}
	list = append(list, answerChecks("stream-terminal", "the terminal event's", terminalAnswer)...)
	return append(
		list,
		check{
			"stream-request-id-required", "a stream without request_id is refused with 4xx", document.SectionRequest,
			judgeStreamWithoutID,
		},
		check{
			"stream-unsupported", "a stream of an unknown task_type is refused, or ends in a failure",
			document.SectionEndpoints, judgeStreamUnsupported,
		},
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
			return NotApplicable, "its data is no JSON object"
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
