package a2a

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// inputOfLast is the input of the newest submission.
func (w *harness) inputOfLast() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.submitted[len(w.submitted)-1].Input)
}

func TestPartsBecomeAnInput(t *testing.T) {
	raw := base64.StdEncoding.EncodeToString([]byte("content"))
	for parts, want := range map[string]string{
		`{"text":"a"},{"text":"b"}`: `{"message":"a\nb"}`,
		`{"text":"a","mediaType":"text/markdown; charset=utf-8"},{"data":{"count":2}}`:                    `{"count":2,"message":"a"}`,
		`{"data":{"message":"x"}},{"data":{"count":3}}`:                                                   `{"count":3,"message":"x"}`,
		`{"raw":"` + raw + `","filename":"../../x.txt"}`:                                                  `{"doc":"x.txt"}`,
		`{"raw":"` + raw + `","mediaType":"image/png"}`:                                                   `{"doc":"doc.png"}`,
		`{"raw":"` + raw + `"},{"raw":"` + raw + `","filename":"b"},{"raw":"` + raw + `","filename":"b"}`: `{"doc":"doc.bin","more":["b","2/b"]}`,
		`{"raw":"` + raw + `","filename":"c","metadata":{"field":"more"}}`:                                `{"more":["c"]}`,
	} {
		w := newHarness(t, nil)
		w.rpc("echo", "SendMessage", parts10(parts))
		if got := w.inputOfLast(); got != want {
			t.Errorf("%s: %s, want %s", parts, got, want)
		}
		for name, content := range w.files {
			if content != "content" {
				t.Errorf("%s: %s holds %q", parts, name, content)
			}
		}
	}
}

func TestPartsThatAUnitDoesNotTake(t *testing.T) {
	for unit, cases := range map[string]map[string]string{
		"other": {`{"text":"x"}`: "takes no text", `{"raw":"eA=="}`: "no field for a file"},
		"echo": {
			`{"raw":"eA==","metadata":{"field":"canary"}}`:  "names no field",
			`{"text":"x"},{"data":{"message":"y"}}`:         "also as data",
			`{"data":{"count":1}},{"data":{"count":2}}`:     "two parts",
			`{"data":{"x":1},"mediaType":"text/canary"}`:    "application/json",
			`{"data":"canary"}`:                             "is an object",
			`{"raw":"eA==","metadata":{"field":"message"}}`: "names no field",
		},
	} {
		for parts, want := range cases {
			w := newHarness(t, nil)
			said := w.do("POST", "/a2a/"+unit+"/message:send", parts10(parts))
			if said.StatusCode != 400 || !strings.Contains(said.body, want) || strings.Contains(said.body, "canary") {
				t.Errorf("%s: %d %s, want %q", parts, said.StatusCode, said.body, want)
			}
		}
	}
}

func TestMessagesThatAreNone(t *testing.T) {
	w := newHarness(t, nil)
	long := strings.Repeat("x", 300)
	for _, m := range []string{
		`{"role":"ROLE_USER","parts":[{"text":"x"}]}`, `{"messageId":"` + long + `","role":"ROLE_USER","parts":[{"text":"x"}]}`,
		`{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}`, `{"messageId":"m","parts":[{"text":"x"}]}`,
		`{"messageId":"m","role":"ROLE_USER","parts":[]}`, `{"messageId":"m","role":"ROLE_USER"}`, `{"messageId":"m","role":"ROLE_USER","parts":[null]}`,
		`{"messageId":"m","contextId":"` + long + `","role":"ROLE_USER","parts":[{"text":"x"}]}`, `{"messageId":"m\u0000","role":"ROLE_USER","parts":[{"text":"x"}]}`,
		`{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}],"metadata":{"x":"` + strings.Repeat(long, 300) + `"}}`, `null`,
	} {
		said := w.do("POST", "/a2a/echo/message:send", `{"message":`+m+`}`)
		if at(decode(t, said.body), "error", "details", 0, "reason") != "INVALID_PARAMS" {
			t.Errorf("%.100s: %s", m, said.body)
		}
	}
	if len(w.submitted) > 0 {
		t.Errorf("%d runs", len(w.submitted))
	}
}

func TestTheAgentOfAllUnitsIsToldWhichOne(t *testing.T) {
	w := newHarness(t, nil)
	send := func(more string) map[string]any {
		return decode(t, w.do("POST", "/a2a/_/message:send", `{"message":`+message("m", "x", more)+`}`).body)
	}
	if got := at(send(`,"metadata":{"unit":"echo"}`), "task", "metadata", "unit"); got != "echo" {
		t.Errorf("%v", got)
	}
	for _, more := range []string{"", `,"metadata":{"unit":"canary"}`, `,"metadata":{"unit":7}`, `,"metadata":{"unit":"../x"}`} {
		if got := send(more); at(got, "error", "details", 0, "reason") != "INVALID_PARAMS" {
			t.Errorf("%s: %v", more, got)
		}
	}
	if got := at(decode(t, w.do("GET", "/a2a/_/tasks/"+runID(1), "").body), "id"); got != runID(1) {
		t.Errorf("%v", got)
	}
}

func TestContexts(t *testing.T) {
	w := newHarness(t, nil)
	task := func(m string) map[string]any {
		answer := decode(t, w.do("POST", "/a2a/echo/message:send", `{"message":`+m+`}`).body)
		found, _ := answer["task"].(map[string]any)
		if found == nil {
			return answer
		}
		return found
	}
	if got := task(message("a", "x", `,"contextId":"group"`)); got["contextId"] != "group" {
		t.Errorf("%v", got)
	}
	first, second := task(message("b", "x", ""))["contextId"], task(message("c", "x", ""))["contextId"]
	if first == "" || first == second {
		t.Errorf("%v %v", first, second)
	}
	w.hold = true
	go func() {
		if w.awaitRuns(4) {
			w.last(func(r *fakeRun) {
				w.ask(r, api.Question{ID: "q", Text: "go on?", Answers: []string{"approve", "reject"}})
			})
		}
	}()
	asks := task(message("d", "x", `,"contextId":"group"`))
	id, _ := asks["id"].(string)
	if plainState(asks) != "input_required" || at(asks, "status", "message", "parts", 0, "text") != "go on?" {
		t.Errorf("%v", asks)
	}
	if got := task(message("e", "approve", `,"contextId":"foreign","taskId":"`+id+`"`)); at(got, "error", "details", 0, "reason") != "INVALID_PARAMS" {
		t.Errorf("%v", got)
	}
	if got := task(message("f", "what?", `,"taskId":"`+id+`"`)); !strings.Contains(at(got, "error", "message").(string), "approve, reject") {
		t.Errorf("%v", got)
	}
	if got := task(message("g", "Approve", `,"contextId":"group","taskId":"`+id+`"`)); plainState(got) != "completed" || w.answers["q"].Action != "approve" {
		t.Errorf("%v %v", got, w.answers)
	}
}

func TestAnswersToQuestions(t *testing.T) {
	form := json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)
	wide := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`)
	for name, c := range map[string]struct {
		q     api.Question
		parts string
		more  string
		want  api.Answer
	}{
		"a text":              {api.Question{Form: form, Answers: []string{"answer", "reject"}}, `{"text":"blue"}`, "", api.Answer{Action: "answer", Form: json.RawMessage(`{"answer":"blue"}`), By: "a2a"}},
		"data":                {api.Question{Form: wide, Answers: []string{"answer"}}, `{"data":{"b":2}}`, "", api.Answer{Action: "answer", Form: json.RawMessage(`{"b":2}`), By: "a2a"}},
		"data with an action": {api.Question{Form: wide, Answers: []string{"yes", "no"}}, `{"data":{"action":"no","b":2}}`, "", api.Answer{Action: "no", Form: json.RawMessage(`{"b":2}`), By: "a2a"}},
		"a named answer":      {api.Question{Form: form, Answers: []string{"answer", "reject"}}, `{"text":" Reject "}`, "", api.Answer{Action: "reject", By: "a2a"}},
		"metadata":            {api.Question{Answers: []string{"approve", "reject"}}, `{"text":"too dear"}`, `,"metadata":{"action":"reject"}`, api.Answer{Action: "reject", Note: "too dear", By: "a2a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, nil)
			w.hold = true
			w.rpc("echo", "SendMessage", `{"message":`+message("m", "x", "")+`,"configuration":{"returnImmediately":true}}`)
			c.q.ID = "q"
			w.last(func(r *fakeRun) { w.ask(r, c.q) })
			w.rpc("echo", "SendMessage", `{"message":{"messageId":"n","role":"ROLE_USER","taskId":"`+runID(1)+`","parts":[`+c.parts+`]`+c.more+`}}`)
			if diff := cmp.Diff(c.want, w.answers["q"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnInteractiveAgentsContextIsItsSession(t *testing.T) {
	w := newHarness(t, nil)
	talk := w.agents["echo"]
	talk.Name, talk.Sessions = "talk", true
	w.agents["talk"] = talk
	turn := func(id, more string) map[string]any {
		return w.rpc("talk", "SendMessage", `{"message":`+message(id, "x", more)+`}`)
	}
	first := at(turn("a", ""), "task", "contextId")
	if _, known := w.sessions[first.(string)]; !known {
		t.Fatalf("%v isn't a session", first)
	}
	if second := at(turn("b", `,"contextId":"`+first.(string)+`"`), "task", "contextId"); second != first || w.submitted[1].Session != first {
		t.Errorf("%v %+v", second, w.submitted[1])
	}
	said := w.do("POST", "/a2a/talk/message:send", `{"message":`+message("c", "x", `,"contextId":"mine"`)+`}`)
	if said.StatusCode != 400 {
		t.Errorf("%d %s", said.StatusCode, said.body)
	}
}

func TestASessionThatGetsNoFirstTurnIsClosed(t *testing.T) {
	w := newHarness(t, nil)
	talk := w.agents["echo"]
	talk.Name, talk.Sessions = "talk", true
	w.agents["talk"] = talk
	send := func() answerRead {
		return w.do("POST", "/a2a/talk/message:send", `{"message":`+message("a", "x", "")+`}`)
	}
	w.refuses = fault.New(fault.Busy, "too many runs wait")
	if said := send(); said.StatusCode != 429 || len(w.sessions) != 0 {
		t.Errorf("refused: %d %s; sessions %v", said.StatusCode, said.body, w.sessions)
	}
	w.refuses, w.undelivered = nil, true
	if first, again := send(), send(); first.StatusCode != 200 || again.StatusCode != 200 || len(w.sessions) != 1 {
		t.Errorf("sent again: %d, %d; sessions %v", first.StatusCode, again.StatusCode, w.sessions)
	}
}

func TestAMessageIsSentAgainOnlyWhereNoAnswerWasHeard(t *testing.T) {
	w := newHarness(t, nil)
	send := func(id, text string) any {
		return at(w.rpc("echo", "SendMessage", `{"message":`+message(id, text, "")+`}`), "task", "id")
	}
	first := send("m", "x")
	w.await(func() bool { return len(w.heard) == 1 })
	if again := send("m", "x"); again == first {
		t.Error("a message that was answered joins its task")
	}
	w.await(func() bool { return len(w.heard) == 2 })
	w.last(func(r *fakeRun) { r.heard = false })
	if other := send("m", "y"); other == runID(2) {
		t.Error("another message of the same id joins")
	}
	if again := send("m", "x"); again != runID(2) {
		t.Errorf("the same message made %v", again)
	}
}

// A client has all of its answer before that is noted: a server that dies in between is asked again.
func TestAnAnswerIsNotedWhenItsClientHasAllOfIt(t *testing.T) {
	w := newHarness(t, nil)
	conn := dial(t, w, nil)
	for name, ask := range map[string]func(){
		"JSON-RPC":  func() { w.rpc("echo", "SendMessage", parts10(`{"text":"rpc"}`)) },
		"HTTP+JSON": func() { w.do("POST", "/a2a/echo/message:send", parts10(`{"text":"rest"}`)) },
		"0.3":       func() { w.do("POST", "/a2a/echo/v1/message:send", proto03(`{"text":"old"}`)) },
		"gRPC": func() {
			if _, err := pbv1.NewA2AServiceClient(conn).SendMessage(trusted.Context(t), hello10("grpc")); err != nil {
				t.Error(err)
			}
		},
	} {
		answered, noted := make(chan struct{}), make(chan struct{})
		w.mu.Lock()
		w.delivering = func() {
			defer close(noted)
			select {
			case <-answered:
			case <-time.After(testTime):
				t.Errorf("%s: it is noted before its client has it", name)
			}
		}
		w.mu.Unlock()
		ask()
		close(answered)
		<-noted
	}
}

// The same message waits while the answer to the first is being delivered: it joins no task of which
// its client may have heard.
func TestTheSameMessageWaitsForTheDeliveryOfItsAnswer(t *testing.T) {
	w := newHarness(t, nil)
	first, gate := make(chan struct{}), make(chan struct{})
	w.mu.Lock()
	w.delivering = sync.OnceFunc(func() { close(first); <-gate })
	w.mu.Unlock()
	send := func() any { // each over a connection of its own: one serves one request after another
		return at(decode(t, w.do("POST", "/a2a/echo/message:send", parts10(`{"text":"x"}`), "Connection: close").body), "task", "id")
	}
	send()
	<-first
	began := time.Now()
	waits := func() bool { return time.Since(began) < deliveryTime } // after that it waits no longer
	again := make(chan any, 1)
	go func() { again <- send() }()
	select {
	case id := <-again:
		if again <- id; waits() {
			t.Error("it is answered before it is known whether the first was delivered")
		}
	case <-time.After(200 * time.Millisecond): // it waits, or has not come that far
	}
	close(gate)
	if id := <-again; id != runID(2) && waits() {
		t.Errorf("it joined %v", id)
	}
}

// What a task was told it is not told again by who sends it again, unless that was answered.
func TestATaskIsToldOnceWhatIsSentAgain(t *testing.T) {
	begin := func(t *testing.T) (w *harness, ask func(question string), reply func() int) {
		w = newHarness(t, nil)
		w.hold, w.undelivered = true, true
		w.rpc("echo", "SendMessage", `{"message":`+message("m", "x", "")+`,"configuration":{"returnImmediately":true}}`)
		ask = func(q string) {
			w.last(func(r *fakeRun) { w.ask(r, api.Question{ID: q, Answers: []string{"approve", "reject"}, AskedAt: born}) })
		}
		return w, ask, func() int {
			return w.do("POST", "/a2a/echo/message:send", `{"message":`+message("n", "approve", `,"taskId":"`+runID(1)+`"`)+`,"configuration":{"returnImmediately":true}}`).StatusCode
		}
	}
	t.Run("a message is not taken for the answer to a later question", func(t *testing.T) {
		w, ask, reply := begin(t)
		first := reply()
		ask("later")
		if again := reply(); first != 200 || again != 200 || len(w.answers) > 0 {
			t.Fatalf("%d, %d, %v", first, again, w.answers)
		}
		w.await(func() bool { // all that is called delivered so far
			w.undelivered = len(w.heard) < 3
			return !w.undelivered
		})
		reply()
		w.await(func() bool { return len(w.heard) == 4 })
		if anew := reply(); anew != 200 || w.answers["later"].Action != "approve" {
			t.Errorf("%d, %v", anew, w.answers)
		}
	})
	t.Run("an answer joins the task also when that has ended", func(t *testing.T) {
		w, ask, reply := begin(t)
		ask("q")
		if first, again := reply(), reply(); first != 200 || again != 200 || w.answers["q"].Action != "approve" {
			t.Fatalf("%d, %d, %v", first, again, w.answers)
		}
		w.await(func() bool { // all that is called delivered so far
			w.undelivered = len(w.heard) < 3
			return !w.undelivered
		})
		reply()
		w.await(func() bool { return len(w.heard) == 4 })
		if anew := reply(); anew != 400 {
			t.Errorf("a message to a task that has ended: %d", anew)
		}
	})
}

func TestAMessageToAWorkingTaskIsDelivered(t *testing.T) {
	w := newHarness(t, nil)
	w.hold = true
	w.rpc("echo", "SendMessage", `{"message":`+message("m", "x", "")+`,"configuration":{"returnImmediately":true}}`)
	w.rpc("echo", "SendMessage", `{"message":{"messageId":"n","role":"ROLE_USER","taskId":"`+runID(1)+`","parts":[{"text":"more"},{"data":[1]}]},"configuration":{"returnImmediately":true}}`)
	task := w.rpc("echo", "GetTask", `{"id":"`+runID(1)+`"}`)
	if at(task, "history", 1, "messageId") != "n" || at(task, "history", 1, "parts", 0, "text") != "more" || at(task, "history", 1, "parts", 1, "data", 0) != 1.0 {
		t.Errorf("%v", task["history"])
	}
	if got := w.rpc("echo", "GetTask", `{"id":"`+runID(1)+`","historyLength":1}`); len(got["history"].([]any)) != 1 || at(got, "history", 0, "messageId") != "n" {
		t.Errorf("%v", got["history"])
	}
	if got := w.rpc("echo", "GetTask", `{"id":"`+runID(1)+`","historyLength":0}`); got["history"] != nil {
		t.Errorf("%v", got["history"])
	}
}

func TestAUnitMayNameTheFieldForText(t *testing.T) {
	for name, c := range map[string]struct{ schema, named, want string }{
		"the named one":             {`{"message":{"type":"string"},"topic":{"type":"string"}}`, "topic", `{"topic":"x"}`},
		"the customary one":         {`{"topic":{"type":"string"},"query":{"type":"string"}}`, "", `{"query":"x"}`},
		"the first of them":         {`{"text":{"type":"string"},"prompt":{"type":["string","null"]}}`, "", `{"prompt":"x"}`},
		"the only one":              {`{"topic":{"type":"string"},"n":{"type":"integer"},"kind":{"enum":["a","b"]}}`, "", `{"topic":"x"}`},
		"none of several":           {`{"topic":{"type":"string"},"other":{"type":"string"}}`, "", ""},
		"a message of another type": {`{"message":{"type":"integer"},"topic":{"type":"string"}}`, "", `{"topic":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, nil)
			w.add("named", `{"input":{"type":"object","properties":`+c.schema+`},"output":{"type":"object"}}`)
			agent := w.agents["named"]
			agent.Text = c.named
			w.agents["named"] = agent
			said := w.do("POST", "/a2a/named/message:send", parts10(`{"text":"x"}`))
			if c.want == "" {
				if said.StatusCode != 400 {
					t.Errorf("%d %s", said.StatusCode, said.body)
				}
				return
			}
			if said.StatusCode != 200 || w.inputOfLast() != c.want {
				t.Errorf("%d %s", said.StatusCode, said.body)
			}
		})
	}
}

// What one client is being told of its message delays nobody who sends just the same.
func TestTheSameMessageOfAnotherWaitsForNothing(t *testing.T) {
	d := &deliveries{under: map[sent]*delivery{}}
	end := d.begin(reception{run: runID(1), resend: "digest", owner: "ada"})
	defer end()
	began := time.Now()
	if d.await(httpwire.WithOwner(trusted.Context(t), "bob"), "digest"); time.Since(began) >= deliveryTime {
		t.Error("it waits for the answer of another")
	}
}
