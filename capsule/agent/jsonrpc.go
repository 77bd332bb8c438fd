package agent

import (
	"encoding/json"

	"github.com/agent-on-demand/aod/api/fault"
)

// codeNoMethod is JSON-RPC's code for a method that isn't there.
const codeNoMethod = -32601

// rpcMessage is a message of JSON-RPC 2.0.
type rpcMessage struct {
	id             any // a string or a json.Number; nil: a notification
	method         string
	params, result any
	failure        any // the error object of an answer; nil: none
}

// rpcEnds reports whether a message whose first fields are these answers the pending request.
func rpcEnds(fields map[string]string, s State) bool {
	return fields["id"] == s.Pending && fields["method"] == ""
}

// readRPC makes a message of a document; ok is false for what isn't one.
func readRPC(document any) (m rpcMessage, ok bool) {
	if textAt(document, "jsonrpc") != "2.0" {
		return m, false
	}
	m = rpcMessage{
		id: at(document, "id"), method: textAt(document, "method"),
		params: at(document, "params"), result: at(document, "result"), failure: at(document, "error"),
	}
	return m, m.method != "" || m.id != nil
}

// key returns a request's id as JSON, by which it is known; "" for one that can't be an id.
func (m rpcMessage) key() string {
	switch m.id.(type) {
	case string, json.Number:
		return askedKey(string(encode(m.id)))
	}
	return ""
}

// answers reports whether a message is the answer to a request of ours.
func (m rpcMessage) answers(id string) bool {
	return m.method == "" && id != "" && m.id == id
}

// err returns the error that the program answered with, or nil.
func (m rpcMessage) err() error {
	if m.failure == nil {
		return nil
	}
	code, _ := at(m.failure, "code").(json.Number)
	return programError("the program answered with error %s: %s", fault.Quote(code.String()),
		fault.Quote(reasonOf(m.failure)))
}

func rpcRequest(id, method string, params any) []byte {
	return encode(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

func rpcNotification(method string, params any) []byte {
	return encode(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

func rpcResult(id, result any) []byte {
	return encode(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

// rpcUnasked is what a message says that answers nothing and that the protocol has no further
// meaning for: a request is refused, and a notification is progress.
func rpcUnasked(m rpcMessage) meaning {
	switch {
	case m.method == "":
		return strange
	case m.id != nil:
		return rpcRefuse(m)
	}
	return meaning{events: []Event{{Kind: EventProgress, Text: m.method, Raw: encode(m.params)}}}
}

// rpcRefuse is what a request for a method gets that isn't offered.
func rpcRefuse(m rpcMessage) meaning {
	return meaning{
		events: []Event{{Kind: EventRefused, Text: m.method}},
		send: encode(map[string]any{"jsonrpc": "2.0", "id": m.id, "error": map[string]any{
			"code": codeNoMethod, "message": "AOD offers no such method",
		}}),
	}
}
