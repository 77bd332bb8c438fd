package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/jsonrpc"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// bodyDoor stands between a request over HTTP and the SDK, as lineDoor does at stdio.
type bodyDoor struct {
	inner   http.Handler
	session bool // who asks in a session hears in a message that there is no such method
}

// serve serves a request with a body that was read.
func (d bodyDoor) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	if text := bytes.TrimLeft(body, " \t\r\n"); r.Method == http.MethodPost {
		carried, status, refusal := d.carried(text, r.Header.Get(revisionHeader))
		if refusal != nil {
			_ = httpwire.Reply(w, status, httpwire.TypeJSON, json.RawMessage(refusal)) // whoever asked has gone
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(carried)), int64(len(carried))
	}
	d.inner.ServeHTTP(&restoring{w}, r)
}

// carried is a body for the SDK, or else the answer to it.
func (d bodyDoor) carried(text []byte, revision string) (carried []byte, status int, refusal []byte) {
	switch {
	case !json.Valid(text):
		return nil, http.StatusBadRequest, jsonrpc.Refusal(nil, jsonrpc.CodeNoJSON,
			"the body isn't JSON, or more than that")
	case text[0] != '[' && d.session:
		return d.message(envelopeOf(text).heard(false))
	case text[0] != '[':
		return d.message(text)
	case revision > lastBatches:
		return nil, http.StatusBadRequest, jsonrpc.Refusal(nil, jsonrpc.CodeInvalidRequest,
			"a body is one message: this revision of the protocol has no batches")
	}
	count := 0
	for each := range strictjson.Elements(text) {
		if count++; count > maxBatch {
			break
		}
		one, status, refusal := d.message(envelopeOf(each).heard(true))
		if refusal != nil {
			return nil, status, refusal
		}
		carried = append(append(carried, ','), one...)
	}
	if count == 0 || count > maxBatch {
		return nil, http.StatusBadRequest, jsonrpc.Refusal(nil, jsonrpc.CodeInvalidRequest, largeBatch)
	}
	carried[0] = '['
	return append(carried, ']'), 0, nil
}

func (d bodyDoor) message(text []byte) (carried []byte, status int, refusal []byte) {
	m, err := jsonrpc.Read(text)
	switch {
	case err != nil:
		return nil, http.StatusBadRequest, jsonrpc.Refusal(m.ID, jsonrpc.CodeInvalidRequest, err.Error())
	case d.session && m.IsCall() && !slices.Contains(methods, m.Method):
		return nil, http.StatusOK, jsonrpc.Refusal(m.ID, jsonrpc.CodeNoMethod, noSuch)
	}
	carried, refusal = bounded(m)
	return carried, http.StatusBadRequest, refusal
}

// maxAnswers bounds what a client answers to the server's questions, in bytes: the SDK makes values of all of it.
const maxAnswers = 2 << 20

// bounded is a message for the SDK, or else the answer to it. Of an answer that is too large the SDK hears that there
// is none.
func bounded(m *jsonrpc.Message) (carried, refusal []byte) {
	const tooLarge = "what is answered to the server has more than 2 MiB"
	switch {
	case m.IsAnswer() && m.Size() > maxAnswers:
		return jsonrpc.Refusal(m.ID, jsonrpc.CodeInvalidRequest, tooLarge), nil
	case m.IsCall() && len(m.Param("inputResponses")) > maxAnswers:
		return nil, jsonrpc.Refusal(m.ID, jsonrpc.CodeInvalidRequest, tooLarge)
	}
	return m.Carried(), nil
}

// restoring puts ids back. The SDK writes an event, or a document, at once.
type restoring struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (w *restoring) Unwrap() http.ResponseWriter { return w.ResponseWriter }

var dataLine = []byte("data: ")

// Write implements http.ResponseWriter.
func (w *restoring) Write(p []byte) (int, error) {
	text := p
	switch httpwire.MediaType(w.Header()) {
	case httpwire.TypeJSON:
		text, _ = jsonrpc.Restored(p)
	case httpwire.TypeEvents:
		text = restoredEvent(p)
	}
	if _, err := w.ResponseWriter.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

func restoredEvent(event []byte) []byte {
	at := bytes.Index(event, dataLine)
	if at < 0 || at > 0 && event[at-1] != '\n' {
		return event
	}
	before, data := event[:at+len(dataLine)], event[at+len(dataLine):]
	end := bytes.IndexByte(data, '\n')
	if end < 0 {
		return event
	}
	text, _ := jsonrpc.Restored(data[:end])
	return slices.Concat(before, text, data[end:])
}
