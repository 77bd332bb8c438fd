package a2a

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// makes adds a task that has shown so many artifacts of a MiB each, and goes on.
func (w *harness) makes(artifacts int) (id string) {
	w.t.Helper()
	w.hold = true
	w.rpc("echo", "SendMessage", fmt.Sprintf(`{"message":%s,"configuration":{"returnImmediately":true}}`, message(fmt.Sprintf("m%d", len(w.runs)), "x", "")))
	w.last(func(r *fakeRun) {
		id = r.record.ID
		for n := range artifacts {
			w.tell(r, api.ArtifactEvent{ID: fmt.Sprint(n), Parts: []api.Part{{Text: strings.Repeat("x", 1<<20)}}, At: born})
		}
	})
	return id
}

// counted serves the world's units anew, with a bound of memory and of streams of all clients together.
func (w *harness) counted(memory int64, streams int) *bytegate.Gate {
	gate, bound := bytegate.New(memory), httpwire.NewStreams(streams)
	agents := New(w.fakeService, w.opts)
	server := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		in, r := httpwire.Receive(to, r)
		defer in.Done()
		in.Count(gate, "token")
		agents.ServeHTTP(to, r.WithContext(httpwire.WithStreams(r.Context(), bound, "token")))
	}))
	w.t.Cleanup(server.Close)
	w.url = server.URL
	w.opts.Authorize = func(ctx context.Context, _ Caller) (context.Context, error) {
		return bytegate.Counting(httpwire.WithStreams(ctx, bound, "token"), gate, "token"), nil
	}
	return gate
}

// bindings list tasks with their artifacts: the number of each page's, and the next page's token.
func (w *harness) bindings(conn *grpc.ClientConn) map[string]func(token string) (ids []string, next string) {
	listed := func(page map[string]any) (ids []string, next string) {
		tasks, _ := page["tasks"].([]any)
		for _, task := range tasks {
			ids = append(ids, at(task, "id").(string))
		}
		next, _ = page["nextPageToken"].(string)
		return ids, next
	}
	return map[string]func(string) ([]string, string){
		"JSON-RPC": func(token string) ([]string, string) {
			return listed(w.rpc("echo", "ListTasks", `{"includeArtifacts":true,"pageSize":100,"pageToken":"`+token+`"}`))
		},
		"HTTP+JSON": func(token string) ([]string, string) {
			return listed(decode(w.t, w.do("GET", "/a2a/echo/tasks?includeArtifacts=true&pageSize=100&pageToken="+token, "").body))
		},
		"gRPC": func(token string) (ids []string, next string) {
			page, err := pbv1.NewA2AServiceClient(conn).ListTasks(trusted.Context(w.t), &pbv1.ListTasksRequest{Tenant: "echo", IncludeArtifacts: new(true), PageSize: new(int32(100)), PageToken: token}, grpc.MaxCallRecvMsgSize(64<<20))
			if err != nil {
				w.t.Fatal(err)
			}
			for _, task := range page.GetTasks() {
				ids = append(ids, task.GetId())
			}
			return ids, page.GetNextPageToken()
		},
	}
}

func TestAListOfTasksWithTheirArtifactsEndsByItsBytes(t *testing.T) {
	t.Parallel()
	w := newHarness(t, nil)
	var made []string
	for _, artifacts := range []int{3, 3, 3, 1, 9, 1} {
		made = append(made, w.makes(artifacts))
	}
	slices.Reverse(made) // the last one is the first
	gate := w.counted(0, 1)
	for name, list := range w.bindings(dial(t, w, nil)) {
		var sizes []int
		var seen []string
		for token := ""; ; {
			ids, next := list(token)
			sizes, seen = append(sizes, len(ids)), append(seen, ids...)
			if token = next; token == "" {
				break
			}
		}
		if fmt.Sprint(sizes) != "[2 4]" || !slices.Equal(seen, made) {
			t.Errorf("%s: pages of %v tasks, %d in all", name, sizes, len(seen))
		}
	}
	testkit.Eventually(t, "all is given back", func() bool { return gate.Held() == 0 })
}

func TestATaskThatIsShownCountsInMemory(t *testing.T) {
	t.Parallel()
	w := newHarness(t, nil)
	large, small := w.makes(5), w.makes(1)
	gate := w.counted(8<<20, 10) // one holder may have half of it
	conn := dial(t, w, nil)
	get := func(id string) error {
		_, err := pbv1.NewA2AServiceClient(conn).GetTask(trusted.Context(t), &pbv1.GetTaskRequest{Tenant: "echo", Id: id})
		return err
	}
	free := func() { testkit.Eventually(t, "all is given back", func() bool { return gate.Held() == 0 }) }
	for range 3 {
		refused := w.do("GET", "/a2a/echo/tasks/"+large, "")
		if refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") == "" {
			t.Errorf("the large one: %d %.200s", refused.StatusCode, refused.body)
		}
		if err := get(large); status.Code(err) != codes.Unavailable {
			t.Errorf("the large one by gRPC: %v", err)
		}
		free() // what a client was told is given back when it has it
		w.rpc("echo", "GetTask", `{"id":"`+small+`"}`)
		free()
		if err := get(small); err != nil {
			t.Error(err)
		}
		free()
	}
}

// TestSubscribersHoldNothingOfWhatTheyWereTold isn't parallel: it measures the heap.
func TestSubscribersHoldNothingOfWhatTheyWereTold(t *testing.T) {
	const subscribers, artifacts, most = 10, 4, 12 << 20
	w := newHarness(t, nil)
	id := w.makes(artifacts)
	gate := w.counted(0, subscribers)
	heap := heapBytes()
	for range subscribers {
		stream := w.begin("POST", "/a2a/echo/tasks/"+id+":subscribe", "")
		t.Cleanup(func() { _ = stream.Body.Close() })
		lines := bufio.NewReader(stream.Body)
		for size := 0; size < artifacts<<20; {
			line, err := lines.ReadSlice('\n')
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				t.Fatal(err)
			}
			size += len(line)
		}
	}
	testkit.Eventually(t, "the tasks that were sent are given back", func() bool { return gate.Held() <= subscribers<<16 })
	if more := heapBytes() - heap; more > most {
		t.Errorf("%d subscribers of a task of %d MiB hold %d KiB", subscribers, artifacts, more>>10)
	}
	if answer := w.do("POST", "/a2a/echo/tasks/"+id+":subscribe", ""); answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
		t.Errorf("one stream too many: %d %.200s", answer.StatusCode, answer.body)
	}
	rpc := w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"`+id+`"}}`)
	if code := at(decode(t, rpc.body), "error", "code"); code != float64(busy.code) {
		t.Errorf("one stream too many by JSON-RPC: %v", code)
	}
	tasks := len(w.runs)
	w.do("POST", "/a2a/echo/message:stream", `{"message":`+message("late", "x", "")+`}`)
	if len(w.runs) != tasks {
		t.Error("a message whose stream is refused makes a task")
	}
	stream, err := pbv1.NewA2AServiceClient(dial(t, w, nil)).SubscribeToTask(trusted.Context(t), &pbv1.SubscribeToTaskRequest{Tenant: "echo", Id: id})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one stream too many by gRPC: %v", err)
	}
	w.last(func(r *fakeRun) { w.succeed(r, "done") })
	testkit.Eventually(t, "all is given back", func() bool { return gate.Held() == 0 })
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // what pools keep goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
