package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
)

// program stands for a container's program: its stdout outlives whoever talks with it.
type program struct {
	react func(p *program, line string) // to a line of its stdin

	mu     sync.Mutex
	news   *sync.Cond
	stdout []byte
	stdin  []string
	ended  bool
}

func newProgram(react func(p *program, line string)) *program {
	p := &program{react: react}
	p.news = sync.NewCond(&p.mu)
	return p
}

// says appends lines to stdout; the caller is react.
func (p *program) says(lines ...string) {
	for _, line := range lines {
		p.stdout = append(p.stdout, line+"\n"...)
	}
}

// exits ends stdout; the caller is react.
func (p *program) exits() { p.ended = true }

// heard returns how often stdin had a line with the text.
func (p *program) heard(text string) (times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.stdin {
		if strings.Contains(line, text) {
			times++
		}
	}
	return times
}

// pipes opens its streams for one process of ours.
func (p *program) pipes(since int64) Pipes {
	return Pipes{Stdin: stdinOf{p}, Stdout: &stdoutOf{p: p, at: since}, Written: p.written}
}

func (p *program) written() (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.stdout)), nil
}

type stdinOf struct{ p *program }

func (s stdinOf) Write(raw []byte) (int, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	defer s.p.news.Broadcast()
	if s.p.ended {
		return 0, io.ErrClosedPipe
	}
	s.p.stdin = append(s.p.stdin, string(raw))
	if s.p.react != nil {
		s.p.react(s.p, string(raw))
	}
	return len(raw), nil
}

func (s stdinOf) Close() error { return nil }

type stdoutOf struct {
	p      *program
	at     int64
	closed bool
}

func (s *stdoutOf) Read(into []byte) (int, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	for {
		switch {
		case s.closed:
			return 0, io.ErrClosedPipe
		case s.at < int64(len(s.p.stdout)):
			n := copy(into, s.p.stdout[s.at:])
			s.at += int64(n)
			return n, nil
		case s.p.ended:
			return 0, io.EOF
		}
		s.p.news.Wait()
	}
}

func (s *stdoutOf) Close() error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.closed = true
	s.p.news.Broadcast()
	return nil
}

var errDied = errors.New("the process died")

// journal is a listener whose process dies before it keeps more than so many states.
type journal struct {
	dies   int // 0: never
	choose string
	permit func(ctx context.Context, p Permission) (string, error) // nil: choose

	states []State
	events []Event
	again  []Event // that were kept before
	asked  []Permission
}

func (j *journal) Keep(ctx context.Context, s State, events []Event) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if j.dies > 0 && len(j.states) == j.dies {
		return errDied
	}
	j.states = append(j.states, s)
	j.events = append(j.events, events...)
	return nil
}

func (j *journal) Again(e Event) { j.again = append(j.again, e) }

func (j *journal) Permit(ctx context.Context, p Permission) (string, error) {
	j.asked = append(j.asked, p)
	if j.permit != nil {
		return j.permit(ctx, p)
	}
	return j.choose, nil
}

// told are the events' kinds and texts.
func (j *journal) told() (told []string) {
	for _, e := range j.events {
		told = append(told, string(e.Kind)+" "+e.Text)
	}
	return told
}

func (j *journal) has(t *testing.T, event string) {
	t.Helper()
	if !slices.Contains(j.told(), event) {
		t.Errorf("no event %q among %q", event, j.told())
	}
}

// dialogOf opens a dialog that ends with the test.
func dialogOf(t *testing.T, protocol Protocol, p *program, from State, j Listener) Dialog {
	t.Helper()
	d, err := NewDialog(protocol, p.pipes(from.Since), from, j, Options{Dir: "/workspace", RPC: RPC{Method: "chat"}, Result: Result{Text: &Pick{At: "/text"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// idOf returns the id of a message as JSON.
func idOf(line string) string {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal([]byte(line), &m)
	return string(m.ID)
}

// acpAgent is an agent of the Agent Client Protocol that thinks, asks and answers.
func acpAgent(p *program, line string) {
	update := func(u string) string {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":` + u + `}}`
	}
	prompt := func() string { // the prompt that it answers
		at := slices.IndexFunc(p.stdin, func(line string) bool { return strings.Contains(line, `"session/prompt"`) })
		for i := at; i < len(p.stdin); i++ {
			if strings.Contains(p.stdin[i], `"session/prompt"`) {
				at = i
			}
		}
		return idOf(p.stdin[at])
	}
	switch {
	case strings.Contains(line, `"initialize"`):
		p.says("a line of noise", `{"jsonrpc":"2.0","id":`+idOf(line)+`,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`)
	case strings.Contains(line, `"session/new"`):
		p.says(`{"jsonrpc":"2.0","id":` + idOf(line) + `,"result":{"sessionId":"S"}}`)
	case strings.Contains(line, `"session/load"`):
		p.says(update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"of yesterday"}}`),
			`{"jsonrpc":"2.0","id":`+idOf(line)+`,"result":null}`)
	case strings.Contains(line, `"session/prompt"`):
		p.says(update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`),
			update(`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"One, "}}`),
			update(`{"sessionUpdate":"plan","entries":[{"content":"look"},{"content":"edit"}]}`),
			`{"jsonrpc":"2.0","id":"f1","method":"fs/read_text_file","params":{"path":"/etc/passwd"}}`,
			update(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Edit it","status":"pending"}`),
			`{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"S","toolCall":{"toolCallId":"c1","title":"Edit it","rawInput":{"a":1}},`+
				`"options":[{"kind":"allow_once","name":"Yes","optionId":"y"},{"kind":"reject_once","name":"No","optionId":"n"}]}}`)
	case strings.Contains(line, `"outcome"`):
		p.says(update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"Edited","status":"completed"}`),
			update(`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"two."}}`),
			`{"jsonrpc":"2.0","id":`+prompt()+`,"result":{"stopReason":"end_turn","usage":{"totalTokens":3}}}`)
	}
}

// lineAgent speaks the line format.
func lineAgent(p *program, line string) {
	switch {
	case strings.Contains(line, `"type":"user"`):
		p.says(`{"type":"system","subtype":"init","session_id":"S"}`,
			`{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"One, "},{"type":"tool_use","id":"c1","name":"Edit","input":{}}]}}`,
			`{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback"}}`,
			`{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Edit","input":{"path":"a"}}}`)
	case strings.Contains(line, `"`+lineDecision+`"`):
		p.says(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c1","content":"done"}]}}`,
			`{"type":"assistant","message":{"content":[{"type":"text","text":"two."}]}}`,
			`{"type":"result","subtype":"success","is_error":false,"result":"One, two.","session_id":"S","total_cost_usd":0.25,"usage":{"output_tokens":3}}`)
	}
}

// rpcAgent speaks plain JSON-RPC.
func rpcAgent(p *program, line string) {
	if strings.Contains(line, `"method":"chat"`) {
		p.says("starting up", `{"jsonrpc":"2.0","method":"news","params":{"done":1}}`,
			`{"jsonrpc":"2.0","id":"f1","method":"open_file","params":{}}`,
			`{"jsonrpc":"2.0","id":`+idOf(line)+`,"result":{"text":"One, two."}}`)
	}
}

// linesOf splits what a program wrote.
func linesOf(stdout []byte) []string {
	return strings.Split(string(bytes.TrimSuffix(stdout, []byte("\n"))), "\n")
}
