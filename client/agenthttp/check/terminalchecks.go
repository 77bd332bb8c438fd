package check

import (
	"fmt"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
)

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
		return subject{}, "its data is no JSON object"
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
