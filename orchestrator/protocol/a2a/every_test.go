package a2a

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	old "github.com/a2aproject/a2a-go/a2a"
	pbv0 "github.com/a2aproject/a2a-go/a2apb"
	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// fakePush keeps pushes, and makes none.
type fakePush struct{ kept map[string]api.Push }

func (p fakePush) WithTargets(ctx context.Context, _ []api.PushConfig) context.Context { return ctx }

func (p fakePush) CreatePush(_ context.Context, run string, c api.PushConfig) (api.Push, error) {
	if c.ID == "" {
		c.ID = "given"
	}
	p.kept[run+c.ID] = api.Push{ID: c.ID, URL: c.URL, Scheme: c.Scheme, CreatedAt: born}
	return p.kept[run+c.ID], nil
}

func (p fakePush) Push(_ context.Context, run, id string) (api.Push, error) {
	if push, there := p.kept[run+id]; there {
		return push, nil
	}
	return api.Push{}, fault.New(fault.NotFound, "there is no push")
}

func (p fakePush) Pushes(_ context.Context, run string) (all []api.Push, err error) {
	for _, key := range slices.Sorted(maps.Keys(p.kept)) {
		if strings.HasPrefix(key, run) {
			all = append(all, p.kept[key])
		}
	}
	return all, nil
}

func (p fakePush) DeletePush(_ context.Context, run, id string) error {
	delete(p.kept, run+id)
	return nil
}

func (p fakePush) PushBacklog(context.Context) (int64, error) { return 0, nil }

// methodCall is how a method is called in a binding and version; ID stands for the id of a task.
type methodCall struct{ verb, path, body string }

func rpcCall(method, params string) methodCall {
	return methodCall{http.MethodPost, "/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`}
}

func restCall(verb, below, body string) methodCall {
	return methodCall{verb, "/a2a/echo" + below, body}
}

// everyMethod are the methods of a binding and version, in the order in which they are called.
type everyMethod struct {
	name                                      string
	send, stream                              methodCall // of a message that is answered at once
	get, list, subscribe, cancel              methodCall
	pushSet, pushGet, pushList, pushDel, card methodCall
}

const (
	richParts10 = `{"text":"hi","metadata":{"a":1}},{"data":{"count":1}},{"raw":"eA==","filename":"x.txt","mediaType":"text/plain"}`
	richParts03 = `{"kind":"text","text":"hi","metadata":{"a":1}},{"kind":"data","data":{"count":1}},{"kind":"file","file":{"bytes":"eA==","name":"x.txt","mimeType":"text/plain"}}`
	hook        = `"url":"https://hook.example/in","token":"canary"`
)

var everyMethods = []everyMethod{
	{
		name:      "JSON-RPC 1.0",
		send:      rpcCall("SendMessage", `{"message":{"messageId":"r1","role":"ROLE_USER","metadata":{"k":"v"},"parts":[`+richParts10+`]},"configuration":{"returnImmediately":true}}`),
		stream:    rpcCall("SendStreamingMessage", parts10(richParts10)),
		get:       rpcCall("GetTask", `{"id":"ID"}`),
		list:      rpcCall("ListTasks", `{"includeArtifacts":true,"historyLength":10,"pageSize":2}`),
		subscribe: rpcCall("SubscribeToTask", `{"id":"ID"}`),
		cancel:    rpcCall("CancelTask", `{"id":"ID"}`),
		pushSet:   rpcCall("CreateTaskPushNotificationConfig", `{"taskId":"ID","id":"p",`+hook+`,"authentication":{"scheme":"Bearer","credentials":"canary"}}`),
		pushGet:   rpcCall("GetTaskPushNotificationConfig", `{"taskId":"ID","id":"p"}`),
		pushList:  rpcCall("ListTaskPushNotificationConfigs", `{"taskId":"ID"}`),
		pushDel:   rpcCall("DeleteTaskPushNotificationConfig", `{"taskId":"ID","id":"p"}`),
		card:      rpcCall("GetExtendedAgentCard", `{}`),
	},
	{
		name:      "HTTP+JSON 1.0",
		send:      restCall("POST", "/message:send", `{"message":{"messageId":"r2","role":"ROLE_USER","metadata":{"k":"v"},"parts":[`+richParts10+`]},"configuration":{"returnImmediately":true}}`),
		stream:    restCall("POST", "/message:stream", parts10(richParts10)),
		get:       restCall("GET", "/tasks/ID", ""),
		list:      restCall("GET", "/tasks?includeArtifacts=true&historyLength=10&pageSize=2", ""),
		subscribe: restCall("POST", "/tasks/ID:subscribe", ""),
		cancel:    restCall("POST", "/tasks/ID:cancel", ""),
		pushSet:   restCall("POST", "/tasks/ID/pushNotificationConfigs", `{"id":"p",`+hook+`,"authentication":{"scheme":"Bearer","credentials":"canary"}}`),
		pushGet:   restCall("GET", "/tasks/ID/pushNotificationConfigs/p", ""),
		pushList:  restCall("GET", "/tasks/ID/pushNotificationConfigs", ""),
		pushDel:   restCall("DELETE", "/tasks/ID/pushNotificationConfigs/p", ""),
		card:      restCall("GET", "/extendedAgentCard", ""),
	},
	{
		name:      "JSON-RPC 0.3",
		send:      rpcCall("message/send", `{"message":{"kind":"message","messageId":"r3","role":"user","metadata":{"k":"v"},"parts":[`+richParts03+`]}}`),
		stream:    rpcCall("message/stream", parts03(richParts03)),
		get:       rpcCall("tasks/get", `{"id":"ID"}`),
		subscribe: rpcCall("tasks/resubscribe", `{"id":"ID"}`),
		cancel:    rpcCall("tasks/cancel", `{"id":"ID"}`),
		pushSet:   rpcCall("tasks/pushNotificationConfig/set", `{"taskId":"ID","pushNotificationConfig":{"id":"p",`+hook+`,"authentication":{"schemes":["Bearer"],"credentials":"canary"}}}`),
		pushGet:   rpcCall("tasks/pushNotificationConfig/get", `{"id":"ID","pushNotificationConfigId":"p"}`),
		pushList:  rpcCall("tasks/pushNotificationConfig/list", `{"id":"ID"}`),
		pushDel:   rpcCall("tasks/pushNotificationConfig/delete", `{"id":"ID","pushNotificationConfigId":"p"}`),
		card:      rpcCall("agent/getAuthenticatedExtendedCard", `{}`),
	},
	{
		name:      "HTTP+JSON 0.3",
		send:      restCall("POST", "/v1/message:send", `{"message":{"messageId":"r4","role":"ROLE_USER","metadata":{"k":"v"},"content":[{"text":"hi"},{"data":{"data":{"count":1}}}]}}`),
		stream:    restCall("POST", "/v1/message:stream", proto03(`{"text":"hi"},{"data":{"data":{"count":1}}}`)),
		get:       restCall("GET", "/v1/tasks/ID", ""),
		list:      restCall("GET", "/v1/tasks?includeArtifacts=true&historyLength=10&pageSize=2", ""),
		subscribe: restCall("GET", "/v1/tasks/ID:subscribe", ""),
		cancel:    restCall("POST", "/v1/tasks/ID:cancel", ""),
		pushSet:   restCall("POST", "/v1/tasks/ID/pushNotificationConfigs", `{"parent":"tasks/ID","configId":"p","config":{"name":"tasks/ID/pushNotificationConfigs/p","pushNotificationConfig":{"id":"p",`+hook+`,"authentication":{"schemes":["Bearer"],"credentials":"canary"}}}}`),
		pushGet:   restCall("GET", "/v1/tasks/ID/pushNotificationConfigs/p", ""),
		pushList:  restCall("GET", "/v1/tasks/ID/pushNotificationConfigs", ""),
		pushDel:   restCall("DELETE", "/v1/tasks/ID/pushNotificationConfigs/p", ""),
		card:      restCall("GET", "/v1/card", ""),
	},
}

// calls makes a call about a run. It must succeed.
func (w *harness) calls(c methodCall, run string) {
	w.t.Helper()
	w.succeeds(w.begin(c.verb, strings.ReplaceAll(c.path, "ID", run), strings.ReplaceAll(c.body, "ID", run)), c.body)
}

func (w *harness) succeeds(response *http.Response, sent string) {
	w.t.Helper()
	said := w.read(response, sent)
	if said.StatusCode != http.StatusOK || strings.Contains(said.body, `"error"`) || strings.Contains(said.body, "canary") {
		w.t.Errorf("%s is answered with %d %s", sent, said.StatusCode, said.body)
	}
}

// newest is the id of the newest run.
func (w *harness) newest() (id string) {
	w.last(func(r *fakeRun) { id = r.record.ID })
	return id
}

// enrich has the newest run, which goes on, tell of everything there is.
func (w *harness) enrich() {
	half := 0.5
	w.last(func(r *fakeRun) {
		id := r.record.ID
		w.files[id+"/small.txt"], w.files[id+"/shown.txt"] = "small", "shown"
		r.record.Files = []api.File{{Name: "small.txt", SizeBytes: 5}, {Name: "large.bin", SizeBytes: 5 << 20}}
		r.record.Changes = &api.ChangeCounts{}
		w.tell(r, api.ProgressEvent{Message: "half", Percent: &half, Step: "one"})
		w.tell(r, api.MessageEvent{ID: "says", Role: api.RoleAgent, Parts: []api.Part{{Text: "well"}, {Data: []byte(`{"n":[1,null]}`)}}, At: born})
		w.tell(r, api.ArtifactEvent{ID: "chunks", Name: "parts", Parts: []api.Part{{Text: "one", MediaType: "text/plain"}}, At: born})
		w.tell(r, api.ArtifactEvent{ID: "chunks", Parts: []api.Part{{Data: []byte(`{"n":2}`)}}, Append: true, Last: true, At: born})
		w.tell(r, api.ArtifactEvent{ID: "file", Parts: []api.Part{{File: &api.File{Name: "shown.txt", SizeBytes: 5}, MediaType: "text/plain"}}, At: born})
		w.ask(r, api.Question{
			ID: "q-" + id, Text: "Which?", Kind: api.QuestionInput, Answers: []string{"answer", "reject"}, AskedAt: born,
			Form: []byte(`{"type":"object","properties":{"which":{"type":"string"}}}`), Show: []byte(`{"seen":true}`),
		})
	})
}

// Each body of each method in each binding and version is what the protocol says of it, whatever a
// task has; world.do holds them all.
func TestEveryMethodAnswersAsTheProtocolSays(t *testing.T) {
	for _, m := range everyMethods {
		t.Run(m.name, func(t *testing.T) {
			w := newHarness(t, func(o *Options) {
				o.NoAuth, o.PublicURL, o.Push, o.GRPC = false, "https://aod.example", fakePush{map[string]api.Push{}}, "127.0.0.1:7071"
			})
			w.patch = "--- a\n+++ b\n"
			w.calls(m.stream, "")
			w.hold = true
			w.calls(m.send, "")
			w.enrich()
			run := w.newest()
			w.calls(m.get, run)
			following := w.begin(m.subscribe.verb, strings.ReplaceAll(m.subscribe.path, "ID", run), strings.ReplaceAll(m.subscribe.body, "ID", run))
			w.last(func(r *fakeRun) { r.record.Question = nil })
			w.enrich()
			w.last(func(r *fakeRun) { r.record.Question = nil; w.succeed(r, "done") })
			w.succeeds(following, m.subscribe.body)
			for _, c := range []methodCall{m.get, m.pushSet, m.pushGet, m.pushList, m.pushDel, m.pushList, m.card} {
				w.calls(c, run)
			}
			w.calls(m.send, "")
			w.calls(m.cancel, w.newest())
			w.calls(m.send, "")
			w.last(func(r *fakeRun) {
				r.record.Error = &api.RunError{Kind: "capsule_error", Type: "Rejected", Message: "no"}
				w.end(r, api.Failed, api.CapsuleError)
			})
			w.calls(m.get, w.newest())
			if m.list.verb != "" {
				w.calls(m.list, "")
			}
			w.do("GET", "/a2a/echo"+wellKnown, "")
			w.do("GET", wellKnown, "")
			w.all(m.name)
		})
	}
}

// Nothing is an empty list in each binding, and a push is found by its task alone.
func TestAPushIsFoundByItsTask(t *testing.T) {
	for _, m := range everyMethods {
		t.Run(m.name, func(t *testing.T) {
			w := newHarness(t, func(o *Options) { o.Push = fakePush{map[string]api.Push{}} })
			w.calls(m.send, "")
			ask := func(c methodCall) string {
				path, body := strings.ReplaceAll(c.path, "ID", w.newest()), strings.ReplaceAll(c.body, "ID", w.newest())
				return strings.Join(strings.Fields(w.read(w.begin(c.verb, path, body), body).body), "")
			}
			got := ask(m.pushList)
			if !strings.Contains(got, `"configs":[]`) && !strings.Contains(got, `"result":[]`) && got != "[]" {
				t.Errorf("a list of nothing is %s", got)
			}
			alone := m.pushGet
			alone.body = strings.NewReplacer(`,"id":"p"`, "", `,"pushNotificationConfigId":"p"`, "").Replace(alone.body)
			if alone.body == "" {
				return // its path has the id
			}
			if got := ask(alone); !strings.Contains(got, "pushconfigurationnotfound") {
				t.Errorf("without one: %s", got)
			}
			w.calls(m.pushSet, w.newest())
			if got := ask(alone); !strings.Contains(got, `"id":"p"`) {
				t.Errorf("by its task alone: %s", got)
			}
		})
	}
}

// all wants a body of each method that a binding has in a version, and a card.
func (w *harness) all(name string) {
	w.t.Helper()
	want := slices.Collect(maps.Keys(wires10))
	if name == "JSON-RPC 0.3" {
		want = slices.Collect(maps.Keys(wires03))
	}
	for _, method := range want {
		if w.held[name+" "+method] == 0 {
			w.t.Errorf("%s %s was not held against the protocol", name, method)
		}
	}
	if w.held["card"] != 2 {
		w.t.Errorf("%d cards were", w.held["card"])
	}
}

func TestWhatIsNotTheProtocolsIsFound(t *testing.T) {
	const status = `"status":{"state":"TASK_STATE_WORKING"}`
	for name, c := range map[string]struct {
		hold wire
		good string
		bad  []string
	}{
		"a task of 1.0": {
			ofProto[pbv1.Task], `{"id":"t","contextId":"c",` + status + `,"artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}]}`,
			[]string{
				`{"id":"t"}`, `{"id":"t",` + status + `,"kind":"task"}`, `{"id":7,` + status + `}`, `{"id":"t","status":{"state":"working"}}`,
				`{"id":"t",` + status + `,"artifacts":[{"parts":[{"text":"x"}]}]}`, `{"id":"t",` + status + `,"history":[{"messageId":"m","parts":[]}]}`,
			},
		},
		"a task of 0.3": {
			ofType[old.Task], `{"kind":"task","id":"t","contextId":"c","status":{"state":"working"}}`,
			[]string{`{"id":"t","contextId":"c","status":{"state":"working"}}`, `{"kind":"task","id":"t","contextId":"c","status":{"state":"working"},"more":1}`},
		},
		"a task of 0.3 over HTTP": {
			ofOldProto[pbv0.Task], `{"id":"t","history":[{"messageId":"m","role":"ROLE_USER","content":[{"text":"x"}]}]}`,
			[]string{`{"kind":"task","id":"t"}`, `{"id":"t","history":[{"messageId":"m","role":"user"}]}`},
		},
		"an envelope": {
			ofRPC(ofNothing), `{"jsonrpc":"2.0","id":1,"result":null}`,
			[]string{`{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","result":null}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		},
	} {
		if err := c.hold([]byte(c.good)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, bad := range c.bad {
			if c.hold([]byte(bad)) == nil {
				t.Errorf("%s is %s", name, bad)
			}
		}
	}
}
