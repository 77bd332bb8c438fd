package check

import (
	"fmt"

	"github.com/agent-on-demand/aod/agentapi"
	"github.com/agent-on-demand/aod/agentapi/internal/document"
	"github.com/agent-on-demand/aod/httpwire"
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

func (m timed) kind() agentapi.EventType { return agentapi.TypeOf(m.Event) }
