// Package jsonrpc reads messages of JSON-RPC 2.0 at the door of an SDK that reads ids as doubles, so that
// 9007199254740993 and 1.0 would come back as other ids.
//
// Read takes a message or says why it is none. Message.Carried is its text for the SDK: ids and progress tokens
// are texts there that hold the bytes that the peer wrote. Restored puts those back in what the SDK writes.
//
// The package knows the envelope, progress and cancellation, and nothing of methods beyond that.
package jsonrpc

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Codes of errors.
const (
	CodeNoJSON         = -32700
	CodeInvalidRequest = -32600
	CodeNoMethod       = -32601
)

// Message is a message, and what is read of it: its parts are parts of its text.
type Message struct {
	Method string
	ID     []byte // as it was written; nil: it has none

	text     []byte
	splices  []splice
	isMethod bool
	failure  []byte
	params   []byte
}

// splice is a text that stands for a part of another.
type splice struct {
	old, by []byte
}

// IsCall reports whether the message wants an answer.
func (m *Message) IsCall() bool { return m.isMethod && m.ID != nil }

// IsComplaint reports whether the message tells of an error: nothing answers to that, or two peers never end.
func (m *Message) IsComplaint() bool { return !m.isMethod && m.failure != nil }

// IsAnswer reports whether the message answers a request, be it with an error.
func (m *Message) IsAnswer() bool { return !m.isMethod && m.ID != nil }

// Size is how many bytes the message has.
func (m *Message) Size() int { return len(m.text) }

// Param returns a parameter as it was written; nil: it isn't there. Of one that stands twice, all parameters are it.
func (m *Message) Param(name string) []byte {
	known, err := fields(m.params, name)
	if err != nil {
		return m.params
	}
	return known[name]
}

const tokenName = "progressToken"

// Read reads a message. Without one the error says what is wrong, for its writer; the message's id is there where
// that could be told.
func Read(text []byte) (*Message, error) {
	m := &Message{text: text}
	if err := strictjson.Check(text, strictjson.Rules{Ambiguous: true, Unbounded: true}); err != nil {
		return m, err
	}
	members, err := fields(text, "jsonrpc", "id", "method", "params", "result", "error")
	if err != nil {
		return m, errors.New("one object of JSON-RPC 2.0 is wanted, with each of its fields once")
	}
	method, isMethod := members["method"]
	m.Method, m.isMethod, m.failure = strictjson.Text(method), isMethod, members["error"]
	if id, there := members["id"]; there {
		if !IsID(id) {
			return m, errors.New("the id is neither a text nor a whole number")
		}
		m.ID = id
	}
	switch {
	case strictjson.Text(members["jsonrpc"]) != "2.0":
		return m, errors.New(`"jsonrpc": "2.0" is missing`)
	case isMethod && method[0] != '"':
		return m, errors.New("the method is not a text")
	case !isMethod:
		return m, m.readAnswer(members["result"])
	}
	if m.ID != nil {
		m.splices = append(m.splices, splice{m.ID, Carry(m.ID)})
	}
	return m, m.readParams(members["params"])
}

// readAnswer reads the answer to a request of ours: ids of ours are small whole numbers.
func (m *Message) readAnswer(result []byte) error {
	switch {
	case m.ID == nil || bytes.Equal(m.ID, null) || result == nil && m.failure == nil:
		return errors.New("it is neither a request nor an answer")
	case m.failure != nil && !isFailure(m.failure):
		return errors.New("the error has not a whole number as its code and a text as its message")
	}
	if n, whole := numberOf(m.ID); whole {
		m.splices = []splice{{m.ID, []byte(n.plain())}}
	}
	return nil
}

func isFailure(failure []byte) bool {
	known, err := fields(failure, "code", "message")
	_, parsed := strconv.ParseInt(string(known["code"]), 10, 64)
	message := known["message"]
	return err == nil && parsed == nil && len(message) > 0 && message[0] == '"'
}

// readParams finds the ids in the parameters.
func (m *Message) readParams(params []byte) error {
	if len(params) == 0 || params[0] != '{' {
		return nil // what is wrong with them is the method's to say
	}
	m.params = params
	known, err := fields(params, "_meta", "requestId")
	if err != nil {
		return errors.New("a field of the parameters stands twice")
	}
	if id := known["requestId"]; m.Method == "notifications/cancelled" && id != nil {
		if !IsID(id) {
			return errors.New("the requestId is neither a text nor a whole number")
		}
		m.splices = append(m.splices, splice{id, Carry(id)})
	}
	if meta := known["_meta"]; m.ID != nil && len(meta) > 0 && meta[0] == '{' {
		return m.readToken(meta)
	}
	return nil
}

func (m *Message) readToken(meta []byte) error {
	known, err := fields(meta, tokenName)
	token := known[tokenName]
	switch {
	case err != nil:
		return errors.New("the progressToken stands twice")
	case token == nil || bytes.Equal(token, null):
		return nil
	case !IsID(token):
		return errors.New("the progressToken is neither a text nor a whole number")
	}
	m.splices = append(m.splices, splice{token, Carry(token)})
	return nil
}

var errTwice = errors.New("a field stands twice, or it isn't an object")

// fields returns those fields of an object that are asked for. They stand once, so that two readers see the same.
func fields(object []byte, names ...string) (map[string][]byte, error) {
	if len(object) == 0 || bytes.TrimLeft(object, " \t\r\n")[0] != '{' {
		return nil, errTwice
	}
	found := make(map[string][]byte, len(names))
	for name, value := range strictjson.Members(object) {
		for _, wanted := range names {
			if name != wanted {
				continue
			}
			if found[name] != nil {
				return nil, errTwice
			}
			found[name] = value
		}
	}
	return found, nil
}

// Carried is the message for the SDK.
func (m *Message) Carried() []byte { return spliced(m.text, m.splices) }

// WithCarriedID is a request with its id carried, and nothing else looked at.
func WithCarriedID(text []byte) []byte {
	known, err := fields(text, "id")
	id := known["id"]
	if err != nil || id == nil || bytes.Equal(id, null) {
		return text
	}
	return spliced(text, []splice{{id, Carry(id)}})
}

// spliced replaces parts of a text.
func spliced(text []byte, splices []splice) []byte {
	if len(splices) == 0 {
		return text
	}
	size := len(text)
	for _, s := range splices {
		size += len(s.by)
	}
	at := func(part []byte) int { return cap(text) - cap(part) } // a part ends where the text does, by its capacity
	out, done := make([]byte, 0, size), 0
	for len(splices) > 0 {
		next := 0
		for i, s := range splices {
			if at(s.old) < at(splices[next].old) {
				next = i
			}
		}
		s := splices[next]
		out = append(append(out, text[done:at(s.old)]...), s.by...)
		done = at(s.old) + len(s.old)
		splices = append(splices[:next:next], splices[next+1:]...)
	}
	return append(out, text[done:]...)
}

// Restored is a message of the SDK as its reader wants it, and the id of the request that it answers; nil: none.
func Restored(text []byte) (restored, answers []byte) {
	known, err := fields(text, "id", "method", "params", "result")
	if err != nil {
		return text, nil
	}
	var splices []splice
	add := func(value []byte) {
		if id := carriedBy(value); id != nil {
			splices = append(splices, splice{value, id})
		}
	}
	if _, isMethod := known["method"]; !isMethod {
		answers = carriedBy(known["id"])
		add(known["id"])
	}
	params, _ := fields(known["params"], tokenName, "_meta")
	add(params[tokenName])
	result, _ := fields(known["result"], "_meta")
	for _, meta := range [][]byte{params["_meta"], result["_meta"]} {
		known, _ := fields(meta, subscription)
		add(known[subscription])
	}
	return spliced(text, splices), answers
}

// subscription is where MCP's SDK writes the id of a request into messages that belong to it.
const subscription = "io.modelcontextprotocol/subscriptionId"

// Refusal is the answer to what can't be taken.
func Refusal(id []byte, code int, message string) []byte {
	if id == nil {
		id = null
	}
	text, _ := strictjson.Encode(message) // a text can be written
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	out = append(out, `,"error":{"code":`+strconv.Itoa(code)+`,"message":`...)
	return append(append(out, text...), "}}"...)
}
