package a2a

import (
	"context"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	pbv0 "github.com/a2aproject/a2a-go/a2apb"
	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

type anyPush = Push

// pickyPush refuses all receivers.
type pickyPush struct{ anyPush }

func (pickyPush) CreatePush(context.Context, string, api.PushConfig) (api.Push, error) {
	return api.Push{}, fault.Wrap(fault.Input, api.ErrReceiver, "the receiver is refused for its url: only https is spoken to").
		WithHint("the operator can name it in a2a.push_private").WithFindings([]fault.Finding{
		{Pointer: "/url", Message: "only https is spoken to", Hint: "the operator can name it in a2a.push_private"},
		{Pointer: "/scheme", Message: "it is unknown"},
	})
}

// A client is told which of its fields is wrong, why, and which setting would allow it.
func TestARefusedReceiverSaysWhy(t *testing.T) {
	w := newHarness(t, func(o *Options) { o.Push, o.Root = pickyPush{}, "echo" })
	w.rpc("echo", "SendMessage", parts10(`{"text":"x"}`))
	const why, url = "the receiver is refused for its url: only https is spoken to: the operator can name it in a2a.push_private", "http://canary/x"
	check := func(name, message string, fields map[string]string, config, scheme string) {
		t.Helper()
		if message != why || fields[config+"/url"] != "only https is spoken to: the operator can name it in a2a.push_private" || fields[config+"/authentication/"+scheme] != "it is unknown" {
			t.Errorf("%s: %s %v", name, message, fields)
		}
	}
	for name, said := range map[string]answerRead{
		"1.0 JSON-RPC":  w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{"taskId":"`+runID(1)+`","url":"`+url+`"}}`),
		"0.3 JSON-RPC":  w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{"taskId":"`+runID(1)+`","pushNotificationConfig":{"url":"`+url+`"}}}`),
		"1.0 HTTP+JSON": w.do("POST", "/a2a/echo/tasks/"+runID(1)+"/pushNotificationConfigs", `{"url":"`+url+`"}`),
	} {
		failure := decode(t, said.body)["error"]
		fields := map[string]string{}
		for _, details := range []any{at(failure, "data"), at(failure, "details")} {
			for i := range 2 {
				field, _ := at(details, 1, "fieldViolations", i, "field").(string)
				fields[field], _ = at(details, 1, "fieldViolations", i, "description").(string)
			}
		}
		message, _ := at(failure, "message").(string)
		if strings.HasPrefix(name, "1.0") {
			check(name, message, fields, "/taskPushNotificationConfig", "scheme")
		} else {
			check(name, message, fields, "/pushNotificationConfig", "schemes")
		}
		if strings.Contains(said.body, "canary") {
			t.Errorf("%s repeats the address: %s", name, said.body)
		}
	}
	conn := dial(t, w, nil)
	_, err10 := pbv1.NewA2AServiceClient(conn).CreateTaskPushNotificationConfig(trusted.Context(t), &pbv1.TaskPushNotificationConfig{Tenant: "echo", TaskId: runID(1), Url: url})
	message, fields := violationsOf(err10)
	check("1.0 gRPC", message, fields, "/taskPushNotificationConfig", "scheme")
	_, err03 := pbv0.NewA2AServiceClient(conn).CreateTaskPushNotificationConfig(trusted.Context(t), &pbv0.CreateTaskPushNotificationConfigRequest{
		Parent: "tasks/" + runID(1), ConfigId: "c",
		Config: &pbv0.TaskPushNotificationConfig{Name: "tasks/" + runID(1) + "/pushNotificationConfigs/c", PushNotificationConfig: &pbv0.PushNotificationConfig{Id: "c", Url: url}},
	})
	message, fields = violationsOf(err03)
	check("0.3 gRPC", message, fields, "/pushNotificationConfig", "schemes")
}

// violationsOf returns the message of an error of gRPC, and the descriptions of its fields.
func violationsOf(err error) (message string, fields map[string]string) {
	said := status.Convert(err)
	fields = map[string]string{}
	for _, detail := range said.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.FieldViolations {
				fields[v.Field] = v.Description
			}
		}
	}
	return said.Message(), fields
}
