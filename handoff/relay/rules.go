package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// maxTools bounds one list of tools.
const maxTools = 1000

// FromClient takes a message of the client's: it is passed on, or answered where a rule is
// against it. It waits while the server doesn't read. The error says that the session is over,
// or why ctx ended.
func (s *Session) FromClient(ctx context.Context, text []byte) error {
	m, err := read(text)
	if err != nil {
		s.touch()
		return s.toClient(refusal(nil, unreadable(err)))
	}
	return s.fromClient(ctx, m)
}

// fromClient is FromClient for a message that was read.
func (s *Session) fromClient(ctx context.Context, m message) error {
	s.touch()
	if !m.isRequest() {
		return s.pass(ctx, nil, oneLine(m.text))
	}
	q, answer := s.ask(m)
	if answer != nil {
		return s.toClient(*answer)
	}
	return s.hand(ctx, q, oneLine(m.text))
}

func unreadable(err error) failure {
	if errors.Is(err, errNoMessage) {
		return failure{
			Code:    codeRequest,
			Message: "one JSON-RPC message is expected, with \"jsonrpc\": \"2.0\"; batches are not taken",
		}
	}
	return failure{Code: codeParse, Message: "the message can't be read: " + err.Error()}
}

// oneLine returns a message that stands in one line.
func oneLine(text []byte) []byte {
	if !bytes.ContainsAny(text, "\r\n") {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text // it was checked
	}
	return b.Bytes()
}

// ask remembers a request of the client's. It returns the answer to one that isn't passed on.
func (s *Session) ask(m message) (q *question, answer *message) {
	if asked := newer(m); asked != "" {
		return nil, new(unsupported(m.id, asked))
	}
	q = newQuestion(m)
	if m.method == methodCall {
		name := toolOf(m.params)
		q.tool = cut(name)
		if s.opts.Tools != nil && !slices.Contains(s.opts.Tools, name) || name == "" {
			return nil,
				new(refusal(m.id, failure{Code: codeParams, Message: fmt.Sprintf("there is no tool %q", q.tool)}))
		}
		if s.opts.Spend != nil {
			if err := s.opts.Spend(); err != nil {
				return nil, new(toolFailure(m.id, err))
			}
		}
	}
	if f := s.enter(q); f != nil {
		return nil, new(refusal(m.id, *f))
	}
	return q, nil
}

// toolOf returns the tool that is called; "" where readers may disagree about that.
func toolOf(params []byte) (tool string) {
	for name, value := range strictjson.Members(params) {
		switch {
		case name == "name":
			tool = textOf(value)
		case isLike(name, "name"):
			return ""
		}
	}
	return tool
}

// newer returns the revision of a client that has no sessions; "" of others.
func newer(m message) string {
	const key = "io.modelcontextprotocol/protocolVersion"
	asked := textOf(field(field(m.params, "_meta"), key))
	if asked == "" && m.method == methodDiscover {
		asked = "2026-07-28"
	}
	if asked < "2026" {
		return ""
	}
	return cut(asked)
}

// fromServer takes a line that the server wrote. Its error ends the session.
func (s *Session) fromServer(line []byte, noise func([]byte)) error {
	m, err := read(line)
	if err != nil {
		return s.fromNoise(line, err, noise)
	}
	s.touch()
	if m.isResponse() {
		q := s.leave(m)
		switch {
		case q == nil:
			return nil // nobody asked
		case !bytes.Equal(m.id, q.id): // 1.0 for 1: a client may know its own way to write it alone
			if m.text, err = strictjson.Set(m.text, []string{"id"}, q.id); err != nil {
				return err
			}
			m.id = q.id
		}
		if q.list && m.result != nil {
			m = s.granted(m)
		}
	}
	if err := s.toClient(m); err != nil {
		return ErrClientLeft
	}
	return nil
}

// fromNoise takes a line that isn't a message. One that some readers would take for a message
// ends the session.
func (*Session) fromNoise(line []byte, problem error, noise func([]byte)) error {
	var broken *strictjson.Error
	if errors.As(problem, &broken) && broken.Problem != strictjson.Syntax && line[0] == '{' {
		return fault.New(fault.Capsule, "the server wrote a message that isn't taken: %s", broken.Message())
	}
	noise(line)
	return nil
}

// granted returns an answer to tools/list without the tools that aren't granted.
func (s *Session) granted(m message) message {
	tools, left, err := s.grantedOf(field(m.result, "tools"))
	switch {
	case err != nil:
		return refusal(m.id, failure{Code: codeServer, Message: "the server's tools aren't taken: " + err.Error()})
	case !left:
		return m
	}
	list, err := strictjson.Set(m.text, []string{"result", "tools"}, encode(tools))
	if err != nil {
		return refusal(m.id,
			failure{Code: codeServer, Message: "the server's tools aren't taken: the result isn't an object"})
	}
	m.text, m.result = list, field(list, "result")
	return m
}

// grantedOf returns the granted ones of a list, and whether there are others.
func (s *Session) grantedOf(list []byte) (tools []json.RawMessage, left bool, err error) {
	tools = []json.RawMessage{}
	decoder := json.NewDecoder(bytes.NewReader(list))
	if open, err := decoder.Token(); err != nil || open != json.Delim('[') {
		return nil, false, errors.New("they are no list")
	}
	for n := 0; decoder.More(); n++ {
		if n == maxTools {
			return nil, false, fmt.Errorf("there are more than %d in one list", maxTools)
		}
		var tool json.RawMessage
		if err := decoder.Decode(&tool); err != nil {
			return nil, false, errors.New("they can't be read")
		}
		if s.opts.Tools != nil && !slices.Contains(s.opts.Tools, textOf(field(tool, "name"))) {
			left = true
			continue
		}
		tools = append(tools, tool)
	}
	return tools, left, nil
}

// cut bounds a name that is told again.
func cut(name string) string {
	const most = 100
	if len(name) > most {
		return name[:most] + "…"
	}
	return name
}
