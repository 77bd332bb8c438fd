package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	pbv0 "github.com/a2aproject/a2a-go/a2apb"
	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/agent-on-demand/aod/cmd/aod/config"
)

const (
	oldMessage = `"message":{"kind":"message","messageId":"m3","taskId":"ID","role":"user","parts":[{"kind":"text","text":"hi"}]}`
	oldProto   = `{"messageId":"m4","taskId":"ID","role":"ROLE_USER","content":[{"text":"hi"}],"parts":[{"text":"hi"}]}` // as HTTP+JSON and gRPC call them
	oldPush    = `{"parent":"tasks/ID","configId":"p","config":{"name":"tasks/ID/pushNotificationConfigs/p","pushNotificationConfig":{"id":"p","url":"http://127.0.0.1:9/in"}}}`
)

// oldRPC, oldREST and oldGRPC are the methods of A2A 0.3 about the task ID, in its three bindings.
var (
	oldRPC = map[string]string{
		"message/send": `{` + oldMessage + `}`, "message/stream": `{` + oldMessage + `}`, "tasks/get": `{"id":"ID"}`, "tasks/cancel": `{"id":"ID"}`, "tasks/resubscribe": `{"id":"ID"}`,
		"tasks/pushNotificationConfig/set":    `{"taskId":"ID","pushNotificationConfig":{"id":"p","url":"http://127.0.0.1:9/in"}}`,
		"tasks/pushNotificationConfig/get":    `{"id":"ID","pushNotificationConfigId":"p"}`,
		"tasks/pushNotificationConfig/list":   `{"id":"ID"}`,
		"tasks/pushNotificationConfig/delete": `{"id":"ID","pushNotificationConfigId":"p"}`,
	}
	oldREST = map[string]string{
		"POST /v1/message:send": `{"message":` + oldProto + `}`, "POST /v1/message:stream": `{"message":` + oldProto + `}`,
		"GET /v1/tasks/ID": "", "POST /v1/tasks/ID:cancel": "", "GET /v1/tasks/ID:subscribe": "",
		"POST /v1/tasks/ID/pushNotificationConfigs":  oldPush,
		"GET /v1/tasks/ID/pushNotificationConfigs/p": "", "GET /v1/tasks/ID/pushNotificationConfigs": "", "DELETE /v1/tasks/ID/pushNotificationConfigs/p": "",
	}
	oldGRPC = map[string]string{
		"SendMessage": `{"request":` + oldProto + `}`, "SendStreamingMessage": `{"request":` + oldProto + `}`, "GetTask": `{"name":"tasks/ID"}`, "CancelTask": `{"name":"tasks/ID"}`,
		"TaskSubscription": `{"name":"tasks/ID"}`, "CreateTaskPushNotificationConfig": oldPush, "GetTaskPushNotificationConfig": `{"name":"tasks/ID/pushNotificationConfigs/p"}`,
		"ListTaskPushNotificationConfig": `{"parent":"tasks/ID"}`, "DeleteTaskPushNotificationConfig": `{"name":"tasks/ID/pushNotificationConfigs/p"}`, "GetAgentCard": "", "ListTasks": "",
	}
)

// taskCall asks about a task as a token, and returns what it is told.
type taskCall func(name, id string) string

// taskCalls are all ways to ask about a task: each method of A2A 1.0 and 0.3 in each binding, and those of MCP.
func (w *teams) taskCalls() map[string]taskCall {
	w.Helper()
	calls := map[string]taskCall{}
	in := func(text, id string) string { return strings.ReplaceAll(text, "ID", id) }
	asks := func(name, method, path, body string) string { return said(w, w.begins(name, method, path, body)) }
	for binding, call := range w.bindings() {
		for method := range aboutTask {
			if !slices.Contains(ofNoTask, method) {
				calls[binding+" "+method] = func(name, id string) string { _, answer := call(name, method, id); return answer }
			}
		}
	}
	for method, params := range oldRPC {
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
		calls["0.3 "+method] = func(name, id string) string { return asks(name, http.MethodPost, "/a2a/writer", in(body, id)) }
	}
	for route, body := range oldREST {
		verb, path, _ := strings.Cut(route, " ")
		calls["0.3 "+route] = func(name, id string) string { return asks(name, verb, "/a2a/writer"+in(path, id), in(body, id)) }
	}
	for full, method := range methodsOf(pbv0.File_a2a_proto) {
		params, known := oldGRPC[string(method.Name())]
		if !known {
			w.Errorf("oldGRPC has no row for %s", method.Name())
		}
		if params != "" {
			calls["0.3 "+full] = func(name, id string) string { _, answer := w.byGRPC(name, full, method, in(params, id)); return answer }
		}
	}
	for method := range aboutRun {
		calls["mcp "+method] = func(name, id string) string { _, answer := w.byMCP(name, method, id); return answer }
	}
	return calls
}

// What b asks by A2A and MCP about a's tasks is answered as for a task that never was, and changes nothing of a's. Of one
// of them each method tells a something else.
func TestNoProtocolTellsATeamOfAnother(t *testing.T) {
	w := newTeams(t, func(c *config.Config) { c.A2A.Root = "writer" })
	w.fill()
	calls, before := w.taskCalls(), w.all("a")
	none := map[string]string{}
	for what, call := range calls {
		none[what] = strings.ReplaceAll(call("b", noRun), noRun, "ID")
		for _, id := range w.has["run"] {
			if got := strings.ReplaceAll(call("b", id), id, "ID"); got != none[what] {
				t.Errorf("%s tells of a's task:\n%s\nand of none:\n%s", what, got, none[what])
			}
		}
	}
	for what, after := range w.all("a") {
		if before[what] != after {
			t.Errorf("%s was\n%s\nand is\n%s", what, before[what], after)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(calls)) {
		if !slices.ContainsFunc(w.has["run"], func(id string) bool { return strings.ReplaceAll(calls[what]("a", id), id, "ID") != none[what] }) {
			t.Errorf("%s tells a nothing of its own tasks, either: %s", what, none[what])
		}
	}
}

// A unit of a's is none for b, by every address that names one.
func TestNoProtocolTellsATeamOfAUnitOfAnother(t *testing.T) {
	w := newTeams(t, nil)
	w.fill()
	const begins = `{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"data":{}}]},"configuration":{"returnImmediately":true}}`
	send := "/lf.a2a.v1.A2AService/SendMessage"
	calls := map[string]func(name, unit string) string{
		"JSON-RPC": func(name, unit string) string {
			return said(w, w.begins(name, http.MethodPost, "/a2a/"+unit, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":`+begins+`}`))
		},
		"HTTP+JSON": func(name, unit string) string {
			return said(w, w.begins(name, http.MethodPost, "/a2a/"+unit+"/message:send", begins))
		},
		"gRPC": func(name, unit string) string {
			_, answer := w.byGRPC(name, send, methodsOf(pbv1.File_a2av1_proto)[send], strings.Replace(begins, "{", `{"tenant":"`+unit+`",`, 1))
			return answer
		},
		"all units": func(name, unit string) string {
			return said(w, w.begins(name, http.MethodPost, "/a2a/_/message:send", strings.Replace(begins, `"role"`, `"metadata":{"unit":"`+unit+`"},"role"`, 1)))
		},
		"extended card": func(name, unit string) string {
			return said(w, w.begins(name, http.MethodGet, "/a2a/"+unit+"/extendedAgentCard", ""))
		},
		"card": func(name, unit string) string {
			return said(w, w.begins(name, http.MethodGet, "/a2a/"+unit+"/.well-known/agent-card.json", ""))
		},
		"mcp": func(name, unit string) string {
			tool := strings.ReplaceAll(unit, ".", "_")
			return strings.ReplaceAll(said(w, w.begins(name, http.MethodPost, "/mcp", statelessly("tools/call", `{"name":"`+tool+`","arguments":{}}`), statelessHeaders("tools/call", tool)...)), tool, unit)
		},
	}
	for what, call := range calls {
		none := strings.ReplaceAll(call("b", "a.omega-unit"), "a.omega-unit", "UNIT")
		for name, told := range map[string]bool{"b": false, "a": true, "operator": true} {
			if got := strings.ReplaceAll(call(name, "a.alpha-unit"), "a.alpha-unit", "UNIT"); got != none != told {
				t.Errorf("%s tells %s of a's unit:\n%s\nand of none:\n%s", what, name, got, none)
			}
		}
	}
	if short, full := calls["card"]("a", "alpha-unit"), calls["card"]("a", "a.alpha-unit"); !strings.HasPrefix(short, "200") || !strings.HasPrefix(full, "200") {
		t.Errorf("its card is %s, and by its short name %s", full, short)
	}
}

// The tools of MCP are the units that the client of the request may know of, whoever asked before.
func TestToolsAreTheUnitsOfTheOneWhoAsks(t *testing.T) {
	w := newTeams(t, nil)
	w.fill()
	list := statelessly("tools/list", "{}")
	sessions := map[string][]string{}
	for _, name := range []string{"a", "b", "operator"} {
		sessions[name] = w.mcpSession(name)
	}
	for range 2 {
		for name, sees := range map[string]bool{"a": true, "b": false, "operator": true} {
			_, answer := w.asks(name, http.MethodPost, "/mcp", list, statelessHeaders("tools/list", "")...)
			_, inSession := w.asks(name, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, sessions[name]...)
			for _, answer := range []string{answer, inSession} {
				if !strings.Contains(answer, `"writer"`) || strings.Contains(answer, "a_alpha-unit") != sees {
					t.Errorf("the tools of %s are %s", name, answer)
				}
			}
		}
	}
	of := func(name, session string) string {
		headers := slices.Clone(sessions["a"])
		headers[1] = "Mcp-Session-Id: " + session
		return said(w, w.begins(name, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":3,"method":"ping"}`, headers...))
	}
	if got, none := of("b", strings.TrimPrefix(sessions["a"][1], "Mcp-Session-Id: ")), of("b", "none"); got != none {
		t.Errorf("a's session tells b %s, and none %s", got, none)
	}
}
