package a2a

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

// refusedCase is a request that is refused in the same way in every binding and version.
type refusedCase struct {
	name   string
	before func(*harness)
	opts   func(*Options)
	rpc10  [2]string // method and params; "": the binding has no such case
	rpc03  [2]string
	rest10 [3]string // method, path below the agent, and body
	rest03 [3]string
	header []string
	code   int
	status int
	reason string
	retry  bool
}

const unknownRun = "0198c0de-0000-7000-8000-999999999999"

func parts10(parts string) string {
	return `{"message":{"messageId":"m","role":"ROLE_USER","parts":[` + parts + `]}}`
}

func parts03(parts string) string {
	return `{"message":{"kind":"message","messageId":"m","role":"user","parts":[` + parts + `]},"configuration":{"blocking":true}}`
}

func proto03(parts string) string {
	return `{"message":{"messageId":"m","role":"ROLE_USER","content":[` + parts + `]},"configuration":{"blocking":true}}`
}

// sends is the same message for all bindings.
func (c refusedCase) sends(part10, part03, partProto string) refusedCase {
	c.rpc10 = [2]string{"SendMessage", parts10(part10)}
	c.rest10 = [3]string{"POST", "/message:send", parts10(part10)}
	if part03 != "" {
		c.rpc03 = [2]string{"message/send", parts03(part03)}
	}
	if partProto != "" {
		c.rest03 = [3]string{"POST", "/v1/message:send", proto03(partProto)}
	}
	return c
}

func text(c refusedCase) refusedCase {
	return c.sends(`{"text":"hi"}`, `{"kind":"text","text":"hi"}`, `{"text":"hi"}`)
}

func ended(w *harness) { w.rpc("echo", "SendMessage", parts10(`{"text":"x"}`)) }

func refusedCases() []refusedCase {
	ofTask := func(c refusedCase, id string) refusedCase {
		c.rpc10, c.rpc03 = [2]string{"GetTask", `{"id":"` + id + `"}`}, [2]string{"tasks/get", `{"id":"` + id + `"}`}
		c.rest10, c.rest03 = [3]string{"GET", "/tasks/" + id, ""}, [3]string{"GET", "/v1/tasks/" + id, ""}
		return c
	}
	busyFault := func(w *harness) { w.refuses = fault.New(fault.Busy, "too many runs wait") }
	down := func(w *harness) { w.refuses = fault.New(fault.Unavailable, "the server ends") }
	contract := func(w *harness) {
		w.refuses = fault.New(fault.Input, "the input breaks the contract").WithFindings([]fault.Finding{{Pointer: "/count", Message: "must be an integer"}})
	}
	return []refusedCase{
		{
			name: "an unknown method", code: -32601, status: 404, reason: "METHOD_NOT_FOUND",
			rpc10: [2]string{"DoThings", "{}"}, rpc03: [2]string{"tasks/do", "{}"},
			rest10: [3]string{"POST", "/things", "{}"}, rest03: [3]string{"POST", "/v1/things", "{}"},
		},
		{
			name: "missing parameters", code: -32602, status: 400, reason: "INVALID_PARAMS",
			rpc10: [2]string{"SendMessage", "{}"}, rpc03: [2]string{"message/send", `{"message":{}}`},
			rest10: [3]string{"POST", "/message:send", "{}"},
		},
		{
			name: "a part with nothing in it", code: -32602, status: 400, reason: "INVALID_PARAMS",
			rpc10: [2]string{"SendMessage", parts10(`{"metadata":{}}`)}, rest10: [3]string{"POST", "/message:send", parts10(`{}`)},
			rpc03: [2]string{"message/send", parts03(`{"kind":"song"}`)},
		},
		{
			name: "a parameter of a wrong type", code: -32602, status: 400, reason: "INVALID_PARAMS",
			rpc10: [2]string{"GetTask", `{"id":7}`}, rpc03: [2]string{"tasks/get", `{"id":7}`},
			rest10: [3]string{"GET", "/tasks?pageSize=x", ""}, rest03: [3]string{"GET", "/v1/tasks?pageSize=x", ""},
		},
		{
			name: "a negative history", code: -32602, status: 400, reason: "INVALID_PARAMS",
			rpc10: [2]string{"GetTask", `{"id":"` + unknownRun + `","historyLength":-1}`}, rpc03: [2]string{"tasks/get", `{"id":"` + unknownRun + `","historyLength":-1}`},
			rest10: [3]string{"GET", "/tasks/" + unknownRun + "?historyLength=-1", ""}, rest03: [3]string{"GET", "/v1/tasks/" + unknownRun + "?historyLength=-1", ""},
		},
		{
			name: "a page of nothing", code: -32602, status: 400, reason: "INVALID_PARAMS",
			rpc10: [2]string{"ListTasks", `{"pageSize":0}`}, rest10: [3]string{"GET", "/tasks?pageSize=0", ""}, rest03: [3]string{"GET", "/v1/tasks?pageSize=0", ""},
		},
		{
			name: "too large a page", code: -32602, status: 400, reason: "INVALID_PARAMS",
			rpc10: [2]string{"ListTasks", `{"pageSize":101}`}, rest10: [3]string{"GET", "/tasks?pageSize=101", ""}, rest03: [3]string{"GET", "/v1/tasks?pageSize=101", ""},
		},
		{
			name: "a page token of nobody", code: -32602, status: 400, reason: "INVALID_PARAMS",
			rpc10: [2]string{"ListTasks", `{"pageToken":"canary"}`}, rest10: [3]string{"GET", "/tasks?pageToken=canary", ""}, rest03: [3]string{"GET", "/v1/tasks?pageToken=canary", ""},
		},
		{
			name: "an unknown state", code: -32602, status: 400, reason: "INVALID_PARAMS",
			rpc10: [2]string{"ListTasks", `{"status":"CANARY"}`}, rest10: [3]string{"GET", "/tasks?status=CANARY", ""}, rest03: [3]string{"GET", "/v1/tasks?status=CANARY", ""},
		},
		text(refusedCase{name: "an input against the contract", before: contract, code: -32602, status: 400, reason: "INVALID_PARAMS"}),
		ofTask(refusedCase{name: "an unknown task", code: -32001, status: 404, reason: "TASK_NOT_FOUND"}, unknownRun),
		ofTask(refusedCase{name: "an id that is none", code: -32001, status: 404, reason: "TASK_NOT_FOUND"}, "canary"),
		ofTask(refusedCase{name: "a task of another unit", code: -32001, status: 404, reason: "TASK_NOT_FOUND", before: func(w *harness) {
			w.rpc("other", "SendMessage", parts10(`{"data":{"n":1}}`))
		}}, runID(1)),
		{
			name: "the cancel of an ended task", before: ended, code: -32002, status: 400, reason: "TASK_NOT_CANCELABLE",
			rpc10: [2]string{"CancelTask", `{"id":"` + runID(1) + `"}`}, rpc03: [2]string{"tasks/cancel", `{"id":"` + runID(1) + `"}`},
			rest10: [3]string{"POST", "/tasks/" + runID(1) + ":cancel", ""}, rest03: [3]string{"POST", "/v1/tasks/" + runID(1) + ":cancel", ""},
		},
		{
			name: "a push where it is off", before: ended, code: -32003, status: 400, reason: "PUSH_NOTIFICATION_NOT_SUPPORTED",
			rpc10:  [2]string{"CreateTaskPushNotificationConfig", `{"taskId":"` + runID(1) + `","url":"http://canary"}`},
			rpc03:  [2]string{"tasks/pushNotificationConfig/set", `{"taskId":"` + runID(1) + `","pushNotificationConfig":{"url":"http://canary"}}`},
			rest10: [3]string{"POST", "/tasks/" + runID(1) + "/pushNotificationConfigs", `{"url":"http://canary"}`},
			rest03: [3]string{"GET", "/v1/tasks/" + runID(1) + "/pushNotificationConfigs", ""},
		},
		{
			name: "a subscription of an ended task", before: ended, code: -32004, status: 400, reason: "UNSUPPORTED_OPERATION",
			rpc10: [2]string{"SubscribeToTask", `{"id":"` + runID(1) + `"}`}, rpc03: [2]string{"tasks/resubscribe", `{"id":"` + runID(1) + `"}`},
			rest10: [3]string{"POST", "/tasks/" + runID(1) + ":subscribe", ""}, rest03: [3]string{"GET", "/v1/tasks/" + runID(1) + ":subscribe", ""},
		},
		{
			name: "a message to an ended task", before: ended, code: -32004, status: 400, reason: "UNSUPPORTED_OPERATION",
			rpc10:  [2]string{"SendMessage", `{"message":` + message("m2", "hi", `,"taskId":"`+runID(1)+`"`) + `}`},
			rpc03:  [2]string{"message/stream", `{"message":{"kind":"message","messageId":"m2","role":"user","taskId":"` + runID(1) + `","parts":[{"kind":"text","text":"x"}]}}`},
			rest10: [3]string{"POST", "/message:stream", `{"message":` + message("m2", "hi", `,"taskId":"`+runID(1)+`"`) + `}`},
		},
		refusedCase{name: "a file by URL", code: -32005, status: 400, reason: "CONTENT_TYPE_NOT_SUPPORTED"}.
			sends(`{"url":"http://canary/x"}`, `{"kind":"file","file":{"uri":"http://canary/x"}}`, `{"file":{"fileWithUri":"http://canary/x"}}`),
		refusedCase{name: "a media type that no text has", code: -32005, status: 400, reason: "CONTENT_TYPE_NOT_SUPPORTED"}.
			sends(`{"text":"canary","mediaType":"image/png"}`, "", ""),
		refusedCase{name: "data that isn't an object", code: -32005, status: 400, reason: "CONTENT_TYPE_NOT_SUPPORTED"}.
			sends(`{"data":[1]}`, "", ""),
		text(refusedCase{name: "a body of another type", header: []string{"Content-Type: text/plain"}, code: -32005, status: 415, reason: "CONTENT_TYPE_NOT_SUPPORTED"}),
		text(refusedCase{name: "a version of nobody", header: []string{"A2A-Version: 99.0"}, code: -32009, status: 400, reason: "VERSION_NOT_SUPPORTED"}),
		text(refusedCase{name: "a full queue", before: busyFault, code: -32000, status: 429, reason: "SERVER_ERROR", retry: true}),
		text(refusedCase{name: "a server that ends", before: down, code: -32000, status: 503, reason: "SERVER_ERROR", retry: true}),
		text(refusedCase{
			name: "more messages than the rate", opts: func(o *Options) { o.Rate = 1 }, before: ended,
			code: -32000, status: 429, reason: "SERVER_ERROR", retry: true,
		}),
		text(refusedCase{name: "a failure of the server", before: func(w *harness) { w.refuses = errors.New("canary") }, code: -32603, status: 500, reason: "INTERNAL_ERROR"}),
		text(refusedCase{name: "a unit that is off", before: func(w *harness) { w.refuses = fault.New(fault.Disabled, "it is off") }, code: -32004, status: 400, reason: "UNSUPPORTED_OPERATION"}),
	}
}

func TestWhatIsRefused(t *testing.T) {
	for _, c := range refusedCases() {
		for name, call := range map[string][2]string{"1.0": c.rpc10, "0.3": c.rpc03} {
			if call[0] == "" {
				continue
			}
			t.Run(c.name+" by JSON-RPC "+name, func(t *testing.T) {
				w := newHarness(t, c.opts)
				prepare(w, c)
				said := w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":"q","method":"`+call[0]+`","params":`+call[1]+`}`, c.header...)
				answer := decode(t, said.body)
				if said.StatusCode != 200 || at(answer, "id") != "q" && c.status != http.StatusUnsupportedMediaType || at(answer, "error", "code") != float64(c.code) {
					t.Errorf("%d %s, want code %d", said.StatusCode, said.body, c.code)
				}
				checkDetails(t, c, at(answer, "error", "data"))
				checkHeaders(t, c, said)
			})
		}
		for name, call := range map[string][3]string{"1.0": c.rest10, "0.3": c.rest03} {
			if call[0] == "" {
				continue
			}
			t.Run(c.name+" by HTTP+JSON "+name, func(t *testing.T) {
				w := newHarness(t, c.opts)
				prepare(w, c)
				said := w.do(call[0], "/a2a/echo"+call[1], call[2], c.header...)
				if said.StatusCode != c.status {
					t.Fatalf("%d %s, want %d", said.StatusCode, said.body, c.status)
				}
				answer := decode(t, said.body)
				if at(answer, "error", "code") != float64(c.status) {
					t.Errorf("%s", said.body)
				}
				checkDetails(t, c, at(answer, "error", "details"))
				checkHeaders(t, c, said)
			})
		}
	}
}

func prepare(w *harness, c refusedCase) {
	if c.before != nil {
		c.before(w)
	}
}

func checkDetails(t *testing.T, c refusedCase, details any) {
	t.Helper()
	list, _ := details.([]any)
	if at(details, 0, "reason") != c.reason || at(details, 0, "domain") != "a2a-protocol.org" {
		t.Errorf("details %v, want reason %s", details, c.reason)
	}
	has := func(kind string) bool {
		return slices.ContainsFunc(list, func(d any) bool { return at(d, "@type") == "type.googleapis.com/google.rpc."+kind })
	}
	if has("RetryInfo") != c.retry {
		t.Errorf("details %v, want retry %v", details, c.retry)
	}
	if c.name == "an input against the contract" && !has("BadRequest") {
		t.Errorf("details %v have no field", details)
	}
}

func checkHeaders(t *testing.T, c refusedCase, said answerRead) {
	t.Helper()
	if kind := said.Header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("Content-Type %q", kind)
	}
	if (said.Header.Get("Retry-After") != "") != c.retry {
		t.Errorf("Retry-After %q", said.Header.Get("Retry-After"))
	}
	if strings.Contains(strings.ToLower(said.body), "canary") {
		t.Errorf("what was sent comes back: %s", said.body)
	}
}

func TestEnvelopes(t *testing.T) {
	for body, code := range map[string]int{
		`{`: -32700, ``: -32700, `{"jsonrpc":"2.0"} x`: -32700,
		`[]`: -32600, `[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]`: -32600, `"x"`: -32600, `7`: -32600, `null`: -32600,
		`{"jsonrpc":"1.0","id":1,"method":"GetTask"}`: -32600, `{"jsonrpc":"2.0","id":1}`: -32600,
		`{"jsonrpc":"2.0","id":{},"method":"GetTask"}`: -32600, `{"jsonrpc":"2.0","id":[1],"method":"GetTask"}`: -32600,
		`{"jsonrpc":"2.0","id":1,"method":7}`:                     -32600,
		`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}`: -32602, `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":7}`: -32602,
		`{"jsonrpc":"2.0","id":1,"method":"GetTask"}`: -32602, `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":null}`: -32602,
	} {
		t.Run(body, func(t *testing.T) {
			w := newHarness(t, nil)
			said := w.do("POST", "/a2a/echo", body, "Content-Type: application/json")
			if got := at(decode(t, said.body), "error", "code"); got != float64(code) || said.StatusCode != 200 {
				t.Errorf("%d %s, want %d", said.StatusCode, said.body, code)
			}
		})
	}
}

// Clients that read nothing but streams would take an error with 200 for a stream without events. So says version 0.3,
// and the protocol's compatibility kit takes an error for one when it isn't a stream.
func TestAnErrorIsNoStream(t *testing.T) {
	w := newHarness(t, nil)
	ended(w)
	for accept, want := range map[string]int{"text/event-stream": 400, "text/event-stream, application/json": 200, "*/*": 200, "-": 200} {
		for method, params := range map[string]string{
			"SubscribeToTask": `{"id":"` + runID(1) + `"}`, "tasks/resubscribe": `{"id":"` + runID(1) + `"}`,
			"SendStreamingMessage": `{"message":` + message("m2", "hi", `,"taskId":"`+runID(1)+`"`) + `}`,
			"GetTask":              `{"id":"` + unknownRun + `"}`,
		} {
			said := w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, "Accept: "+accept)
			status, code := want, -32004.0
			if method == "GetTask" {
				status, code = 200, -32001
			}
			answer := decode(t, said.body)
			if said.StatusCode != status || said.Header.Get("Content-Type") != "application/json" || at(answer, "id") != 1.0 || at(answer, "error", "code") != code {
				t.Errorf("%s for %q: %d %v %s", method, accept, said.StatusCode, said.Header, said.body)
			}
		}
		if said := w.do("POST", "/a2a/echo/tasks/"+runID(1)+":subscribe", "", "Accept: "+accept); said.StatusCode != 400 || said.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %v", said.StatusCode, said.Header)
		}
	}
	stranger := w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{}}`, "Accept: text/event-stream", "A2A-Version: 99.0")
	if stranger.StatusCode != 400 || at(decode(t, stranger.body), "error", "code") != -32009.0 {
		t.Errorf("of another version: %d %s", stranger.StatusCode, stranger.body)
	}
	gone := w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"`+unknownRun+`"}}`, "Accept: text/event-stream")
	if gone.StatusCode != 404 || at(decode(t, gone.body), "error", "code") != -32001.0 {
		t.Errorf("%d %s", gone.StatusCode, gone.body)
	}
}

func TestTooMuchIsRefused(t *testing.T) {
	w := newHarness(t, func(o *Options) { o.MaxBytes = 100 })
	long := `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"` + strings.Repeat("x", 100) + `"}}`
	for _, path := range []string{"/a2a/echo", "/a2a/echo/message:send", "/a2a/echo/v1/message:send"} {
		if said := w.do("POST", path, long); said.StatusCode != http.StatusRequestEntityTooLarge || at(decode(t, said.body), "error", "code") == nil {
			t.Errorf("%s: %d %s", path, said.StatusCode, said.body)
		}
	}
}

func TestAPanicTellsNothing(t *testing.T) {
	w := newHarness(t, nil)
	for _, path := range []string{"/message:send", "/message:stream"} {
		said := w.do("POST", "/a2a/echo"+path, parts10(`{"text":"panic"}`))
		if said.StatusCode != 500 || strings.Contains(said.body, "canary") {
			t.Errorf("%d %s", said.StatusCode, said.body)
		}
	}
}
