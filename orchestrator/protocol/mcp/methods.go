package mcp

import (
	"bytes"
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// methods are those of sessions. The SDK answers others over HTTP with a text that isn't a message.
var methods = []string{
	"initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list",
	"resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete",
	"logging/setLevel", "server/discover", "subscriptions/listen", "tasks/get", "tasks/cancel", "tasks/update",
	noMethod,
}

// notifications are what a client may tell, beside unheard.
var notifications = []string{"notifications/initialized", "notifications/cancelled", "notifications/progress", unheard}

const (
	noMethod = "aod/none"                         // stands for a method that isn't there among others of a batch
	unheard  = "notifications/roots/list_changed" // stands for what nobody listens to
	noSuch   = "there is no such method"
)

// refuseNoMethod has a server answer noMethod.
func refuseNoMethod(server *sdk.Server) {
	refuse := func(context.Context, *sdk.ServerSession, *taskParams) (*emptyResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: noSuch}
	}
	if err := sdk.AddReceivingCustomMethod(server, noMethod, refuse); err != nil {
		panic(err) // the name is the SDK's now
	}
}

// envelope is what stands at the top of a message: parts of its text, nil where they are missing.
type envelope struct{ text, id, method, params []byte }

func envelopeOf(text []byte) envelope {
	e := envelope{text: text}
	for name, value := range strictjson.Members(text) {
		switch name {
		case "id":
			e.id = value
		case "method":
			e.method = value
		case "params":
			e.params = value
		}
	}
	return e
}

// withParams is the text of a call that has parameters: absent and null ones are none.
func (e envelope) withParams() []byte {
	switch {
	case e.id == nil || len(e.method) == 0:
	case e.params == nil:
		return e.with(e.method, slices.Concat(e.method, []byte(`,"params":{}`)))
	case string(e.params) == "null":
		return e.with(e.params, []byte("{}"))
	}
	return e.text
}

// heard is the text for the SDK over HTTP, which refuses all that came with a method that it doesn't know.
func (e envelope) heard(inBatch bool) []byte {
	name := strictjson.Text(e.method)
	switch {
	case len(e.method) == 0 || e.method[0] != '"':
		return e.text
	case e.id == nil && !slices.Contains(notifications, name):
		return e.with(e.method, []byte(`"`+unheard+`"`))
	case e.id != nil && inBatch && !slices.Contains(methods, name):
		return e.with(e.method, []byte(`"`+noMethod+`"`))
	}
	return e.withParams()
}

// with is the text with another value in place of a part of it.
func (e envelope) with(part, by []byte) []byte {
	at := cap(e.text) - cap(part) // a part ends where the text does, by its capacity
	return slices.Concat(e.text[:at], by, bytes.Clone(e.text[at+len(part):]))
}
