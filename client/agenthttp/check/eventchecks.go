package check

import (
	"fmt"

	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

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
