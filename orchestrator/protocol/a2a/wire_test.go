package a2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	old "github.com/a2aproject/a2a-go/a2a"
	pbv0 "github.com/a2aproject/a2a-go/a2apb"
	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// wire holds a body against the protocol's own definition of it.
type wire func(body []byte) error

// wires10 are the results of methods in version 1.0, which the protocol defines by its protobuf.
var wires10 = map[string]wire{
	"SendMessage":                      ofProto[pbv1.SendMessageResponse],
	"SendStreamingMessage":             ofProto[pbv1.StreamResponse],
	"SubscribeToTask":                  ofProto[pbv1.StreamResponse],
	"GetTask":                          ofProto[pbv1.Task],
	"CancelTask":                       ofProto[pbv1.Task],
	"ListTasks":                        ofProto[pbv1.ListTasksResponse],
	"CreateTaskPushNotificationConfig": ofProto[pbv1.TaskPushNotificationConfig],
	"GetTaskPushNotificationConfig":    ofProto[pbv1.TaskPushNotificationConfig],
	"ListTaskPushNotificationConfigs":  ofProto[pbv1.ListTaskPushNotificationConfigsResponse],
	"DeleteTaskPushNotificationConfig": ofProto[emptypb.Empty],
	"GetExtendedAgentCard":             ofProto[pbv1.AgentCard],
}

// wires03 are those of JSON-RPC in version 0.3, as the SDK of that version has them.
var wires03 = map[string]wire{
	"message/send":                        ofEvent,
	"message/stream":                      ofEvent,
	"tasks/resubscribe":                   ofEvent,
	"tasks/get":                           ofType[old.Task],
	"tasks/cancel":                        ofType[old.Task],
	"tasks/pushNotificationConfig/set":    ofType[old.TaskPushConfig],
	"tasks/pushNotificationConfig/get":    ofType[old.TaskPushConfig],
	"tasks/pushNotificationConfig/list":   ofType[[]old.TaskPushConfig],
	"tasks/pushNotificationConfig/delete": ofNothing,
	"agent/getAuthenticatedExtendedCard":  ofType[old.AgentCard],
}

// restWires03 are those of HTTP+JSON in version 0.3: its protobuf, but for the card.
var restWires03 = map[string]wire{
	"SendMessage":                      ofOldProto[pbv0.SendMessageResponse],
	"SendStreamingMessage":             ofOldProto[pbv0.StreamResponse],
	"SubscribeToTask":                  ofOldProto[pbv0.StreamResponse],
	"GetTask":                          ofOldProto[pbv0.Task],
	"CancelTask":                       ofOldProto[pbv0.Task],
	"ListTasks":                        ofOldProto[pbv0.ListTasksResponse],
	"CreateTaskPushNotificationConfig": ofOldProto[pbv0.TaskPushNotificationConfig],
	"GetTaskPushNotificationConfig":    ofOldProto[pbv0.TaskPushNotificationConfig],
	"ListTaskPushNotificationConfigs":  ofOldProto[pbv0.ListTaskPushNotificationConfigResponse],
	"DeleteTaskPushNotificationConfig": ofProto[emptypb.Empty],
	"GetExtendedAgentCard":             ofType[old.AgentCard],
}

// restMethods tell by a request of HTTP+JSON which method it is. The first that fits is meant.
var restMethods = []struct {
	request *regexp.Regexp
	method  string
}{
	{regexp.MustCompile(`^POST /message:send$`), "SendMessage"},
	{regexp.MustCompile(`^POST /message:stream$`), "SendStreamingMessage"},
	{regexp.MustCompile(`^GET /tasks$`), "ListTasks"},
	{regexp.MustCompile(`^[A-Z]+ /tasks/[^/]+:subscribe$`), "SubscribeToTask"},
	{regexp.MustCompile(`^POST /tasks/[^/]+:cancel$`), "CancelTask"},
	{regexp.MustCompile(`^GET /tasks/[^/]+$`), "GetTask"},
	{regexp.MustCompile(`^POST /tasks/[^/]+/pushNotificationConfigs$`), "CreateTaskPushNotificationConfig"},
	{regexp.MustCompile(`^GET /tasks/[^/]+/pushNotificationConfigs$`), "ListTaskPushNotificationConfigs"},
	{regexp.MustCompile(`^GET /tasks/[^/]+/pushNotificationConfigs/`), "GetTaskPushNotificationConfig"},
	{regexp.MustCompile(`^DELETE /tasks/[^/]+/pushNotificationConfigs/`), "DeleteTaskPushNotificationConfig"},
	{regexp.MustCompile(`^GET /(extendedAgentCard|card)$`), "GetExtendedAgentCard"},
}

// protoOf is a type of protobuf.
type protoOf[T any] interface {
	*T
	proto.Message
}

// ofProto wants a body that a message of protobuf takes whole, with all that it requires.
func ofProto[T any, M protoOf[T]](body []byte) error {
	m := M(new(T))
	if err := protojson.Unmarshal(body, m); err != nil {
		return err
	}
	var value any
	return errors.Join(json.Unmarshal(body, &value), lacking(m.ProtoReflect().Descriptor(), value, ""))
}

// lacking finds fields that a message requires and a value doesn't have.
func lacking(d protoreflect.MessageDescriptor, value any, path string) (err error) {
	object, isObject := value.(map[string]any)
	if !isObject || strings.HasPrefix(string(d.FullName()), "google.") {
		return nil
	}
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		inner, there := object[field.JSONName()]
		at := path + "/" + field.JSONName()
		switch {
		case !there && isRequired(field):
			err = errors.Join(err, fmt.Errorf("%s is required", at))
		case !there || field.Message() == nil:
		case field.IsMap():
			for key, one := range inner.(map[string]any) {
				if of := field.MapValue().Message(); of != nil {
					err = errors.Join(err, lacking(of, one, at+"/"+key))
				}
			}
		case field.IsList():
			for n, one := range inner.([]any) {
				err = errors.Join(err, lacking(field.Message(), one, fmt.Sprint(at, "/", n)))
			}
		default:
			err = errors.Join(err, lacking(field.Message(), inner, at))
		}
	}
	return err
}

// isRequired reads the annotation of a field that says so.
func isRequired(field protoreflect.FieldDescriptor) (required bool) {
	const asRequired = 2
	field.Options().ProtoReflect().Range(func(option protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if option.FullName() == "google.api.field_behavior" { //nolint:misspell // its name
			for i := range value.List().Len() {
				required = required || value.List().Get(i).Enum() == asRequired
			}
		}
		return true
	})
	return required
}

// ofOldProto is ofProto for version 0.3. The parts of a message are its content there; the SDK's copy
// of the protobuf alone has them under another name.
func ofOldProto[T any, M protoOf[T]](body []byte) error {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	renamed, err := json.Marshal(renameContent(value))
	if err != nil {
		return err
	}
	return protojson.Unmarshal(renamed, M(new(T)))
}

func renameContent(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if content, there := value["content"]; there && value["messageId"] != nil {
			value["parts"] = content
			delete(value, "content")
		}
		for key, inner := range value {
			value[key] = renameContent(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = renameContent(inner)
		}
	}
	return value
}

// ofType wants a body that a type takes whole: written again it is the same.
func ofType[T any](body []byte) error {
	var value T
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	return isWritten(value, body)
}

func ofEvent(body []byte) error {
	event, err := old.UnmarshalEventJSON(body)
	if err != nil {
		return err
	}
	return isWritten(event, body)
}

func isWritten(value any, body []byte) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var want, got any
	if err := errors.Join(json.Unmarshal(raw, &want), json.Unmarshal(body, &got)); err != nil {
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New(diff)
	}
	return nil
}

func ofNothing(body []byte) error {
	if string(body) != "null" {
		return fmt.Errorf("%s in the place of nothing", body)
	}
	return nil
}

// checkWire holds an answer against the protocol, and counts what was held.
func (w *harness) checkWire(method, path, sent string, said answerRead) {
	w.t.Helper()
	bodies := []string{said.body}
	switch kind := said.Header.Get("Content-Type"); {
	case said.body == "" || kind == "application/problem+json":
		return
	case kind == "text/event-stream":
		bodies = events(w.t, strings.NewReader(said.body))
	case kind != "application/json":
		w.t.Errorf("%s %s is answered with %q: %s", method, path, kind, said.body)
	}
	name, hold := wireOfCard(said.Request)
	if !strings.HasSuffix(path, cardPath) {
		name, hold = w.wireOf(method, strings.TrimPrefix(path, top), sent)
	}
	for _, body := range bodies {
		if err := hold([]byte(body)); err != nil {
			w.t.Errorf("%s: %s %s %s: %v\n%s", name, method, path, sent, err, body)
		}
		w.mu.Lock()
		w.held[name]++
		w.mu.Unlock()
	}
}

// wireOfCard returns what a card is held against, and what it is called.
func wireOfCard(asked *http.Request) (name string, hold wire) {
	switch version, _ := versionOf(asked); version {
	case version10:
		return "card of 1.0", ofProto[pbv1.AgentCard]
	case version03:
		return "card of 0.3", ofType[old.AgentCard]
	}
	return "card", ofCard
}

// wireOf returns what an answer is held against, and what it is called.
func (w *harness) wireOf(method, path, sent string) (name string, hold wire) {
	path, _, _ = strings.Cut(path, "?")
	_, below, rest := strings.Cut(path, "/")
	if !rest {
		var request struct{ Method string }
		_ = json.Unmarshal([]byte(sent), &request) // else it is refused
		if result := wires10[request.Method]; result != nil {
			return "JSON-RPC 1.0 " + request.Method, ofRPC(result)
		}
		return "JSON-RPC 0.3 " + request.Method, ofRPC(wires03[request.Method])
	}
	version, wires := "HTTP+JSON 1.0 ", wires10
	if rest, isOld := strings.CutPrefix(below, "v1/"); isOld {
		version, wires, below = "HTTP+JSON 0.3 ", restWires03, rest
	}
	for _, m := range restMethods {
		if m.request.MatchString(method + " /" + below) {
			return version + m.method, ofREST(wires[m.method])
		}
	}
	return version, ofREST(nil)
}

// ofRPC wants an envelope with a result, or with an error in the protocol's form.
func ofRPC(result wire) wire {
	return func(body []byte) error {
		var envelope map[string]json.RawMessage
		if err := json.Unmarshal(body, &envelope); err != nil {
			return err
		}
		_, hasID := envelope["id"]
		got, hasResult := envelope["result"]
		failure, hasError := envelope["error"]
		switch {
		case string(envelope["jsonrpc"]) != `"2.0"` || !hasID || hasResult == hasError || len(envelope) != 3:
			return errors.New("it isn't an envelope")
		case hasError:
			return ofError(failure, "code", "message", "data")
		case result == nil:
			return errors.New("the method has no result")
		}
		return result(got)
	}
}

// ofREST wants a result, or an error in the protocol's form.
func ofREST(result wire) wire {
	return func(body []byte) error {
		var failed struct{ Error json.RawMessage }
		if json.Unmarshal(body, &failed) == nil && failed.Error != nil {
			return ofError(failed.Error, "code", "message", "details", "status")
		}
		if result == nil {
			return errors.New("the method has no result")
		}
		return result(body)
	}
}

// ofError wants an error with such members, the details of which are messages of google.rpc.
func ofError(raw json.RawMessage, members ...string) error {
	var failure map[string]json.RawMessage
	if err := json.Unmarshal(raw, &failure); err != nil {
		return err
	}
	var got []string
	var details []json.RawMessage
	for name := range failure {
		got = append(got, name)
	}
	slices.Sort(got)
	slices.Sort(members)
	if !slices.Equal(got, members) {
		return fmt.Errorf("an error with the members %q", got)
	}
	list := failure["data"]
	if list == nil {
		list = failure["details"]
	}
	if err := json.Unmarshal(list, &details); err != nil || len(details) == 0 {
		return fmt.Errorf("an error with the details %s: %w", list, err)
	}
	for _, detail := range details {
		if err := protojson.Unmarshal(detail, &anypb.Any{}); err != nil {
			return err
		}
	}
	return nil
}

// oldCardKeys are what a card has for version 0.3 alone. Clients of 1.0 don't look at it.
var oldCardKeys = []string{"url", "protocolVersion", "preferredTransport", "additionalInterfaces", "security", "supportsAuthenticatedExtendedCard"}

// ofCard wants a card of both versions.
func ofCard(body []byte) error {
	var card map[string]any
	if err := json.Unmarshal(body, &card); err != nil {
		return err
	}
	for _, key := range oldCardKeys {
		delete(card, key)
	}
	schemes, _ := card["securitySchemes"].(map[string]any)
	for _, scheme := range schemes {
		object, _ := scheme.(map[string]any)
		for _, key := range []string{"type", "scheme", "name", "in"} {
			delete(object, key)
		}
	}
	newer, err := json.Marshal(card)
	if err != nil {
		return err
	}
	var older old.AgentCard
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&older); err != nil {
		return err
	}
	return ofProto[pbv1.AgentCard](newer)
}
