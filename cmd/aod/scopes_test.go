package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	pbv0 "github.com/a2aproject/a2a-go/a2apb"
	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/access"
)

// about is a method of A2A 1.0 that is called about the task ID, in its three bindings.
type about struct {
	params     string // of JSON-RPC and of gRPC; with a verb and no path also the body of HTTP+JSON
	verb, path string
}

const (
	toTask = `{"message":{"messageId":"m1","taskId":"ID","role":"ROLE_USER","parts":[{"text":"hi"}]}}`
	toPush = "/tasks/ID/pushNotificationConfigs"
)

var aboutTask = map[string]about{
	"SendMessage":                      {toTask, "POST", "/message:send"},
	"SendStreamingMessage":             {toTask, "POST", "/message:stream"},
	"GetTask":                          {`{"id":"ID"}`, "GET", "/tasks/ID"},
	"ListTasks":                        {`{}`, "GET", "/tasks"},
	"CancelTask":                       {`{"id":"ID"}`, "POST", "/tasks/ID:cancel"},
	"SubscribeToTask":                  {`{"id":"ID"}`, "POST", "/tasks/ID:subscribe"},
	"CreateTaskPushNotificationConfig": {`{"taskId":"ID","id":"p","url":"http://127.0.0.1:9/in"}`, "POST", toPush},
	"GetTaskPushNotificationConfig":    {`{"taskId":"ID","id":"p"}`, "GET", toPush + "/p"},
	"ListTaskPushNotificationConfigs":  {`{"taskId":"ID"}`, "GET", toPush},
	"DeleteTaskPushNotificationConfig": {`{"taskId":"ID","id":"p"}`, "DELETE", toPush + "/p"},
	"GetExtendedAgentCard":             {`{}`, "GET", "/extendedAgentCard"},
}

// ofNoTask are the methods that name none.
var ofNoTask = []string{"ListTasks", "GetExtendedAgentCard"}

// methodsOf are the methods of the protocol's own description of a version, by their full names.
func methodsOf(file protoreflect.FileDescriptor) map[string]protoreflect.MethodDescriptor {
	all := map[string]protoreflect.MethodDescriptor{}
	for i := range file.Services().Len() {
		service := file.Services().Get(i)
		for j := range service.Methods().Len() {
			method := service.Methods().Get(j)
			all[fmt.Sprintf("/%s/%s", service.FullName(), method.Name())] = method
		}
	}
	return all
}

// bearing returns a context of calls with the token of a name.
func (w *walled) bearing(ctx context.Context, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+w.keys[name])
}

// byGRPC calls a method with the token of a name, and returns its first answer as a text.
func (w *walled) byGRPC(name, full string, method protoreflect.MethodDescriptor, params string) (codes.Code, string) {
	w.Helper()
	messageOf := func(d protoreflect.MessageDescriptor) proto.Message {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
		w.must(err)
		return kind.New().Interface()
	}
	in, out := messageOf(method.Input()), messageOf(method.Output())
	w.must(protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal([]byte(params), in))
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	if name != "" {
		ctx = w.bearing(ctx, name)
	}
	stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, full)
	w.must(err)
	if err := stream.SendMsg(in); err != nil && !errors.Is(err, io.EOF) {
		w.Fatal(err)
	}
	w.must(stream.CloseSend())
	err = stream.RecvMsg(out)
	return status.Code(err), fmt.Sprint(status.Convert(err).Message(), protojson.Format(out))
}

// bindings are the ways to call a method of 1.0, by their names. Each returns whether it was refused
// for its token's scope, and what was answered.
func (w *walled) bindings() map[string]func(name, method, id string) (refused bool, answer string) {
	service := methodsOf(pbv1.File_a2av1_proto)
	in := func(text, id string) string { return strings.ReplaceAll(text, "ID", id) }
	return map[string]func(name, method, id string) (bool, string){
		"JSON-RPC": func(name, method, id string) (bool, string) {
			code, answer := w.asks(name, http.MethodPost, "/a2a/writer", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+in(aboutTask[method].params, id)+`}`)
			return code == http.StatusForbidden, answer
		},
		"HTTP+JSON": func(name, method, id string) (bool, string) {
			row, body := aboutTask[method], ""
			if row.verb == http.MethodPost {
				body = in(row.params, id)
			}
			code, answer := w.asks(name, row.verb, "/a2a/writer"+in(row.path, id), body)
			return code == http.StatusForbidden, answer
		},
		"gRPC": func(name, method, id string) (bool, string) {
			full := "/lf.a2a.v1.A2AService/" + method
			params := strings.Replace(in(aboutTask[method].params, id), "{", `{"tenant":"writer",`, 1)
			code, answer := w.byGRPC(name, full, service[full], strings.Replace(params, ",}", "}", 1))
			return code == codes.PermissionDenied, answer
		},
	}
}

// withScopes is a server with a token for each scope.
func withScopes(t *testing.T) *walled {
	w := newWalled(t, func(c *config.Config) { c.A2A.Push = true })
	for _, scope := range access.Scopes {
		w.add("only-"+string(scope), scope)
	}
	return w
}

// Which scope a route of HTTP needs is in httpapi's table: this is the same for the methods that
// stand behind them, and for gRPC.
func TestEachMethodOfEachProtocolNeedsItsScope(t *testing.T) {
	w := withScopes(t)
	held := func(what, name string, refused bool) {
		t.Helper()
		if want := name != "only-run" && name != "only-admin"; refused != want {
			t.Errorf("%s with the token %s: refused is %v", what, name, refused)
		}
	}
	for name := range w.keys {
		for binding, call := range w.bindings() {
			for _, method := range methodsOf(pbv1.File_a2av1_proto) {
				if _, known := aboutTask[string(method.Name())]; !known {
					t.Fatalf("aboutTask has no row for %s", method.Name())
				}
				refused, _ := call(name, string(method.Name()), "01a1feba-b3df-731f-9394-1f77680bf6ce")
				held(binding+" "+string(method.Name()), name, refused)
			}
		}
		for _, file := range []protoreflect.FileDescriptor{pbv1.File_a2av1_proto, pbv0.File_a2a_proto} {
			for full, method := range methodsOf(file) {
				code, _ := w.byGRPC(name, full, method, "{}")
				held(full, name, code == codes.PermissionDenied)
				if code, _ := w.byGRPC("", full, method, "{}"); code != codes.Unauthenticated {
					t.Errorf("%s without a token: %v", full, code)
				}
			}
		}
		for method := range aboutRun {
			code, _ := w.byMCP(name, method, "01a1feba-b3df-731f-9394-1f77680bf6ce")
			held("mcp "+method, name, code == http.StatusForbidden)
		}
	}
}

// aboutRun are the methods of MCP by which a client comes to a run, ID, with their parameters.
var aboutRun = map[string]string{
	"tasks/get":      `"taskId":"ID"`,
	"tasks/cancel":   `"taskId":"ID"`,
	"tasks/update":   `"taskId":"ID"`,
	"resources/read": `"uri":"aod://runs/ID/files/report.txt"`,
	"tools/call":     `"name":"writer","arguments":{"doc":"aod://runs/ID/files/report.txt"}`,
}

// byMCP calls a method without a session.
func (w *walled) byMCP(name, method, id string) (status int, answer string) {
	params := strings.ReplaceAll(aboutRun[method], "ID", id)
	headers := []string{"Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: " + method}
	switch method {
	case "tools/call":
		headers = append(headers, "Mcp-Name: writer")
	case "resources/read":
		headers = append(headers, "Mcp-Name: aod://runs/"+id+"/files/report.txt")
	}
	return w.asks(name, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, headers...)
}

// mcpSession opens a session of MCP with the token of a name, and returns the headers of its further
// requests.
func (w *walled) mcpSession(name string) (headers []string) {
	w.Helper()
	response := w.begins(name, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		"Accept: application/json, text/event-stream")
	defer response.Body.Close()
	session := response.Header.Get("Mcp-Session-Id")
	if session == "" {
		w.Fatalf("no session: %s", response.Status)
	}
	headers = []string{"Accept: application/json, text/event-stream", "Mcp-Session-Id: " + session, "Mcp-Protocol-Version: 2025-11-25"}
	w.asks(name, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers...)
	return headers
}

// inSession opens a session of MCP, and returns how it is asked for a file of a run, maybe by
// another client.
func (w *walled) inSession(opener string) func(name, id string) (status int, answer string) {
	w.Helper()
	headers := w.mcpSession(opener)
	return func(name, id string) (int, string) {
		status, answer := w.asks(name, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{`+strings.ReplaceAll(aboutRun["resources/read"], "ID", id)+`}}`, headers...)
		return status, answer[max(0, strings.LastIndex(answer, "data: ")):] // each event has an id of its own
	}
}

const noRun = "01a1feba-b3df-731f-9394-1f77680bf6ce"

// withOwners is a server with a run of ada's, which bob may not see, and eve may.
func withOwners(t *testing.T) (w *walled, hers string) {
	w = newWalled(t, func(c *config.Config) { c.A2A.Push = true })
	w.add("ada", access.Run)
	w.add("bob", access.Run)
	w.add("eve", access.Run, access.Read)
	return w, w.made("ada", "").ID
}

// hides holds that a call about a run says nothing of it to bob: the same as of none. Ada and eve
// are told something else.
func (w *walled) hides(what, hers string, call func(name, id string) string) {
	w.Helper()
	answer := func(name, id string) string { return strings.ReplaceAll(call(name, id), id, "ID") }
	none := answer("bob", noRun)
	if got := answer("bob", hers); got != none {
		w.Errorf("%s tells a token of another's run:\n%s\nand of none:\n%s", what, got, none)
	}
	for _, name := range []string{"ada", "eve"} {
		if got := answer(name, hers); got == none {
			w.Errorf("%s tells %s nothing: %s", what, name, got)
		}
	}
}

func TestATokenSeesByNoProtocolWhatAnotherOneMade(t *testing.T) {
	w, hers := withOwners(t)
	his := w.made("bob", "").ID
	for binding, call := range w.bindings() {
		for _, method := range slices.Sorted(maps.Keys(aboutTask)) {
			if !slices.Contains(ofNoTask, method) {
				w.hides(binding+" "+method, hers, func(name, id string) string { _, answer := call(name, method, id); return answer })
			}
		}
		for name, sees := range map[string][2]bool{"ada": {true, false}, "bob": {false, true}, "eve": {true, true}} {
			_, answer := call(name, "ListTasks", "")
			if got := [2]bool{strings.Contains(answer, hers), strings.Contains(answer, his)}; got != sees {
				t.Errorf("%s ListTasks shows %s %v of the two tasks: %s", binding, name, got, answer)
			}
		}
	}
	for method := range aboutRun {
		w.hides("mcp "+method, hers, func(name, id string) string { _, answer := w.byMCP(name, method, id); return answer })
	}
	sessions := map[string]func(name, id string) (int, string){}
	for name := range w.keys {
		sessions[name] = w.inSession(name)
	}
	w.hides("a session of MCP", hers, func(name, id string) string { _, answer := sessions[name](name, id); return answer })
	if code, answer := sessions["ada"]("bob", hers); code != http.StatusNotFound || strings.Contains(answer, "canary") {
		t.Errorf("another's session answers %d %s", code, answer)
	}
	for _, route := range []string{"cancel", "rerun", "messages"} {
		body := map[string]string{"messages": `{"parts":[{"text":"hi"}]}`}[route]
		w.hides("/v1 "+route, hers, func(name, id string) string {
			_, answer := w.asks(name, http.MethodPost, "/v1/runs/"+id+"/"+route, body)
			return answer
		})
	}
	if code, _ := w.asks("bob", http.MethodGet, "/v1/runs/"+his, ""); code != http.StatusForbidden {
		t.Errorf("/v1 shows a token without the scope read its own run: %d", code)
	}
}

// Open cards show what the operator put there. What was uploaded needs a token.
func TestOpenCardsShowNoUploads(t *testing.T) {
	const path = "/.well-known/agent-card.json"
	w := newWalled(t, nil)
	w.add("up", access.Upload)
	w.keys["revoked"] = "aod_nobody"
	if code, answer := w.asks("up", http.MethodPut, "/v1/units/sent", w.archive("sent"), "Content-Type: application/x-tar"); code != http.StatusCreated {
		t.Fatalf("%d %s", code, answer)
	}
	for name, shown := range map[string]bool{"": false, "revoked": false, "up": true} {
		code, card := w.asks(name, http.MethodGet, path, "")
		if code != http.StatusOK || !strings.Contains(card, `"writer"`) || strings.Contains(card, `"sent"`) != shown {
			t.Errorf("the card of all units is, with the token %q: %d %s", name, code, card)
		}
		code, card = w.asks(name, http.MethodGet, "/a2a/sent"+path, "")
		_, none := w.asks(name, http.MethodGet, "/a2a/nothing"+path, "")
		if (code == http.StatusOK) != shown || !shown && card != none {
			t.Errorf("the card of an upload is, with the token %q: %d %s", name, code, card)
		}
	}
}
