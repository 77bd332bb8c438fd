package a2a

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/jsonrpc"
)

// binding is a binding over HTTP. It looks at what the SDK doesn't.
type binding interface {
	// admit returns the SDK's handler for a request, and the request as that takes it.
	admit(*http.Request) (http.Handler, *http.Request, error)
	// refusal is an error in the binding's form.
	refusal(*refusal) (status int, body any)
	// ours is the answer of a method that the SDK doesn't write.
	ours() any
	// silent reports whether ours is the answer, whatever the SDK makes of it.
	silent() bool
}

// rpcBinding is JSON-RPC.
type rpcBinding struct {
	server *Server
	call   *call
	id     any // of the request: its bytes, or nil
	method string
	events bool // its client reads nothing but a stream
}

// envelope is a request of JSON-RPC.
type envelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

var (
	methods10 = []string{
		"SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask",
		"CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs",
		"DeleteTaskPushNotificationConfig", "GetExtendedAgentCard",
	}
	methods03 = []string{
		"message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe",
		"tasks/pushNotificationConfig/set", "tasks/pushNotificationConfig/get", "tasks/pushNotificationConfig/list",
		"tasks/pushNotificationConfig/delete", "agent/getAuthenticatedExtendedCard",
	}
)

// streaming are the methods whose answer is a stream.
var streaming = []string{"SendStreamingMessage", "SubscribeToTask", "message/stream", "tasks/resubscribe"}

// silences are the methods that return nothing.
var silences = []string{"DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"}

// typeA2A is the protocol's own name for its JSON.
const typeA2A = "application/a2a+json"

func (b *rpcBinding) admit(r *http.Request) (http.Handler, *http.Request, error) {
	body, err := io.ReadAll(httpwire.BodyOf(r, b.server.opts.MaxBytes))
	if err != nil {
		return nil, r, b.server.refusals.ofBody(r.Context(), err)
	}
	if media := httpwire.MediaType(r.Header); media != httpwire.TypeJSON && media != typeA2A {
		return nil, r, refuse(badType, "the request's Content-Type is not application/json")
	}
	request, err := b.read(body)
	if err != nil {
		return nil, r, err
	}
	b.method = request.Method
	b.events = slices.Contains(streaming, request.Method) &&
		httpwire.MediaType(http.Header{"Content-Type": r.Header["Accept"]}) == httpwire.TypeEvents
	version, err := versionOf(r)
	if err != nil {
		return nil, r, err
	}
	inner, err := b.choose(version, request.Method)
	if err != nil {
		return nil, r, err
	}
	if err := b.look(request); err != nil {
		return nil, r, err
	}
	body = jsonrpc.WithCarriedID(body)
	if len(request.Params) == 0 {
		request.Params = json.RawMessage("{}")
		if b.id != nil {
			request.ID = jsonrpc.Carry(request.ID)
		}
		if body, err = json.Marshal(request); err != nil {
			return nil, r, err
		}
	}
	return inner, withBody(r, body, r.URL.Path), nil
}

// read reads the envelope.
func (b *rpcBinding) read(body []byte) (envelope, error) {
	var request envelope
	if !json.Valid(body) {
		return request, refuse(badJSON, "the request's body is not JSON")
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return request, refuse(badEnvelope, "the request is not one object with jsonrpc, id, method and params")
	}
	switch {
	case len(request.ID) == 0 || string(request.ID) == "null":
	case !jsonrpc.IsID(request.ID):
		return request, refuse(badEnvelope, "the request's id is neither a text nor a whole number")
	default:
		b.id = request.ID
	}
	if request.Version != "2.0" || request.Method == "" {
		return request, refuse(badEnvelope, "the request has not the form of JSON-RPC 2.0")
	}
	return request, nil
}

// choose returns the handler of a version. The names of methods tell which is meant where the
// header doesn't.
func (b *rpcBinding) choose(version, method string) (http.Handler, error) {
	switch {
	case slices.Contains(methods10, method) && version != version03:
		return b.server.rpc10, nil
	case slices.Contains(methods03, method) && version != version10:
		b.call.legacy = true
		return b.server.rpc03, nil
	}
	return nil, refuse(noMethod, "there is no such method in this version")
}

// look reads what the SDK can't tell from what is missing.
func (b *rpcBinding) look(request envelope) error {
	if len(request.Params) > 0 && request.Params[0] != '{' && string(request.Params) != "null" {
		return refuse(badParams, "the parameters are not an object")
	}
	var raw struct {
		PageSize *float64 `json:"pageSize"`
	}
	_ = json.Unmarshal(request.Params, &raw) // what has another type is the SDK's to find
	if request.Method == "ListTasks" && raw.PageSize != nil && *raw.PageSize == 0 {
		return refuse(badParams, badPageSize)
	}
	if b.call.legacy {
		b.call.waits(request.Params)
	}
	return nil
}

// refusal implements binding. Only what stands before the protocol has a status of its own, and whatever keeps a
// stream from those who read nothing else: of an error with 200 some of them see nothing.
func (b *rpcBinding) refusal(r *refusal) (int, any) {
	if r.before || b.events {
		return r.rule.status, r.rpcBody(b.id)
	}
	switch r.rule.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge:
		return r.rule.status, r.rpcBody(b.id)
	}
	return http.StatusOK, r.rpcBody(b.id)
}

// ours implements binding. Version 0.3 has null for nothing, and a bare list.
func (b *rpcBinding) ours() any {
	var result any
	switch card := b.call.shownCard(); {
	case card != nil:
		result = card
	case !b.call.legacy:
		result = map[string]any{}
	case b.call.emptyList.Load():
		result = []any{}
	}
	return map[string]any{"jsonrpc": "2.0", "id": b.id, "result": result}
}

// silent implements binding. The SDK answers with an envelope that has no result, or with null for a
// bare list of nothing.
func (b *rpcBinding) silent() bool {
	return slices.Contains(silences, b.method) || b.call.legacy && b.call.emptyList.Load() || b.call.shownCard() != nil
}

// restBinding is HTTP+JSON.
type restBinding struct {
	server *Server
	call   *call
	path   string // below the agent's
}

func (b *restBinding) admit(r *http.Request) (http.Handler, *http.Request, error) {
	version, err := versionOf(r)
	if err != nil {
		return nil, r, err
	}
	inner, ours := b.server.rest10, version10
	if strings.HasPrefix(b.path, a2av0Prefix) {
		inner, ours, b.call.legacy = b.server.rest03, version03, true
	}
	if version != "" && version != ours {
		return nil, r, refuse(badVersion, "this address is that of version "+ours+" of A2A; that of 0.3 is below /v1")
	}
	body, err := io.ReadAll(httpwire.BodyOf(r, b.server.opts.MaxBytes))
	if err != nil {
		return nil, r, b.server.refusals.ofBody(r.Context(), err)
	}
	if err := b.look(r, body); err != nil {
		return nil, r, err
	}
	return inner, withBody(r, body, b.path), nil
}

const a2av0Prefix = "/v1/"

// look checks what the SDK doesn't.
func (b *restBinding) look(r *http.Request, body []byte) error {
	if media := httpwire.MediaType(r.Header); len(body) > 0 && media != httpwire.TypeJSON && media != typeA2A {
		return refuse(badType, "the request's Content-Type is neither application/json nor "+typeA2A)
	}
	if len(body) > 0 && !json.Valid(body) {
		return refuse(badJSON, "the request's body is not JSON")
	}
	if size := r.URL.Query().Get("pageSize"); size != "" && strings.Trim(size, "0") == "" {
		return refuse(badParams, badPageSize)
	}
	if b.call.legacy {
		b.call.waits(body)
	}
	return nil
}

func (b *restBinding) refusal(r *refusal) (int, any) { return r.rule.status, r.restBody() }

func (b *restBinding) ours() any {
	if card := b.call.shownCard(); card != nil {
		return card
	}
	if b.call.emptyList.Load() {
		return map[string]any{"configs": []any{}}
	}
	return map[string]any{}
}

func (b *restBinding) silent() bool {
	return b.call.legacy && b.call.emptyList.Load() || b.call.shownCard() != nil
}

// withBody is a request with a body that was read, for a handler at the server's top.
func withBody(r *http.Request, body []byte, path string) *http.Request {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.URL.Path, r.URL.RawPath = path, ""
	return r
}

// The versions of the protocol that a Server speaks.
const (
	version10 = "1.0"
	version03 = "0.3"
)

// Versions are the versions of the protocol that a Server speaks, newest first.
func Versions() []string { return []string{version10, version03} }

// versionOf returns the version that a request asks for, "" where it doesn't say.
func versionOf(r *http.Request) (string, error) {
	asked := r.Header.Get(sdk.SvcParamVersion)
	if asked == "" {
		asked = r.URL.Query().Get(sdk.SvcParamVersion)
	}
	return plainVersion(asked)
}

// plainVersion returns a version without its patch, which changes nothing on the wire.
func plainVersion(asked string) (string, error) {
	asked = strings.TrimSpace(asked)
	if asked == "" {
		return "", nil
	}
	for _, known := range Versions() {
		patch, ours := strings.CutPrefix(asked, known)
		if ours && (patch == "" || isPatch(patch)) {
			return known, nil
		}
	}
	return "", refuse(badVersion, "this server speaks the versions "+strings.Join(Versions(), " and ")+" of A2A")
}

func isPatch(text string) bool {
	digits, dotted := strings.CutPrefix(text, ".")
	return dotted && digits != "" && len(digits) < 10 && strings.Trim(digits, "0123456789") == ""
}
