package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

func TestWhatIsToldOfAToolCall(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("k", shownArgument)
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf(`"a%02d":"\u0001%s x"`, i, strings.Repeat("\\u0001", shownArgument-9))
	}
	for name, c := range map[string]struct {
		speaker speaker
		line    string
		want    api.ToolNews
	}{
		"a call": {
			streamJSON{},
			`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c","name":"Bash","input":{"command":"ls <a>","n":1}}]}}`,
			api.ToolNews{Arguments: `{"command":"ls <a>","n":1}`, State: api.ToolRunning},
		},
		"long arguments, which are cut between words": {
			streamJSON{},
			`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c","name":"Bash","input":{"a":"one ` + key + `","b":"` + key + `k","c":["` + key + `"]}}]}}`,
			api.ToolNews{Arguments: `{"a":"one …","b":"…","c":"…"}`, State: api.ToolRunning},
		},
		"arguments that are too many": {
			streamJSON{},
			`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c","name":"Bash","input":{` + strings.Join(many, ",") + `}}]}}`,
			api.ToolNews{State: api.ToolRunning},
		},
		"output in blocks": {
			streamJSON{},
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a\nb\n"},{"type":"image"},{"type":"text","text":"c"}]}]}}`,
			api.ToolNews{State: api.ToolDone, Lines: 3},
		},
		"a failure": {
			streamJSON{},
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"no"}]}}`,
			api.ToolNews{State: api.ToolFailed, Lines: 1},
		},
		"a call of ACP": {
			acp{},
			acpUpdate(`"tool_call","toolCallId":"c","title":"t","status":"pending","rawInput":{"path":"a"}`),
			api.ToolNews{Arguments: `{"path":"a"}`, State: api.ToolRunning},
		},
		"the end of a call of ACP": {
			acp{},
			acpUpdate(`"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a\nb"}},{"type":"diff"}]`),
			api.ToolNews{State: api.ToolDone, Lines: 2},
		},
		"odd types": {
			acp{}, acpUpdate(`"tool_call","toolCallId":"c","status":7,"rawInput":[1],"content":{"a":1}`), api.ToolNews{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document, err := decode([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			told := c.speaker.hear(document, State{Session: "S", Pending: "aod-1-prompt"}, &speech{})
			if len(told.events) != 1 || told.events[0].Kind != EventTool || told.events[0].ID != "c" {
				t.Fatalf("%+v", told.events)
			}
			if diff := cmp.Diff(c.want, told.events[0].Tool); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func acpUpdate(fields string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":` + fields + `}}}`
}
