package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// The answers to a permission request of the line format.
const (
	allowed = `"` + lineDecision + `":"allow"`
	denied  = `"` + lineDecision + `":"deny"`
)

// agents are a program for each protocol, which says "One, two." and asks to be let edit.
var agents = []struct {
	protocol Protocol
	react    func(*program, string)
	prompted string // what only a prompt has
	answered string // what only the answer to its question has; "" asks none
	allow    string
}{
	{ACP, acpAgent, `"session/prompt"`, `"outcome":"selected"`, "y"},
	{StreamJSON, lineAgent, `"type":"user"`, allowed, "allow"},
	{PlainRPC, rpcAgent, `"method":"chat"`, "", ""},
}

func TestATurnHasTheAnswerAndWhatLedToIt(t *testing.T) {
	want := map[Protocol][]string{
		ACP: {
			"strange a line of noise", "thought hm", "text One, ", "plan look\nedit", "refused fs/read_text_file", "tool Edit it",
			"tool Edited", "text two.",
		},
		StreamJSON: {"progress system/init", "thought hm", "text One, ", "tool Edit", "refused hook_callback", "tool ", "text two."},
		PlainRPC:   {"strange starting up", "progress news", "refused open_file"},
	}
	for _, a := range agents {
		t.Run(string(a.protocol), func(t *testing.T) {
			p, j := newProgram(a.react), &journal{choose: a.allow}
			d := dialogOf(t, a.protocol, p, State{}, j)
			reply, err := d.Turn(t.Context(), "hello")
			if err != nil || reply.Text != "One, two." {
				t.Fatalf("reply %+v, %v", reply, err)
			}
			if diff := cmp.Diff(want[a.protocol], j.told()); diff != "" {
				t.Errorf("events: %s", diff)
			}
			if a.answered != "" && p.heard(a.answered) != 1 {
				t.Errorf("the question isn't answered once: %q", p.stdin)
			}
			if a.protocol == StreamJSON && (reply.CostUSD != "0.25" || string(reply.Usage) != `{"output_tokens":3}` || d.State().Session != "S") {
				t.Errorf("cost, usage or session: %+v", reply)
			}
			if a.protocol == ACP && (reply.Stop != "end_turn" || d.State().Session != "S" || j.asked[0].ID != "7" || !j.asked[0].Options[0].Allows) {
				t.Errorf("stop, session or question: %+v %+v", reply, j.asked)
			}
			if reply, err = d.Turn(t.Context(), "again"); err != nil || reply.Text != "One, two." || !d.Reusable() {
				t.Errorf("second turn: %+v, %v", reply, err)
			}
			if p.heard(a.prompted) != 2 {
				t.Errorf("not two prompts: %q", p.stdin)
			}
		})
	}
}

// The process may die behind each state that it keeps: the next one ends the turn as it would
// have.
func TestATurnGoesOnFromEachKeptState(t *testing.T) {
	type agent struct {
		row  int
		from State
	}
	for _, each := range []agent{{row: 0}, {row: 1}, {row: 2}, {row: 0, from: State{Session: "S", Next: 9}}} {
		a := agents[each.row]
		t.Run(string(a.protocol)+each.from.Session, func(t *testing.T) {
			whole := &journal{choose: a.allow}
			if _, err := dialogOf(t, a.protocol, newProgram(a.react), each.from, whole).Turn(t.Context(), "hello"); err != nil {
				t.Fatal(err)
			}
			for cut := 1; cut < len(whole.states); cut++ {
				p := newProgram(a.react)
				first := &journal{choose: a.allow, dies: cut}
				d := dialogOf(t, a.protocol, p, each.from, first)
				if _, err := d.Turn(t.Context(), "hello"); !errors.Is(err, errDied) {
					t.Fatalf("cut %d: %v", cut, err)
				}
				d.Close()
				second := &journal{choose: a.allow}
				from := first.states[len(first.states)-1]
				reply, err := dialogOf(t, a.protocol, p, from, second).Turn(t.Context(), "hello")
				if err != nil || reply.Text != "One, two." {
					t.Errorf("cut %d: %+v, %v", cut, reply, err)
				}
				if diff := cmp.Diff(whole.events, append(first.events, second.events...)); diff != "" {
					t.Errorf("cut %d: events: %s", cut, diff)
				}
				if p.heard(a.prompted) != 1 || a.answered != "" && p.heard(a.answered) != 1 {
					t.Errorf("cut %d: stdin %q", cut, p.stdin)
				}
			}
		})
	}
}

// In a conversation of 20 turns the process dies again and again: each turn is had once.
func TestAConversationOutlivesManyProcesses(t *testing.T) {
	for _, a := range agents {
		t.Run(string(a.protocol), func(t *testing.T) {
			seeded := rand.New(rand.NewPCG(17, 4))
			p, state, deaths := newProgram(a.react), State{}, 0
			for turn := range 20 {
				for alive := false; !alive; {
					j := &journal{choose: a.allow, dies: 1 + seeded.IntN(3)}
					d := dialogOf(t, a.protocol, p, state, j)
					reply, err := d.Turn(t.Context(), fmt.Sprintf("prompt %d.", turn))
					d.Close()
					switch {
					case errors.Is(err, errDied):
						deaths++
						state = j.states[len(j.states)-1]
					case err != nil || reply.Text != "One, two.":
						t.Fatalf("turn %d: %+v, %v", turn, reply, err)
					default:
						alive, state = true, d.State()
					}
				}
				if n := p.heard(fmt.Sprintf("prompt %d.", turn)); n != 1 {
					t.Errorf("the prompt of turn %d was written %d times", turn, n)
				}
			}
			if a.answered != "" && p.heard(a.answered) != 20 || deaths < 3 {
				t.Errorf("%d answers after %d deaths", p.heard(a.answered), deaths)
			}
		})
	}
}

// A turn whose end nobody stored ends again, and the program hears nothing of it.
func TestATurnEndsAgainUntilItsEndIsStored(t *testing.T) {
	for _, a := range agents {
		t.Run(string(a.protocol), func(t *testing.T) {
			p, j := newProgram(a.react), &journal{choose: a.allow}
			d := dialogOf(t, a.protocol, p, State{}, j)
			first, _ := d.Turn(t.Context(), "hello")
			lines := len(p.stdin)
			again, err := dialogOf(t, a.protocol, p, j.states[len(j.states)-1], &journal{}).Turn(t.Context(), "hello")
			if diff := cmp.Diff(first, again); diff != "" || err != nil || len(p.stdin) != lines {
				t.Errorf("%v %s %q", err, diff, p.stdin[lines:])
			}
			next, err := dialogOf(t, a.protocol, p, d.State(), &journal{choose: a.allow}).Turn(t.Context(), "next")
			if err != nil || next.Text != "One, two." || p.heard(a.prompted) != 2 {
				t.Errorf("the turn after it: %+v, %v", next, err)
			}
		})
	}
}

func TestAPermissionRequestIsAskedAndAnsweredOnce(t *testing.T) {
	for _, a := range agents[:2] {
		t.Run(string(a.protocol), func(t *testing.T) {
			repeats := func(p *program, line string) { // what it asks, it asks twice
				from := len(p.stdout)
				a.react(p, line)
				for _, line := range linesOf(p.stdout[from:]) {
					if strings.Contains(line, "request_permission") || strings.Contains(line, "can_use_tool") {
						p.says(line)
					}
				}
			}
			p, j := newProgram(repeats), &journal{choose: a.allow}
			if _, err := dialogOf(t, a.protocol, p, State{}, j).Turn(t.Context(), "hello"); err != nil || len(j.asked) != 1 || p.heard(a.answered) != 1 {
				t.Fatalf("%v, asked %+v", err, j.asked)
			}
			p = newProgram(repeats)
			first := &journal{permit: func(context.Context, Permission) (string, error) { return "", errDied }}
			if _, err := dialogOf(t, a.protocol, p, State{}, first).Turn(t.Context(), "hello"); !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			second := &journal{choose: a.allow}
			reply, err := dialogOf(t, a.protocol, p, first.states[len(first.states)-1], second).Turn(t.Context(), "hello")
			if err != nil || reply.Text != "One, two." {
				t.Fatalf("%+v, %v", reply, err)
			}
			if diff := cmp.Diff(first.asked, second.asked); diff != "" || len(second.asked) != 1 || p.heard(a.answered) != 1 {
				t.Errorf("asked %+v, stdin %q, %s", second.asked, p.stdin, diff)
			}
		})
	}
}

// Of two questions that came together, the second waits for the answer to the first, also where
// the process dies between them.
func TestQuestionsAreAnsweredOneAfterTheOther(t *testing.T) {
	p := newProgram(func(p *program, line string) {
		from := len(p.stdout)
		acpAgent(p, line)
		for _, line := range linesOf(p.stdout[from:]) {
			if strings.Contains(line, "request_permission") {
				p.says(strings.Replace(line, `"id":7`, `"id":8`, 1))
			}
		}
	})
	first := &journal{permit: func(context.Context, Permission) (string, error) { return "", errDied }}
	_, _ = dialogOf(t, ACP, p, State{}, first).Turn(t.Context(), "hello")
	second := &journal{choose: "y"}
	reply, err := dialogOf(t, ACP, p, first.states[len(first.states)-1], second).Turn(t.Context(), "hello")
	if err != nil || reply.Stop != "end_turn" || len(second.asked) != 2 || second.asked[0].ID != "7" || second.asked[1].ID != "8" {
		t.Errorf("asked %+v, %+v, %v", second.asked, reply, err)
	}
}

// What a program asks is shown to people: it is bounded, and says so where it was cut.
func TestAPermissionRequestIsBounded(t *testing.T) {
	long := strings.Repeat("ä", maxEventText)
	options := []any{
		map[string]any{"optionId": "x", "name": long, "kind": "allow_once"},
		map[string]any{"optionId": "x", "name": "No", "kind": "reject_once"},
		map[string]any{"optionId": long, "name": "No", "kind": "reject_once"},
		map[string]any{"optionId": "", "name": "No", "kind": "reject_once"},
	}
	for n := range 2 * maxOptions {
		options = append(options, map[string]any{"optionId": strconv.Itoa(n), "name": "Yes", "kind": "allow_once"})
	}
	for protocol, c := range map[Protocol]struct {
		speaker speaker
		request map[string]any
		options int
		refusal string
	}{
		ACP: {acp{}, map[string]any{
			"jsonrpc": "2.0", "id": 7, "method": "session/request_permission",
			"params": map[string]any{"sessionId": "s", "toolCall": map[string]any{"title": long}, "options": options},
		}, maxOptions, `"cancelled"`},
		StreamJSON: {streamJSON{}, map[string]any{
			"type": "control_request", "request_id": "q", "request": map[string]any{"subtype": "can_use_tool", "tool_name": "Write", "input": map[string]any{"text": long}},
		}, 2, denied},
	} {
		t.Run(string(protocol), func(t *testing.T) {
			h := c.speaker.hear(decoded(t, encode(c.request)), State{Session: "s"}, &speech{})
			if h.ask == nil {
				t.Fatalf("%+v", h)
			}
			if len(h.ask.Text) > maxEventText+100 || !strings.HasSuffix(h.ask.Text, " bytes more, which aren't shown)") || !utf8.ValidString(h.ask.Text) {
				t.Errorf("its text has %d bytes, and ends with %q", len(h.ask.Text), h.ask.Text[len(h.ask.Text)-60:])
			}
			if len(h.ask.Options) != c.options {
				t.Errorf("%d options", len(h.ask.Options))
			}
			seen := map[string]bool{}
			for _, o := range h.ask.Options {
				if o.ID == "" || len(o.ID) > maxID || len(o.Name) > maxID || seen[o.ID] {
					t.Errorf("option %.20q, %d bytes, twice: %v", o.ID, len(o.Name), seen[o.ID])
				}
				seen[o.ID] = true
			}
			if got := string(h.ask.answer("")); !strings.Contains(got, c.refusal) {
				t.Errorf("refused by %s", got)
			}
		})
	}
	if got := askedText(" Write\n"); got != "Write" {
		t.Errorf("a short text becomes %q", got)
	}
}

func TestARefusedPermissionIsTold(t *testing.T) {
	for i, refusal := range []string{`"optionId":"n"`, denied} {
		for _, choice := range []string{"", "an option that wasn't offered"} {
			a := agents[i]
			p := newProgram(a.react)
			_, err := dialogOf(t, a.protocol, p, State{}, &journal{choose: choice}).Turn(t.Context(), "hello")
			if p.heard(refusal) != 1 || p.heard(`"optionId":"y"`)+p.heard(allowed) != 0 {
				t.Errorf("%s, %q: stdin %q, %v", a.protocol, choice, p.stdin, err)
			}
		}
	}
}

func TestASessionIsTakenUpByAnotherProcessOfTheProgram(t *testing.T) {
	p, j := newProgram(acpAgent), &journal{choose: "y"}
	d := dialogOf(t, ACP, p, State{Session: "S", Next: 9}, j)
	reply, err := d.Turn(t.Context(), "hello")
	if err != nil || reply.Text != "One, two." || p.heard(`"session/load"`) != 1 || p.heard(`"session/new"`) != 0 {
		t.Errorf("%+v, %v, stdin %q", reply, err, p.stdin)
	}
	if slices.Contains(j.told(), "text of yesterday") {
		t.Error("what is of an earlier turn was told again")
	}
	forgets := newProgram(func(p *program, line string) {
		p.says(`{"jsonrpc":"2.0","id":` + idOf(line) + `,"result":{"protocolVersion":1}}`)
	})
	_, err = dialogOf(t, ACP, forgets, State{Session: "S"}, j).Turn(t.Context(), "hello")
	if !errors.Is(err, ErrNoResume) {
		t.Errorf("an agent that loads no session: %v", err)
	}
}

func TestAStoppedTurnEndsWithTheProgramsWord(t *testing.T) {
	stopped := errors.New("nobody wants it any more")
	for i, a := range agents[:2] {
		t.Run(string(a.protocol), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			obeys := func(p *program, line string) {
				switch {
				case strings.Contains(line, `"session/cancel"`):
					p.says(`{"jsonrpc":"2.0","id":"aod-3-prompt","result":{"stopReason":"cancelled"}}`)
				case strings.Contains(line, `"interrupt"}`):
					p.says(`{"type":"result","subtype":"error_during_execution","is_error":true}`)
				case strings.Contains(line, `"cancelled"`), strings.Contains(line, `"deny"`):
				default:
					a.react(p, line)
				}
			}
			p := newProgram(obeys)
			j := &journal{permit: func(ctx context.Context, _ Permission) (string, error) {
				cancel(stopped)
				return "", context.Cause(ctx)
			}}
			d := dialogOf(t, a.protocol, p, State{}, j)
			if _, err := d.Turn(ctx, "hello"); !errors.Is(err, stopped) {
				t.Fatal(err)
			}
			if word := []string{`"session/cancel"`, `"interrupt"}`}[i]; p.heard(word) != 1 || !d.Reusable() {
				t.Errorf("reusable %v, stdin %q", d.Reusable(), p.stdin)
			}
			if open := []string{`"outcome":"cancelled"`, denied}[i]; p.heard(open) != 1 {
				t.Errorf("its question has no answer: %q", p.stdin)
			}
			j.permit, j.choose = nil, a.allow
			if reply, err := d.Turn(t.Context(), "again"); err != nil || reply.Text != "One, two." {
				t.Errorf("the turn after it: %+v, %v", reply, err)
			}
		})
	}
}

func TestAProgramThatDoesNotStopIsGivenUp(t *testing.T) {
	for _, a := range agents {
		t.Run(string(a.protocol), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				deaf := func(p *program, line string) {
					if !strings.Contains(line, a.prompted) {
						a.react(p, line)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				d := dialogOf(t, a.protocol, newProgram(deaf), State{}, &journal{})
				begun := time.Now()
				_, err := d.Turn(ctx, "hello")
				if !errors.Is(err, context.DeadlineExceeded) || d.Reusable() || time.Since(begun) > time.Minute+cancelWait {
					t.Errorf("%v after %s, reusable %v", err, time.Since(begun), d.Reusable())
				}
				d.Close()
			})
		})
	}
}

func TestAProgramThatNeverReadsDoesNotHoldTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the time is over only when the program is written to
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		p := newProgram(nil)
		stdin := &fullPipe{closed: make(chan struct{})}
		d, err := NewDialog(ACP, Pipes{Stdin: stdin, Stdout: p.pipes(0).Stdout, Written: p.written}, State{}, &journal{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if _, err := d.Turn(ctx, "hello"); !errors.Is(err, context.DeadlineExceeded) || d.Reusable() {
			t.Errorf("%v, reusable %v", err, d.Reusable())
		}
	})
}

func TestAStdinThatCannotBeWrittenFailsTheTurn(t *testing.T) {
	p := newProgram(nil)
	full := errors.New("the disk is full")
	d, err := NewDialog(ACP, Pipes{Stdin: failing{full}, Stdout: p.pipes(0).Stdout, Written: p.written}, State{}, &journal{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Turn(t.Context(), "hello"); !errors.Is(err, full) || d.Reusable() {
		t.Errorf("%v, reusable %v", err, d.Reusable())
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
func (failing) Close() error                { return nil }

// fullPipe is a pipe that nobody reads.
type fullPipe struct{ closed chan struct{} }

func (f *fullPipe) Write([]byte) (int, error) { <-f.closed; return 0, errors.New("closed") }
func (f *fullPipe) Close() error              { close(f.closed); return nil }

func TestTheEndOfTheProgramEndsTheTurn(t *testing.T) {
	for _, a := range agents {
		dies := newProgram(func(p *program, line string) {
			if strings.Contains(line, a.prompted) {
				p.stdout = append(p.stdout, `{"jsonrpc":"2.0","id":"aod-3-pro`...)
				p.exits()
				return
			}
			a.react(p, line)
		})
		j := &journal{}
		d := dialogOf(t, a.protocol, dies, State{}, j)
		if _, err := d.Turn(t.Context(), "hello"); !errors.Is(err, ErrProgramEnded) || d.Reusable() {
			t.Errorf("%s: %v", a.protocol, err)
		}
		j.has(t, `strange {"jsonrpc":"2.0","id":"aod-3-pro`)
	}
}

func TestAnErrorOfTheProgramFailsTheTurnAlone(t *testing.T) {
	for i, a := range agents {
		failing := true
		p := newProgram(func(p *program, line string) {
			if !failing || !strings.Contains(line, a.prompted) {
				a.react(p, line)
				return
			}
			failing = false
			p.says([]string{
				`{"jsonrpc":"2.0","id":` + idOf(line) + `,"error":{"code":-32000,"message":"no money left"}}`,
				`{"type":"result","subtype":"success","is_error":true,"result":"no money left"}`,
				`{"jsonrpc":"2.0","id":` + idOf(line) + `,"error":{"code":-32000,"message":"no money left"}}`,
			}[i])
		})
		d := dialogOf(t, a.protocol, p, State{}, &journal{choose: a.allow})
		var failed *ProgramError
		if _, err := d.Turn(t.Context(), "hello"); !errors.As(err, &failed) || !strings.Contains(err.Error(), "no money left") {
			t.Errorf("%s: %v", a.protocol, err)
		}
		if reply, err := d.Turn(t.Context(), "again"); err != nil || reply.Text != "One, two." {
			t.Errorf("%s: the turn after it: %+v, %v", a.protocol, reply, err)
		}
	}
}

func TestWhatIsNoAnswerEndsNothing(t *testing.T) {
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	forged := []string{
		"", "\x00\x00", `{"jsonrpc":"2.0","id":"aod-99-prompt","result":{"stopReason":"forged"}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`,
		`{"jsonrpc":"2.0","result":{}}`, `[]`, `null`, deep,
		`{"jsonrpc":"2.0","id":"aod-1-initialize","result":{"protocolVersion":9}}`, `{"id":"aod-3-prompt","result":{}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"another","update":{"sessionUpdate":"agent_message_chunk","content":{"text":"!"}}}}`,
		strings.Repeat("x", MaxMessage+1),
	}
	p := newProgram(func(p *program, line string) {
		if strings.Contains(line, `"session/prompt"`) {
			p.says(forged...)
		}
		acpAgent(p, line)
	})
	j := &journal{choose: "y"}
	reply, err := dialogOf(t, ACP, p, State{}, j).Turn(t.Context(), "hello")
	if err != nil || reply.Text != "One, two." || reply.Stop != "end_turn" {
		t.Errorf("%+v, %v", reply, err)
	}
	j.has(t, "strange a message of more than 8 MiB")
	for _, e := range j.events {
		if len(e.Text) > maxEventText || len(e.Raw) > maxEventRaw {
			t.Errorf("an event of %d and %d bytes", len(e.Text), len(e.Raw))
		}
	}
}

// Two answers to one prompt are one reply; the second isn't an answer to the next prompt.
func TestASecondAnswerIsStrange(t *testing.T) {
	p := newProgram(func(p *program, line string) {
		acpAgent(p, line)
		if strings.Contains(line, `"outcome"`) {
			p.says(`{"jsonrpc":"2.0","id":"aod-3-prompt","result":{"stopReason":"forged"}}`)
		}
	})
	j := &journal{choose: "y"}
	d := dialogOf(t, ACP, p, State{}, j)
	for turn := range 2 {
		if reply, err := d.Turn(t.Context(), "hello"); err != nil || reply.Stop != "end_turn" || reply.Text != "One, two." {
			t.Errorf("turn %d: %+v, %v", turn, reply, err)
		}
	}
}

func TestAFloodEndsTheTurn(t *testing.T) {
	for name, flood := range map[string]func(p *program){
		"a line of 100 MiB": func(p *program) { p.stdout = append(p.stdout, make([]byte, 100<<20)...) },
		"many lines": func(p *program) {
			p.says(slices.Repeat([]string{strings.Repeat("x", 1<<20)}, 65)...)
		},
		"many requests": func(p *program) {
			for i := range maxRequests + 1 {
				p.says(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"terminal/create"}`, i))
			}
		},
	} {
		p := newProgram(func(p *program, line string) {
			if strings.Contains(line, `"method":"chat"`) {
				flood(p)
			}
		})
		d := dialogOf(t, PlainRPC, p, State{}, &journal{})
		var failed *ProgramError
		if _, err := d.Turn(t.Context(), "hello"); !errors.As(err, &failed) || d.Reusable() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALongLineIsNotHeld(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := newMessages(io.LimitReader(zeros{}, 60<<20), Lines).next()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || !m.tooLong || m.size != 60<<20 || took > 3*MaxMessage {
		t.Errorf("%d bytes, too long %v, %v; it took %d bytes of memory", m.size, m.tooLong, err, took)
	}
}

// zeros is a program that writes NUL for ever.
type zeros struct{}

func (zeros) Read(into []byte) (int, error) { clear(into); return len(into), nil }

func TestEventsOfATurnAreBounded(t *testing.T) {
	p := newProgram(func(p *program, line string) {
		if strings.Contains(line, `"method":"chat"`) {
			p.says(slices.Repeat([]string{"x"}, maxEvents+100)...)
			rpcAgent(p, line)
		}
	})
	j := &journal{}
	if reply, err := dialogOf(t, PlainRPC, p, State{}, j).Turn(t.Context(), "hello"); err != nil || reply.Text != "One, two." || len(j.events) != maxEvents {
		t.Errorf("%d events, %+v, %v", len(j.events), reply, err)
	}
	if len(j.states) > maxEvents/10 {
		t.Errorf("%d states were kept for %d lines that came together", len(j.states), maxEvents)
	}
}

func TestHalfASurrogatePairIsReadable(t *testing.T) {
	p := newProgram(func(p *program, line string) {
		if strings.Contains(line, `"method":"chat"`) {
			p.says(`{"jsonrpc":"2.0","id":` + idOf(line) + `,"result":{"text":"cut \ud83d"}}`)
		}
	})
	if reply, err := dialogOf(t, PlainRPC, p, State{}, &journal{}).Turn(t.Context(), "hello"); err != nil || reply.Text != "cut \uFFFD" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestADamagedStateAndAnUnknownProtocolAreRefused(t *testing.T) {
	for _, from := range []State{{Since: -1}, {Since: 5, Offset: 4}, {Next: -1}} {
		if _, err := NewDialog(ACP, Pipes{}, from, nil, Options{}); err == nil {
			t.Errorf("%+v is taken", from)
		}
	}
	if _, err := NewDialog("smoke signals", Pipes{}, State{}, nil, Options{}); err == nil {
		t.Error("an unknown protocol is taken")
	}
}

func decoded(t *testing.T, body []byte) any {
	t.Helper()
	document, err := decode(body)
	if err != nil {
		t.Fatal(err)
	}
	return document
}
