package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// capable is the _meta of a client that shows forms.
var capable = strings.Replace(fmt.Sprintf(meta, Stateless), `s":{}`, `s":{"elicitation":{}}`, 1)

// calls has a client without a session call a tool.
func call(t *testing.T, h http.Handler, tool, params string) *httptest.ResponseRecorder {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,%s%s}}`, tool, params, capable)
	return ask(t, h, "POST", body, stateless, "Mcp-Method: tools/call", "Mcp-Name: "+tool)
}

// required is what a client is told that has to come back with answers.
type required struct {
	ResultType    string
	InputRequests map[string]struct {
		Method string
		Params struct{ Message string }
	}
	RequestState string
}

func inputOf(t *testing.T, w *httptest.ResponseRecorder) (told required) {
	t.Helper()
	_, data, _ := strings.Cut(w.Body.String(), "data: ")
	var answer struct{ Result required }
	if err := json.Unmarshal([]byte(data), &answer); err != nil || answer.Result.ResultType != "input_required" {
		t.Fatalf("%v %s", err, w.Body)
	}
	return answer.Result
}

// back are the parameters of a client that comes back.
func back(state string, answers string) string {
	return fmt.Sprintf(`"arguments":{"n":1},"requestState":%q,"inputResponses":%s,`, state, answers)
}

func answersOf(told required, action string) string {
	var each []string
	for id := range told.InputRequests {
		each = append(each, fmt.Sprintf(`%q:{"action":%q}`, id, action))
	}
	return "{" + strings.Join(each, ",") + "}"
}

const callArguments = `"arguments":{"n":1},`

// owned has the requests of a server be those of a token.
func owned(s *Server, owner string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r.WithContext(httpwire.WithOwner(r.Context(), owner)))
	})
}

func TestARequestStateIsGoodForItsCallAlone(t *testing.T) {
	t.Parallel()
	f := asking(mayGoOn)
	f.add("other", anySchema)
	s := New(f, Options{})
	mine := owned(s, "me")
	begin := func() required { return inputOf(t, call(t, mine, "hello", callArguments)) }
	yes := func(told required) string { return answersOf(told, "accept") }
	forged := func(told required) string {
		text, signature, _ := strings.Cut(told.RequestState, ".")
		raw, err := base64.RawURLEncoding.DecodeString(text)
		must(t, err)
		raw = []byte(strings.Replace(string(raw), idOf(1), idOf(2), 1))
		raw[len(raw)-3] ^= 1
		return base64.RawURLEncoding.EncodeToString(raw) + "." + signature
	}
	for name, try := range map[string]func(told required) *httptest.ResponseRecorder{
		"forged": func(told required) *httptest.ResponseRecorder {
			return call(t, mine, "hello", back(forged(told), yes(told)))
		},
		"not signed": func(told required) *httptest.ResponseRecorder {
			text, _, _ := strings.Cut(told.RequestState, ".")
			return call(t, mine, "hello", back(text, yes(told)))
		},
		"no state":  func(told required) *httptest.ResponseRecorder { return call(t, mine, "hello", back("", yes(told))) },
		"no base64": func(told required) *httptest.ResponseRecorder { return call(t, mine, "hello", back("?.?", yes(told))) },
		"large": func(told required) *httptest.ResponseRecorder {
			return call(t, mine, "hello", back(strings.Repeat("x", 1<<20), yes(told)))
		},
		"another token's": func(told required) *httptest.ResponseRecorder {
			return call(t, owned(s, "you"), "hello", back(told.RequestState, yes(told)))
		},
		"another tool's": func(told required) *httptest.ResponseRecorder {
			return call(t, mine, "other", back(told.RequestState, yes(told)))
		},
		"other arguments": func(told required) *httptest.ResponseRecorder {
			return call(t, mine, "hello", strings.Replace(back(told.RequestState, yes(told)), `"n":1`, `"n":2`, 1))
		},
		"another server's": func(told required) *httptest.ResponseRecorder {
			return call(t, owned(New(f, Options{}), "me"), "hello", back(told.RequestState, yes(told)))
		},
	} {
		told := begin()
		if w := try(told); w.Code != 400 || !contains(w, "-32602", "requestState") || strings.Contains(w.Body.String(), "answers") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if w := call(t, mine, "hello", back(told.RequestState, yes(told))); !contains(w, `"action":"approve"`) {
			t.Errorf("%s: the right one is no good any more: %s", name, w.Body)
		}
		if w := call(t, mine, "hello", back(told.RequestState, yes(told))); !contains(w, "-32602", "used up") {
			t.Errorf("%s: the right one is good twice: %s", name, w.Body)
		}
	}
}

func TestARequestStateIsGoodForATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := asking(mayGoOn)
		s := New(f, Options{})
		told := inputOf(t, call(t, s, "hello", callArguments))
		time.Sleep(answerTime)
		if w := call(t, s, "hello", back(told.RequestState, answersOf(told, "accept"))); !contains(w, "-32602", "too old", "aod answer") {
			t.Error(w.Body)
		}
		inputOf(t, call(t, s, "hello", callArguments))
		if n := len(s.calls.rounds.open); n != 1 {
			t.Errorf("%d calls wait", n)
		}
	})
}

func TestTheCallsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	r := newRounds()
	now := time.Now()
	for i := range maxRounds {
		r.open[fmt.Sprint(i)] = round{ends: now.Add(time.Duration(i+1) * time.Second)}
	}
	r.forget(now)
	if _, there := r.open["0"]; there || len(r.open) != maxRounds-1 {
		t.Errorf("%d wait", len(r.open))
	}
}

func TestWhatAClientLeavesOutIsAskedAgain(t *testing.T) {
	t.Parallel()
	f := asking(mayGoOn, whoAsks)
	s := New(f, Options{})
	first := inputOf(t, call(t, s, "hello", callArguments))
	if len(first.InputRequests) != 2 {
		t.Fatalf("%v", first)
	}
	open := f.asking.open(idOf(1))
	one := fmt.Sprintf(`{%q:{"action":"accept"},"unknown":{"action":"accept"}}`, open[0].ID)
	second := inputOf(t, call(t, s, "hello", back(first.RequestState, one)))
	if asked := second.InputRequests[open[1].ID]; len(second.InputRequests) != 1 || asked.Method != "elicitation/create" || asked.Params.Message != "hello asks: Who?" {
		t.Errorf("%v", second)
	}
	if w := call(t, s, "hello", back(second.RequestState, fmt.Sprintf(`{%q:{"action":"accept","content":{"answer":"Ada"}}}`, open[1].ID))); !contains(w, `"resultType":"complete"`, `"form":{"answer":"Ada"}`) && !contains(w, `"form":{"answer":"Ada"}`) {
		t.Error(w.Body)
	}
}

func TestAnswersThatAreNoneMayBeGivenAgain(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 3<<20)
	for name, c := range map[string]struct{ answer, want string }{
		"a field that wasn't asked for": {`{"action":"accept","content":{"answer":"Ada","admin":true}}`, "was not asked for"},
		"another type":                  {`{"action":"accept","content":{"answer":7}}`, "breaks the form"},
		"an unknown action":             {`{"action":"agree"}`, "no action"},
		"another kind of answer":        {`{"role":"assistant","content":{"type":"text","text":"x"}}`, "elicitation/create"},
		"too large":                     {`{"action":"accept","content":{"answer":"` + large + `"}}`, "2 MiB"},
		"larger than a form":            {`{"action":"accept","content":{"answer":"` + large[:3<<19] + `"}}`, "bytes"},
	} {
		f := asking(whoAsks)
		s := New(f, Options{})
		told := inputOf(t, call(t, s, "hello", callArguments))
		id := f.asking.open(idOf(1))[0].ID
		w := call(t, s, "hello", back(told.RequestState, fmt.Sprintf(`{%q:%s}`, id, c.answer)))
		if w.Code != 400 || !contains(w, c.want) || len(f.asking.open(idOf(1))) != 1 {
			t.Errorf("%s: %d %.300s", name, w.Code, w.Body)
		}
		if w := call(t, s, "hello", back(told.RequestState, fmt.Sprintf(`{%q:{"action":"decline"}}`, id))); !contains(w, `"action":"reject"`) {
			t.Errorf("%s: %s", name, w.Body)
		}
	}
}

func TestATaskAsksItsClient(t *testing.T) {
	t.Parallel()
	f := asking(mayGoOn, whoAsks)
	s := New(f, Options{})
	tasks := func(capabilities, method, params string) *httptest.ResponseRecorder {
		known := strings.Replace(fmt.Sprintf(meta, Stateless), `s":{}`, `s":{`+capabilities+`"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1)
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{%s,%s}}`, method, params, known)
		headers := []string{stateless, "Mcp-Method: " + method}
		if method == "tools/call" {
			headers = append(headers, "Mcp-Name: hello")
		}
		return ask(t, s, "POST", body, headers...)
	}
	const able, task = `"elicitation":{},`, `"taskId":"` + "0198c0de-0000-7000-8000-000000000001" + `"`
	if w := tasks(able, "tools/call", `"name":"hello"`); !contains(w, `"resultType":"task"`, `"status":"working"`) {
		t.Fatal(w.Body)
	}
	open := f.asking.open(idOf(1))
	if w := tasks(able, "tasks/get", task); !contains(w, `"status":"input_required"`, `"resultType":"complete"`, open[0].ID, open[1].ID, `"method":"elicitation/create"`) {
		t.Error(w.Body)
	}
	if w := tasks(able, "tasks/update", task+`,"inputResponses":{"`+open[1].ID+`":{"action":"accept","content":{"x":1}}}`); w.Code != 400 || !contains(w, "was not asked for") {
		t.Error(w.Body)
	}
	if w := tasks(able, "tasks/update", task+`,"inputResponses":{"unknown":{"action":"accept"},"`+open[0].ID+`":{"action":"accept"}}`); !contains(w, `"resultType":"complete"`) {
		t.Error(w.Body)
	}
	if w := tasks(able, "tasks/get", task); !contains(w, `"status":"input_required"`, open[1].ID) || contains(w, open[0].ID) {
		t.Error(w.Body)
	}
	tasks(able, "tasks/update", task+`,"inputResponses":{"`+open[1].ID+`":{"action":"accept","content":{"answer":"Ada"}}}`)
	if w := tasks(able, "tasks/get", task); !contains(w, `"status":"completed"`, `"form":{"answer":"Ada"}`) {
		t.Error(w.Body)
	}
}

func TestATaskThatNobodyAnswersIsCancelled(t *testing.T) {
	t.Parallel()
	f := newFake("hello")
	f.hold = true
	s := New(f, Options{})
	_, err := f.Submit(trusted.Context(t), Submission{Unit: "hello", Metadata: map[string]string{ClientKey: "c"}})
	must(t, err)
	f.ask(f.runs[idOf(1)], mayGoOn)
	for range 2 {
		if w := asks(t, s, true, "tasks/get", `"taskId":"`+idOf(1)+`"`); !contains(w, `"status":"cancelled"`, "shows no forms") {
			t.Error(w.Body)
		}
	}
	if r, _ := f.Get(trusted.Context(t), idOf(1)); r.Outcome != api.WasCancelled {
		t.Error(r.Outcome)
	}
}
