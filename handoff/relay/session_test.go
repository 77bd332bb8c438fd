package relay

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestMessagesPassAsTheyAreAndInOrder(t *testing.T) {
	c := newTestClient(t)
	s := New(Options{}, c.send)
	f := talkWith(t, s)
	asked := []string{
		`{ "jsonrpc" : "2.0", "id":"ä<&>", "method":"initialize","params":{"n":1.50e1,"x":"\u00e9"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"prompts/list","params":{"b":1,"a":2}}`,
		`{"jsonrpc":"2.0","id":77,"result":{"role":"assistant"}}`,
	}
	for _, message := range asked {
		asks(t, s, message)
		if got := f.hears(); got != message {
			t.Errorf("the server hears %s, want %s", got, message)
		}
	}
	said := []string{
		`{"jsonrpc":"2.0","id":77,"method":"sampling/createMessage","params":{"messages":[]}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"<&>"}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}`,
		`{ "jsonrpc":"2.0", "id":2, "result":{"prompts":[]}}`,
		`{"jsonrpc":"2.0","id":"x","method":"elicitation/create","params":{}}`,
		`{"jsonrpc":"2.0","id":"ä<&>","result":{"protocolVersion":"2025-06-18"}}`,
	}
	f.says(said...)
	for _, want := range said {
		if got := c.next(); got != want {
			t.Errorf("the client gets %s, want %s", got, want)
		}
	}
}

func TestFiftyCallsAtOnceAnsweredInAnyOrder(t *testing.T) {
	c := newTestClient(t)
	s := New(Options{}, c.send)
	f := talkWith(t, s)
	const n = 50
	go func() {
		for i := range n {
			_ = s.FromClient(t.Context(), []byte(call(i, "any")))
		}
	}()
	for range n {
		f.hears()
	}
	var want []string
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		want = append(want, result(i))
	}
	f.says(want...)
	for _, each := range want {
		if got := c.next(); got != each {
			t.Fatalf("got %s, want %s", got, each)
		}
	}
	if calls, all, failed := s.Calls(); all != n || failed != 0 || len(calls) != n {
		t.Errorf("%d calls, %d failed, %d listed", all, failed, len(calls))
	}
}

func TestAnAnswerToTheSameIDInOtherWordsIsTheClients(t *testing.T) {
	c := newTestClient(t)
	s := New(Options{}, c.send)
	f := talkWith(t, s)
	for id, other := range map[string]string{"1": "1.0", "100": "1e2", `"\u0061"`: `"a"`, "9007199254740993": "9007199254740993.0"} {
		asks(t, s, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"any"}}`)
		f.hears()
		f.says(`{"jsonrpc":"2.0","id":` + other + `,"result":{}}`)
		if got, want := c.next(), `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestToolsThatAreNotListedAreNeitherShownNorCalled(t *testing.T) {
	c := newTestClient(t)
	s := New(Options{Tools: []string{"a", "c"}}, c.send)
	f := talkWith(t, s)
	asks(t, s, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	f.hears()
	f.says(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","x":1.0},{"name":"b"},{"name":"c"}],"nextCursor":"z"}}`)
	if got, want := c.next(), `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","x":1.0},{"name":"c"}],"nextCursor":"z"}}`; got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
	for _, hidden := range []string{
		call(2, "b"),
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"arguments":{}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":["a"]}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"Name":"a"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`,
	} {
		asks(t, s, hidden)
		if got := c.next(); codeOf(t, got) != codeParams {
			t.Errorf("%s: %s", hidden, got)
		}
	}
	for _, ambiguous := range []string{ // which of the two does the server read?
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","name":"b"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"ping","method":"tools/call","params":{"name":"b"}}`,
		`[` + call(2, "b") + `]`,
		call(2, "b") + call(3, "b"),
		`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"a"}}`,
		`{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"a"}}`,
		`{"jsonrpc":"1.0","id":2,"method":"tools/call","params":{"name":"a"}}`,
		`{"jsonrpc":"2.0"}`, `null`, `"x"`, `x`,
	} {
		asks(t, s, ambiguous)
		if code := codeOf(t, c.next()); code != codeParse && code != codeRequest {
			t.Errorf("%s: %d", ambiguous, code)
		}
	}
	asks(t, s, call(4, "c"))
	if got := f.hears(); got != call(4, "c") {
		t.Errorf("after all that the server hears %s", got)
	}
}

// A server that reads names without their case would see another method than we do.
func TestNamesThatDifferByCaseAreNoHoles(t *testing.T) {
	c := newTestClient(t)
	s := New(Options{Tools: []string{"a"}}, c.send)
	talkWith(t, s)
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":2,"method":"ping","Method":"tools/call","params":{"name":"b"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","NAME":"b"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"},"Params":{"name":"b"}}`,
	} {
		asks(t, s, message)
		if code := codeOf(t, c.next()); code != codeRequest && code != codeParams {
			t.Errorf("%s: %d", message, code)
		}
	}
}

func TestACallIsCounted(t *testing.T) {
	left := 1
	c := newTestClient(t)
	s := New(Options{Spend: func() error {
		if left == 0 {
			return fault.New(fault.Busy, "the calls are spent").WithHint("call less")
		}
		left--
		return nil
	}}, c.send)
	f := talkWith(t, s)
	asks(t, s, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`) // costs nothing
	f.hears()
	asks(t, s, call(2, "a"))
	f.hears()
	f.says(`{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true}}`)
	c.next()
	asks(t, s, call(3, "a"))
	if got, want := c.next(), `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"the calls are spent (call less)"}],"isError":true}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	calls, all, failed := s.Calls()
	if all != 1 || failed != 1 || len(calls) != 1 || calls[0].Tool != "a" || !calls[0].Error {
		t.Errorf("%+v, %d, %d", calls, all, failed)
	}
}

func TestNewerClientsAreToldTheRevisions(t *testing.T) {
	c := newTestClient(t)
	s := New(Options{}, c.send)
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	} {
		asks(t, s, message)
		want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"this server speaks revisions with sessions only","data":{"requested":"2026-07-28","supported":["2025-11-25","2025-06-18","2025-03-26"]}}}`
		if got := c.next(); got != want {
			t.Errorf("got %s", got)
		}
	}
}

func TestAnswersThatNobodyAskedForAreDropped(t *testing.T) {
	c := newTestClient(t)
	s := New(Options{}, c.send)
	f := talkWith(t, s)
	asks(t, s, call(1, "a"))
	f.hears()
	f.says(result(9), result(1), result(1), `{"jsonrpc":"2.0","id":"1","result":{}}`, `{"jsonrpc":"2.0","method":"notifications/message"}`)
	if got := c.next(); got != result(1) {
		t.Errorf("got %s", got)
	}
	if got := c.next(); !strings.Contains(got, "notifications/message") {
		t.Errorf("an answer came twice: %s", got)
	}
	asks(t, s, call(2, "a"))
	f.hears()
	asks(t, s, call(2, "b"))
	if code := codeOf(t, c.next()); code != codeRequest {
		t.Errorf("an id was taken twice: %d", code)
	}
}

func TestWhatIsNoMessageIsNoise(t *testing.T) {
	c := newTestClient(t)
	s := New(Options{}, c.send)
	f := talkWith(t, s)
	noise := []string{"hello", "\x00\x01", `{"level":"info"}`, "[1,2]", "{", `{"jsonrpc":"2.0"}`, "7"}
	f.says(noise...)
	f.says("", `{"jsonrpc":"2.0","method":"notifications/message"}`)
	if got := c.next(); !strings.Contains(got, "notifications/message") {
		t.Errorf("noise came through: %q", got)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(noise, f.noise); diff != "" {
		t.Error(diff)
	}
}

func TestAHostileServerEndsItsSession(t *testing.T) {
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for _, h := range []struct{ name, says, why string }{
		{"by a schema that is 10,000 deep", `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":` + deep + `}]}}`, "isn't taken"},
		{"by a name that stands twice", `{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`, "stands twice"},
		{"by a line without an end", strings.Repeat("x", MaxMessage+2), "16 MiB"},
	} {
		t.Run(h.name, func(t *testing.T) {
			c := newTestClient(t)
			s := New(Options{}, c.send)
			f := talkWith(t, s)
			asks(t, s, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			f.hears()
			go f.says(h.says)
			if got := c.next(); codeOf(t, got) != codeServer || !strings.Contains(got, h.why) {
				t.Errorf("the client gets %.300s", got)
			}
			wait(t, s.Done())
			if err := s.Err(); !strings.Contains(fault.Public(err).Msg, h.why) || s.EndedWell() {
				t.Errorf("over: %v", err)
			}
		})
	}
}

func TestAListOfTooManyToolsIsRefused(t *testing.T) {
	c := newTestClient(t)
	s := New(Options{}, c.send)
	f := talkWith(t, s)
	for id, tools := range []string{strings.Repeat(`{"name":"a"},`, 100_000), "7", strings.Repeat(`{"name":"a"},`, maxTools-1)} {
		asks(t, s, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id))
		f.hears()
		list := "[" + tools + `{"name":"b"}]`
		if tools == "7" {
			list = tools
		}
		f.says(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":%s}}`, id, list))
		want := codeServer
		if id == 2 {
			want = 0
		}
		if got := c.next(); codeOf(t, got) != want {
			t.Errorf("%d: %.200s", id, got)
		}
	}
}

func TestACallTakesNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the time is over only when the server has the call
		c := newTestClient(t)
		s := New(Options{Timeout: time.Millisecond}, c.send)
		f := talkWith(t, s)
		heard := make(chan string, 2)
		go func() {
			for range 2 {
				heard <- f.hears()
			}
		}()
		asks(t, s, call(1, "slow"))
		if got := c.next(); codeOf(t, got) != codeTimeout {
			t.Errorf("got %s", got)
		}
		<-heard
		if got := <-heard; got != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"timeout"}}` {
			t.Errorf("the server hears %s", got)
		}
		f.says(result(1), `{"jsonrpc":"2.0","method":"notifications/message"}`)
		if got := c.next(); !strings.Contains(got, "message") {
			t.Errorf("the late answer came: %s", got)
		}
	})
}

func TestAServerThatReadsLateHearsOfNoCallThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(t)
		s := New(Options{Timeout: time.Second}, c.send)
		f := talkWith(t, s)
		for id := range 3 { // the first is on its way to the server, the others wait behind it
			go func() { _ = s.FromClient(t.Context(), []byte(call(id, "a"))) }()
			synctest.Wait()
		}
		for range 3 {
			if got := c.next(); codeOf(t, got) != codeTimeout {
				t.Errorf("got %s", got)
			}
		}
		time.Sleep(time.Hour)
		go func() { _ = s.FromClient(t.Context(), []byte(call(3, "a"))) }()
		synctest.Wait()
		cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"reason":"timeout"}}`
		heard := []string{f.hears(), f.hears(), f.hears()}
		slices.Sort(heard[1:]) // the new one may be taken before
		if diff := cmp.Diff([]string{call(0, "a"), call(3, "a"), cancelled}, heard); diff != "" {
			t.Error(diff)
		}
	})
}

func TestADeafServerHoldsNobody(t *testing.T) {
	c := newTestClient(t)
	s := New(Options{Timeout: time.Millisecond}, c.send)
	talkWith(t, s) // nobody reads
	go func() { _ = s.FromClient(t.Context(), []byte(call(1, "a"))) }()
	if got := c.next(); codeOf(t, got) != codeTimeout {
		t.Errorf("got %s", got)
	}
	s.HangUp()
	wait(t, s.Done())
	if !errors.Is(s.Err(), ErrClientLeft) {
		t.Error(s.Err())
	}
}

func TestHowASessionEnds(t *testing.T) {
	cases := []struct {
		name string
		do   func(s *Session, f *far)
		want error
	}{
		{"with its server", func(_ *Session, f *far) { _ = f.stdout.Close() }, ErrServerEnded},
		{"with its client", func(s *Session, f *far) { s.HangUp() }, ErrClientLeft},
		{"by a server that ends when its client has", func(s *Session, f *far) { s.HangUp(); _, _ = io.ReadAll(f.stdin); _ = f.stdout.Close() }, ErrClientLeft},
		{"from outside", func(s *Session, f *far) { s.End(io.ErrNoProgress) }, io.ErrNoProgress},
	}
	for _, e := range cases {
		t.Run(e.name, func(t *testing.T) {
			s := New(Options{}, newTestClient(t).send)
			f := talkWith(t, s)
			e.do(s, f)
			wait(t, s.Done())
			if err := s.Err(); !errors.Is(err, e.want) {
				t.Errorf("over because %v", err)
			}
			if err := s.FromClient(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err == nil {
				t.Error("a session that is over takes messages")
			}
		})
	}
	t.Run("after nobody said anything", func(t *testing.T) {
		s := New(Options{Idle: time.Millisecond}, newTestClient(t).send)
		wait(t, s.Done())
		if !errors.Is(s.Err(), ErrIdle) || !s.EndedWell() {
			t.Error(s.Err())
		}
	})
	t.Run("when its client takes nothing", func(t *testing.T) {
		c := newTestClient(t)
		c.fail = io.ErrClosedPipe
		s := New(Options{}, c.send)
		talkWith(t, s).says(`{"jsonrpc":"2.0","method":"notifications/message"}`)
		wait(t, s.Done())
		if !errors.Is(s.Err(), ErrClientLeft) {
			t.Error(s.Err())
		}
	})
}

func TestALastAnswerIsAwaited(t *testing.T) {
	c := newTestClient(t)
	s := New(Options{}, c.send)
	f := talkWith(t, s)
	asks(t, s, call(1, "a"))
	f.hears()
	s.HangUp()
	f.says(result(1))
	if got := c.next(); got != result(1) {
		t.Errorf("got %s", got)
	}
	if _, err := io.ReadAll(f.stdin); err != nil { // the end of its stdin comes after that
		t.Error(err)
	}
	wait(t, s.Done())
}

func FuzzMessages(f *testing.F) {
	for _, seed := range []string{call(1, "a"), result(1), `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}]}}`, "{", `[]`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`} {
		f.Add(seed, seed)
	}
	fuzzbound.Run(f, func(t *testing.T, fromClient, fromServer string) {
		s := New(Options{Tools: []string{"a"}}, func(message []byte) error {
			if m, err := read(message); err == nil && !m.isResponse() && string(message) != fromServer+" " {
				t.Errorf("the client gets what nobody said: %q", message)
			}
			return nil
		})
		defer s.End(ErrClientLeft)
		if m, err := read([]byte(fromClient)); err == nil && m.isRequest() {
			_, _ = s.ask(m)
		}
		_, _ = s.ask(message{id: []byte("1"), method: methodList, isMethod: true})
		_ = s.fromServer([]byte(fromServer+" "), func([]byte) {})
	})
}
