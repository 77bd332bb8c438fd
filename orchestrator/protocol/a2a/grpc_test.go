package a2a

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	pbv0 "github.com/a2aproject/a2a-go/a2apb"
	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/agent-on-demand/aod/api/fault"
)

// dial serves gRPC over a world, and returns a connection to it.
func dial(t *testing.T, w *harness, change func(*Options)) *grpc.ClientConn {
	t.Helper()
	opts := w.opts
	if change != nil {
		change(&opts)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- New(w.fakeService, opts).ServeGRPC(ctx, listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

func hello10(text string) *pbv1.SendMessageRequest {
	return &pbv1.SendMessageRequest{Tenant: "echo", Message: &pbv1.Message{
		MessageId: "m", Role: pbv1.Role_ROLE_USER, Parts: []*pbv1.Part{{Content: &pbv1.Part_Text{Text: text}}},
	}}
}

func hello03(text string, waits bool) *pbv0.SendMessageRequest {
	meta, _ := structpb.NewStruct(map[string]any{"unit": "echo"})
	return &pbv0.SendMessageRequest{
		Request:       &pbv0.Message{MessageId: "m", Role: pbv0.Role_ROLE_USER, Metadata: meta, Parts: []*pbv0.Part{{Part: &pbv0.Part_Text{Text: text}}}},
		Configuration: &pbv0.SendMessageConfiguration{Blocking: waits},
	}
}

func TestGRPCShowsTheSameTask(t *testing.T) {
	w := newHarness(t, nil)
	conn := dial(t, w, nil)
	v1, v0 := pbv1.NewA2AServiceClient(conn), pbv0.NewA2AServiceClient(conn)
	sent, err := v1.SendMessage(trusted.Context(t), hello10("hi"))
	if err != nil {
		t.Fatal(err)
	}
	task := sent.GetTask()
	if task.GetStatus().GetState() != pbv1.TaskState_TASK_STATE_COMPLETED || task.GetArtifacts()[0].GetParts()[0].GetText() != `{"message":"hi"}` {
		t.Errorf("%v", task)
	}
	again, err := v0.SendMessage(trusted.Context(t), hello03("hi", true))
	if err != nil || again.GetTask().GetStatus().GetState() != pbv0.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("%v %v", again, err)
	}
	old, err := v0.GetTask(trusted.Context(t), &pbv0.GetTaskRequest{Name: "tasks/" + task.GetId()})
	if err != nil || old.GetId() != task.GetId() || old.GetContextId() != task.GetContextId() {
		t.Errorf("%v %v", old, err)
	}
	list, err := v1.ListTasks(trusted.Context(t), &pbv1.ListTasksRequest{Tenant: "echo"})
	if err != nil || len(list.GetTasks()) != 2 {
		t.Errorf("%v %v", list, err)
	}
	card, err := v1.GetExtendedAgentCard(trusted.Context(t), &pbv1.GetExtendedAgentCardRequest{Tenant: "echo"})
	if err != nil || card.GetCapabilities().GetExtensions()[0].GetUri() != Extension {
		t.Errorf("%v %v", card, err)
	}
	w.hold = true
	held, err := v0.SendMessage(trusted.Context(t), hello03("x", false))
	if err != nil || held.GetTask().GetStatus().GetState() != pbv0.TaskState_TASK_STATE_WORKING {
		t.Errorf("%v %v", held, err)
	}
	if done, err := v1.CancelTask(trusted.Context(t), &pbv1.CancelTaskRequest{Id: held.GetTask().GetId()}); err != nil || done.GetStatus().GetState() != pbv1.TaskState_TASK_STATE_CANCELED {
		t.Errorf("%v %v", done, err)
	}
	stream, err := v1.SendStreamingMessage(trusted.Context(t), hello10("s"))
	if err != nil {
		t.Fatal(err)
	}
	if first, err := stream.Recv(); err != nil || first.GetTask() == nil {
		t.Fatalf("%v %v", first, err)
	}
	w.last(func(r *fakeRun) { w.succeed(r, "x") })
	var last *pbv1.StreamResponse
	for {
		next, err := stream.Recv()
		if err != nil {
			break
		}
		last = next
	}
	if last.GetStatusUpdate().GetStatus().GetState() != pbv1.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("%v", last)
	}
}

func TestWhatGRPCRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*harness)
		call   func(context.Context, pbv1.A2AServiceClient) error
		code   codes.Code
		reason string
		retry  bool
	}{
		"no message": {
			call: func(ctx context.Context, v1 pbv1.A2AServiceClient) error {
				_, err := v1.SendMessage(ctx, &pbv1.SendMessageRequest{Tenant: "echo"})
				return err
			}, code: codes.InvalidArgument, reason: "INVALID_PARAMS",
		},
		"too large a page": {
			call: func(ctx context.Context, v1 pbv1.A2AServiceClient) error {
				_, err := v1.ListTasks(ctx, &pbv1.ListTasksRequest{PageSize: new(int32(101))})
				return err
			}, code: codes.InvalidArgument, reason: "INVALID_PARAMS",
		},
		"an unknown task": {
			call: func(ctx context.Context, v1 pbv1.A2AServiceClient) error {
				_, err := v1.GetTask(ctx, &pbv1.GetTaskRequest{Id: unknownRun})
				return err
			}, code: codes.NotFound, reason: "TASK_NOT_FOUND",
		},
		"the cancel of an ended task": {
			before: ended,
			call: func(ctx context.Context, v1 pbv1.A2AServiceClient) error {
				_, err := v1.CancelTask(ctx, &pbv1.CancelTaskRequest{Id: runID(1)})
				return err
			}, code: codes.FailedPrecondition, reason: "TASK_NOT_CANCELABLE",
		},
		"a push where it is off": {
			before: ended,
			call: func(ctx context.Context, v1 pbv1.A2AServiceClient) error {
				_, err := v1.CreateTaskPushNotificationConfig(ctx, &pbv1.TaskPushNotificationConfig{TaskId: runID(1), Url: "http://canary"})
				return err
			}, code: codes.FailedPrecondition, reason: "PUSH_NOTIFICATION_NOT_SUPPORTED",
		},
		"a subscription of an ended task": {
			before: ended,
			call: func(ctx context.Context, v1 pbv1.A2AServiceClient) error {
				stream, err := v1.SubscribeToTask(ctx, &pbv1.SubscribeToTaskRequest{Id: runID(1)})
				if err == nil {
					_, err = stream.Recv()
				}
				return err
			}, code: codes.FailedPrecondition, reason: "UNSUPPORTED_OPERATION",
		},
		"a file by URL": {
			call: func(ctx context.Context, v1 pbv1.A2AServiceClient) error {
				sent := hello10("x")
				sent.Message.Parts = []*pbv1.Part{{Content: &pbv1.Part_Url{Url: "http://canary"}}}
				_, err := v1.SendMessage(ctx, sent)
				return err
			}, code: codes.InvalidArgument, reason: "CONTENT_TYPE_NOT_SUPPORTED",
		},
		"a part with nothing in it": {
			call: func(ctx context.Context, v1 pbv1.A2AServiceClient) error {
				sent := hello10("x")
				sent.Message.Parts = []*pbv1.Part{{Filename: "canary"}}
				_, err := v1.SendMessage(ctx, sent)
				return err
			}, code: codes.InvalidArgument, reason: "INVALID_PARAMS",
		},
		"a version of nobody": {
			call: func(ctx context.Context, v1 pbv1.A2AServiceClient) error {
				_, err := v1.SendMessage(metadata.AppendToOutgoingContext(ctx, "a2a-version", "99.0"), hello10("x"))
				return err
			}, code: codes.FailedPrecondition, reason: "VERSION_NOT_SUPPORTED",
		},
		"a full queue": {
			before: func(w *harness) { w.refuses = fault.New(fault.Busy, "too many") },
			call: func(ctx context.Context, v1 pbv1.A2AServiceClient) error {
				_, err := v1.SendMessage(ctx, hello10("x"))
				return err
			}, code: codes.ResourceExhausted, reason: "SERVER_ERROR", retry: true,
		},
		"no unit": {
			call: func(ctx context.Context, v1 pbv1.A2AServiceClient) error {
				sent := hello10("x")
				sent.Tenant = "canary"
				_, err := v1.SendMessage(ctx, sent)
				return err
			}, code: codes.NotFound, reason: "INVALID_PARAMS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, nil)
			if c.before != nil {
				c.before(w)
			}
			err := c.call(trusted.Context(t), pbv1.NewA2AServiceClient(dial(t, w, nil)))
			said := status.Convert(err)
			if said.Code() != c.code || strings.Contains(said.Message(), "canary") {
				t.Fatalf("%v, want %v", err, c.code)
			}
			reason := func(d any) bool { info, ok := d.(*errdetails.ErrorInfo); return ok && info.GetReason() == c.reason }
			retry := func(d any) bool { _, ok := d.(*errdetails.RetryInfo); return ok }
			if !slices.ContainsFunc(said.Details(), reason) || slices.ContainsFunc(said.Details(), retry) != c.retry {
				t.Errorf("%v", said.Details())
			}
		})
	}
}

func TestGRPCWantsTheToken(t *testing.T) {
	w := newHarness(t, nil)
	type owner struct{}
	v1 := pbv1.NewA2AServiceClient(dial(t, w, func(o *Options) {
		o.NoAuth, o.Header = false, "X-Key"
		o.Authorize = func(ctx context.Context, of Caller) (context.Context, error) {
			token := of.Token
			if token != "good" {
				return ctx, fault.New(fault.Unauthorized, "the token is not this server's")
			}
			return context.WithValue(ctx, owner{}, token), nil
		}
	}))
	for _, c := range []struct {
		key, value string
		code       codes.Code
	}{
		{"x", "", codes.Unauthenticated},
		{"authorization", "Bearer canary", codes.Unauthenticated},
		{"authorization", "good", codes.Unauthenticated},
		{"authorization", "Bearer good", codes.OK},
		{"x-key", "good", codes.OK},
		{"x-key", "canary", codes.Unauthenticated},
	} {
		ctx := metadata.AppendToOutgoingContext(trusted.Context(t), c.key, c.value)
		if _, err := v1.SendMessage(ctx, hello10("x")); status.Code(err) != c.code {
			t.Errorf("%s: %s: %v, want %v", c.key, c.value, err, c.code)
		}
		stream, err := v1.SendStreamingMessage(ctx, hello10("x"))
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != c.code {
			t.Errorf("stream with %s: %s: %v, want %v", c.key, c.value, err, c.code)
		}
	}
}

func TestGRPCEndsWithItsServer(t *testing.T) {
	w := newHarness(t, nil)
	w.hold = true
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- New(w.fakeService, w.opts).ServeGRPC(ctx, listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := pbv1.NewA2AServiceClient(conn).SendStreamingMessage(trusted.Context(t), hello10("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
