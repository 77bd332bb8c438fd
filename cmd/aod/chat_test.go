package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api"

	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// chatter is a conversation in a pipe.
type chatter struct {
	t     *testing.T
	typed *io.PipeWriter
	said  testkit.Log
	told  testkit.Log
	ended chan int
}

// chats begins a conversation in a pipe, by a name of the command.
func (s *server) chats(command ...string) *chatter { return s.chatsBefore(false, command...) }

// chatsBefore is chats, where a terminal may show what is said.
func (s *server) chatsBefore(terminal bool, command ...string) *chatter {
	s.t.Helper()
	in, typed := io.Pipe()
	c := &chatter{t: s.t, typed: typed, ended: make(chan int, 1)}
	a := newApp(in, &ui.Output{Writer: &c.said, FD: -1, Terminal: terminal}, &ui.Output{Writer: &c.told, FD: -1})
	go func() { c.ended <- a.run(context.Background(), s.addressed(command...)) }()
	s.t.Cleanup(func() { _ = typed.Close() })
	return c
}

// addressed are the arguments of a command that asks the server.
func (s *server) addressed(command ...string) []string {
	return append(command, "--server", s.url(), "--token-file", filepath.Join(s.home(), "token"))
}

func (c *chatter) types(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.typed, text); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chatter) says(text string) {
	c.t.Helper()
	testkit.Eventually(c.t, "it says "+text, func() bool { return strings.Contains(c.said.String(), text) })
}

func (c *chatter) tells(text string) {
	c.t.Helper()
	testkit.Eventually(c.t, "it tells "+text, func() bool { return strings.Contains(c.told.String(), text) })
}

// leaves ends the input, and returns the exit code.
func (c *chatter) leaves() int {
	_ = c.typed.Close()
	return <-c.ended
}

// chattyInside is a program that shows what a conversation can have. It goes on when it may.
func chattyInside(may <-chan struct{}) servicetest.Program {
	return func(ctx context.Context, box servicetest.Sandbox) int {
		s := &spoken{boxed: boxed{box, ctx}}
		s.says("system", map[string]any{"subtype": "init", "session_id": "mine"})
		for {
			line, alive := s.nextMessage()
			if !alive {
				return 137
			}
			text := line.Message.Content[0].Text
			appends(filepath.Join(homeOf(box), "told"), text)
			switch verb, _, _ := strings.Cut(text, " "); verb {
			case "slow":
				s.saysText("the first half, and three words more, ") // which are masked with what follows
				select {
				case <-may:
				case <-ctx.Done():
					return 137
				}
				s.saysText("the second half")
			case "work":
				s.says("assistant", map[string]any{"message": map[string]any{"content": []any{
					map[string]any{"type": "thinking", "thinking": "hm\nthere is a lot to do"},
					map[string]any{"type": "tool_use", "id": "t1", "name": "Bash", "input": map[string]any{"command": "ls"}},
				}}})
				s.says("user", map[string]any{"message": map[string]any{"content": []any{
					map[string]any{"type": "tool_result", "tool_use_id": "t1", "content": strings.Repeat("a line\n", 214)},
				}}})
				s.saysText("worked")
			case "wait":
				for line.Type != "control_request" && s.next(&line) {
				}
				s.endsTurn("interrupted", map[string]any{"result": "stopped"})
				continue
			case "fail":
				s.endsTurn("error_during_execution", map[string]any{"is_error": true, "result": "it broke"})
				continue
			default:
				s.saysText("heard " + text)
			}
			s.endsTurn("success", map[string]any{"total_cost_usd": 0.25, "usage": map[string]any{"input_tokens": 10, "output_tokens": 3}})
		}
	}
}

func (s *server) addChatty(name string) (may chan struct{}) {
	s.t.Helper()
	may = make(chan struct{})
	s.addTalker(name, keptAlive)
	s.runs(name, chattyInside(may))
	return may
}

// newChatty is a server with a session, which the test ends. Its agent goes on with what is slow when it may.
func newChatty(t *testing.T) (s *server, session string, may chan struct{}) {
	t.Helper()
	s = newInside(t)
	may = s.addChatty("chatty")
	s.start()
	session = s.converse("chatty")
	return s, session, may
}

// `aod agent attach` is the same command.
func TestAConversationInAPipe(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addTalker("talker", askPeople+keptAlive)
	s.start()
	session := s.converse("talker")
	s.hears(session, "one", "heard 1, told 1: one")

	c := s.chats("agent", "attach", session)
	c.types("two\nmay I\n")
	c.tells("  2 deny\n")
	c.types("no\n") // isn't an answer
	c.tells(`"no" isn't an answer`)
	c.types("2\nmay we\n")
	c.tells("  2 deny\n")
	c.types("/answer allow\n")
	if code := c.leaves(); code != 0 {
		t.Errorf("it ended with %d: %s", code, c.told.String())
	}
	want := "heard 2, told 2: two\nheard 3, told 3: may I deny\nheard 4, told 4: may we allow\n"
	if c.said.String() != want || strings.Contains(c.told.String(), "\x1b") {
		t.Errorf("said %q, told %q", c.said.String(), c.told.String())
	}
	c = s.chats("chat", session)
	c.types("/close\n")
	if code := <-c.ended; code != 0 {
		t.Errorf("it ended with %d", code)
	}
	s.closed(session)
	c = s.chats("chat", session)
	c.types("too late\nand this\n")
	if code := <-c.ended; code != 2 || !strings.Contains(c.told.String(), "closed") {
		t.Errorf("it ended with %d: %s", code, c.told.String())
	}
}

func TestTheCommandsOfAConversation(t *testing.T) {
	t.Parallel()
	s, session, _ := newChatty(t)
	defer s.endSession(session)
	c := s.chats("chat", session)
	c.types("/retry\n/cost\n")
	c.tells("there is no message to give again")
	c.tells("there was no turn yet")
	c.types("work\n")
	c.says("worked\n")
	c.types("fail\n/retry\nhello\n/retry\n/cost\n/files\n/answer yes\n/what\n/help\n")
	c.tells("/close")
	if code := c.leaves(); code != 2 { // of what came first
		t.Errorf("it ended with %d", code)
	}
	if want := "worked\nheard hello\nheard hello\n"; c.said.String() != want {
		t.Errorf("said %q", c.said.String())
	}
	told := c.told.String()
	for _, want := range []string{
		"thought: hm … 2 lines\n▸ Bash {\"command\":\"ls\"} ✓ … 214 lines\n", "the last turn: the agent tells input_tokens 10, output_tokens 3, 0.25 USD\n",
		"all of it, 5 turns: the agent tells input_tokens 30, output_tokens 9, 0.75 USD\n", "the last turn has no files", "nothing is asked",
		`there is no command "/what"`, "/files, /cost, /diff, /retry, /answer, /close, /help",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("%q isn't told: %s", want, told)
		}
	}
	if n := strings.Count(told, "it broke"); n != 2 {
		t.Errorf("it broke %d times: %s", n, told)
	}
}

// addMessaged gives the server a capsule that is talked with: it repeats a message, and counts what was said before.
func (s *server) addMessaged(name string) {
	dir := filepath.Join(s.units, name)
	write(s.t, "FROM "+dockertest.Image+"\nCMD [\"true\"]\n", dir, "Dockerfile")
	write(s.t, "name: "+name+"\n", dir, "agent.yaml")
	write(s.t, "[]\n", dir, "tools.yaml")
	write(s.t, `{"input": {"type": "object", "properties": {"message": {"type": "string"}, "history": {"type": "list"}}, "required": ["message"]},
		"output": {"type": "object"}}`, dir, "schema.json")
	s.runs(name, func(_ context.Context, box servicetest.Sandbox) int {
		var input struct {
			Message string
			History []struct{ Role, Content string }
		}
		if box.Input(&input) != nil || input.Message == "fail" {
			return 3
		}
		text := fmt.Sprintf("%d before, heard %s", len(input.History), input.Message)
		if n := len(input.History); n > 0 {
			text += ", after " + input.History[n-2].Role + " " + input.History[n-2].Content + ", " + input.History[n-1].Role + " " + input.History[n-1].Content
		}
		box.Output(map[string]string{"text": text})
		return 0
	})
}

func TestAConversationWithAUnitThatTakesMessages(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addMessaged("clerk")
	s.addCaller("silent", "")
	s.start()
	c := s.chats("chat", "clerk")
	c.types("one\nfail\ntwo\n/diff\n/cost\n")
	c.tells("all of it, 3 turns")
	if code := c.leaves(); code != 3 {
		t.Errorf("it ended with %d: %s", code, c.told.String())
	}
	if want := "0 before, heard one\n2 before, heard two, after user one, assistant 0 before, heard one\n"; c.said.String() != want {
		t.Errorf("said %q", c.said.String())
	}
	_, id, _ := strings.Cut(c.told.String(), "conversation ")
	id, _, _ = strings.Cut(id, " with clerk")
	c = s.chats("chat", id)
	c.types("three\n/close\n")
	if code := <-c.ended; code != 0 || !strings.HasPrefix(c.said.String(), "4 before, heard three, after user two, ") {
		t.Errorf("it ended with %d, said %q: %s", code, c.said.String(), c.told.String())
	}
	for to, want := range map[string]string{"silent": "its input isn't a message", "chat-unknown": "there is no unit"} {
		c = s.chats("chat", to)
		if code := <-c.ended; code != 2 && code != 1 || !strings.Contains(c.told.String(), want) {
			t.Errorf("%s: it ended with %d: %s", to, code, c.told.String())
		}
	}
}

// teller is a provider that writes an answer in two halves. The second comes when it may.
type teller struct {
	*httptest.Server
	may   chan struct{}
	asked atomic.Int32
}

func newTeller(t *testing.T) *teller {
	p := &teller{may: make(chan struct{})}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	t.Cleanup(p.CloseClientConnections)
	return p
}

func (p *teller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if p.asked.Add(1); !strings.Contains(string(body), `"stream":true`) {
		http.Error(w, "it isn't asked for a stream", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i, part := range []string{`{"text": "It burnt down in the year `, `1715.\nNobody knows why."}`} {
		if i > 0 {
			select {
			case <-p.may:
			case <-r.Context().Done():
				return
			}
		}
		arguments, _ := json.Marshal(part)
		fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"final_answer","arguments":%s}}]}}]}`+"\n\n", arguments)
		_ = http.NewResponseController(w).Flush()
	}
	fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`+"\n\ndata: [DONE]\n\n")
}

// addThoughtful gives the server a capsule that is talked with, and answers what a model does. It asks plainly.
func (s *server) addThoughtful(name string) {
	s.addMessaged(name)
	write(s.t, "name: "+name+"\nmodel: small\n", s.units, name, "agent.yaml")
	s.runs(name, func(ctx context.Context, box servicetest.Sandbox) int {
		answer := box.Ask(ctx, "POST", "/v1/chat/completions", "one", []byte(`{"model":"small","messages":[{"role":"user","content":"why?"}]}`))
		_, raw, _ := strings.Cut(answer, " ") // behind the status
		var said struct {
			Choices []struct {
				Message struct {
					ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
				}
			}
		}
		if json.Unmarshal([]byte(raw), &said) != nil || len(said.Choices) != 1 || len(said.Choices[0].Message.ToolCalls) != 1 {
			return 3
		}
		box.Output(json.RawMessage(said.Choices[0].Message.ToolCalls[0].Function.Arguments))
		return 0
	})
}

// A person sees the words of a model while it writes them; a turn whose server was killed meanwhile is there once, whole.
func TestAConversationShowsWhatAModelWritesAtTheMoment(t *testing.T) {
	t.Parallel()
	for name, kills := range map[string]bool{"to its end": false, "over a kill": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := newTeller(t)
			s := newInside(t)
			s.addThoughtful("thoughtful")
			s.asksSmall(provider.URL, "secret", "")
			s.start()
			c := s.chatsBefore(true, "chat", "thoughtful")
			c.types("why?\n")
			c.says("It burnt down in ")
			const want = "It burnt down in the year 1715.\nNobody knows why.\n"
			page := s.events(t, "?tokens=true")
			if kills {
				s.kill()
				c.tells("the server is away, waiting\n")
				s.start()
				testkit.Eventually(t, "it says it anew", func() bool { return strings.Count(c.said.String(), "\nIt burnt down in ") == 1 })
			}
			close(provider.may)
			c.says("Nobody knows why.\n")
			if code, said := c.leaves(), c.said.String(); code != 0 || said != want && !kills || !strings.HasSuffix(said, want) || strings.Count(said, "1715") > 1 {
				t.Errorf("it ended with %d, said %q", code, c.said.String())
			}
			if told := page(); !kills && (!strings.Contains(told, "\nevent: tokens\ndata: {\"answer\":") || !strings.Contains(told, `"field":"text","text":"It burnt down in `)) {
				t.Errorf("the events are %s", told)
			}
			if stored := s.events(t, "")(); strings.Contains(stored, "tokens\n") || strings.Contains(stored, "burnt") {
				t.Errorf("stored is %s", stored)
			}
			if asked := provider.asked.Load(); asked != 1 && !kills || asked > 2 {
				t.Errorf("it was asked %d times", asked)
			}
		})
	}
}

// events begins to read the events of the last run of a conversation, as they are sent. What it returns waits for the
// last one, or the server's end.
func (s *server) events(t *testing.T, query string) (all func() string) {
	t.Helper()
	var runs []api.Summary
	for run, err := range s.client.Runs.List(t.Context(), api.Filter{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url()+"/v1/runs/"+runs[0].ID+"/events"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.web.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return func() string {
		defer answer.Body.Close()
		raw, _ := io.ReadAll(answer.Body) // as far as it came
		return string(raw)
	}
}

func TestATurnThatFailsIsTheExitCodeOfAPipe(t *testing.T) {
	t.Parallel()
	s, session, _ := newChatty(t)
	defer s.endSession(session)
	c := s.chats("chat", session)
	c.types("hello\nfail\nagain\n")
	code := c.leaves()
	if code == 0 || c.said.String() != "heard hello\nheard again\n" || !strings.Contains(c.told.String(), "it broke") {
		t.Errorf("it ended with %d, said %q, told %q", code, c.said.String(), c.told.String())
	}
}

// Nothing is shown twice, nothing is lost, and the message isn't told twice.
func TestAConversationGoesOnWhenItsServerIsBack(t *testing.T) {
	t.Parallel()
	s, session, may := newChatty(t)
	defer s.endSession(session)
	c := s.chats("chat", session)
	c.types("slow\n")
	c.says("the first half,")
	s.kill()
	c.tells("the server is away, waiting\n")
	s.start()
	close(may)
	c.says("the second half\n")
	c.types("hello\n")
	if code := c.leaves(); code != 0 {
		t.Errorf("it ended with %d: %s", code, c.told.String())
	}
	if want := "the first half, and three words more, the second half\nheard hello\n"; c.said.String() != want {
		t.Errorf("said %q", c.said.String())
	}
	if told := c.told.String(); strings.Count(told, "away") != 1 {
		t.Errorf("told %q", told)
	}
	if n := s.timesTold(session); n != 2 {
		t.Errorf("it was told %d messages", n)
	}
}

// A turn that went on when somebody left is shown to who comes back.
func TestAConversationIsTakenUpInTheMiddle(t *testing.T) {
	t.Parallel()
	s, session, may := newChatty(t)
	defer s.endSession(session)
	s.say(session, "slow")
	c := s.chats("chat", session)
	c.tells("the last turn goes on")
	close(may)
	c.says("the second half\n")
	c.types("/retry\n")
	if code := c.leaves(); code != 0 || strings.Count(c.said.String(), "half\n") != 2 {
		t.Errorf("it ended with %d, said %q", code, c.said.String())
	}
}

func TestSessionsAreListedAndClosed(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addTalker("talker", keptAlive)
	s.start()
	c := s.chats("agent", "run", "talker", "--new-session", "-m", "one")
	if code := <-c.ended; code != 0 || c.said.String() != "heard 1, told 1: one\n" {
		t.Fatalf("%d %q %q", code, c.said.String(), c.told.String())
	}
	_, id, _ := strings.Cut(c.told.String(), "session ")
	id, _, _ = strings.Cut(id, "\n")
	c = s.chats("agent", "run", "talker", "--session", id, "-m", "two")
	if code := <-c.ended; code != 0 || c.said.String() != "heard 2, told 2: two\n" {
		t.Fatalf("%d %q %q", code, c.said.String(), c.told.String())
	}
	c = s.chats("agent", "sessions")
	if code := <-c.ended; code != 0 || !strings.Contains(c.said.String(), "talker  2 turns") {
		t.Errorf("%d %q", code, c.said.String())
	}
	c = s.chats("agent", "sessions", "close", id)
	if code := <-c.ended; code != 0 {
		t.Errorf("%d %q", code, c.told.String())
	}
	s.closed(id)
	for range s.client.Sessions.List(t.Context(), client.SessionFilter{Open: true}) {
		t.Error("a session is open")
	}
}
