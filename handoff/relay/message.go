package relay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// MaxMessage bounds one message, in bytes.
const MaxMessage = 16 << 20

// Revisions are those of the protocol that are relayed: they have sessions.
var Revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26"}

// Codes of errors of JSON-RPC and of the protocol.
const (
	codeParse       = -32700
	codeRequest     = -32600
	codeParams      = -32602
	codeServer      = -32000 // the session is over
	codeTimeout     = -32001
	codeUnsupported = -32022 // the revision
)

// The methods that are looked at.
const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodList       = "tools/list"
	methodCall       = "tools/call"
	methodProgress   = "notifications/progress"
)

// message is a message, and what is read of it: its parts are parts of its text.
type message struct {
	text                        []byte
	id, params, result, failure []byte
	method                      string
	isMethod                    bool // a request or a notification
}

var errNoMessage = errors.New("it isn't a JSON-RPC message")

// read reads a message. The error is a *strictjson.Error, or errNoMessage.
func read(text []byte) (m message, err error) {
	if err := strictjson.Check(text, strictjson.Rules{Unbounded: true}); err != nil {
		return m, err
	}
	m.text = text
	version := ""
	for name, value := range strictjson.Members(text) {
		switch name {
		case "jsonrpc":
			version = textOf(value)
		case "id":
			m.id = value
		case "method":
			m.method, m.isMethod = textOf(value), true
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.failure = value
		default:
			if isLike(name, "jsonrpc", "id", "method", "params", "result", "error") {
				return m, errNoMessage
			}
		}
	}
	if version != "2.0" || m.id != nil && !isID(m.id) || m.isMethod && m.method == "" || !m.isMethod && m.id == nil {
		return m, errNoMessage
	}
	return m, nil
}

// isLike reports whether a name is one of others but for its case: some readers take it for
// that.
func isLike(name string, others ...string) bool {
	return slices.ContainsFunc(others, func(other string) bool { return strings.EqualFold(name, other) })
}

func (m message) isRequest() bool  { return m.isMethod && m.id != nil }
func (m message) isResponse() bool { return !m.isMethod }

// isID reports whether a value may be an id: a string or a number.
func isID(value []byte) bool {
	c := value[0]
	return c == '"' && len(value) <= maxID || c == '-' || c >= '0' && c <= '9'
}

const maxID = 1 << 10

// textOf returns the string of a value, "" for one that is none.
func textOf(value []byte) (text string) {
	if len(value) > 0 && value[0] == '"' {
		_ = json.Unmarshal(value, &text) // it was checked
	}
	return text
}

// field returns a field of an object; nil: it has none.
func field(object []byte, name string) []byte {
	for each, value := range strictjson.Members(object) {
		if each == name {
			return value
		}
	}
	return nil
}

// failure is an error of JSON-RPC.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// refusal is the answer to a request that is not passed on.
func refusal(id []byte, f failure) message {
	answer := message{id: orNull(id), failure: encode(f)}
	answer.text = encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   json.RawMessage `json:"error"`
	}{"2.0", answer.id, answer.failure})
	return answer
}

// toolFailure is the answer to a call of a tool that a rule is against. A model can read it.
func toolFailure(id []byte, err error) message {
	public := fault.Public(err)
	text := public.Msg
	if public.Hint != "" {
		text += " (" + public.Hint + ")"
	}
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type result struct {
		Content []content `json:"content"`
		IsError bool      `json:"isError"`
	}
	answer := message{id: id, result: encode(result{[]content{{"text", text}}, true})}
	answer.text = encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result"`
	}{"2.0", id, answer.result})
	return answer
}

// unsupported is the answer to a client of a revision that isn't relayed.
func unsupported(id []byte, asked string) message {
	return refusal(id, failure{
		Code: codeUnsupported, Message: "this server speaks revisions with sessions only",
		Data: map[string]any{"supported": Revisions, "requested": asked},
	})
}

func orNull(id []byte) json.RawMessage {
	if id == nil {
		return json.RawMessage("null")
	}
	return id
}

func encode(v any) []byte {
	raw, _ := strictjson.Encode(v) // our own types can be written
	return raw
}

var errLine = fault.New(fault.TooLarge, "the server wrote a line of more than %d MiB", MaxMessage>>20)

// lines reads lines of a bounded length.
type lines interface {
	ReadSlice(delim byte) ([]byte, error)
}

// readLine returns the next line without its end. The error is errLine for one that is too
// long, and io.EOF after the last one.
func readLine(from lines) (line []byte, err error) {
	var parts [][]byte // joined at the end: what grows by appending takes a multiple of a long line
	size := 0
	for {
		part, err := from.ReadSlice('\n')
		if size += len(part); size > MaxMessage+1 {
			return nil, errLine
		}
		parts = append(parts, bytes.Clone(part))
		switch {
		case err == nil:
			return bytes.TrimRight(bytes.Join(parts, nil), "\r\n"), nil
		case errors.Is(err, io.EOF) && size > 0:
			return bytes.Join(parts, nil), nil
		case !isFull(err):
			return nil, err
		}
	}
}

// FromLines passes the messages of a client on that writes each as a line, until it ends.
func FromLines(ctx context.Context, client io.Reader, s *Session) error {
	from := bufio.NewReaderSize(client, 64<<10)
	for {
		line, err := readLine(from)
		switch {
		case errors.Is(err, io.EOF):
			s.HangUp()
			return nil
		case err != nil:
			return err
		case len(line) == 0:
			continue
		}
		if err := s.FromClient(ctx, line); err != nil {
			return err
		}
	}
}
