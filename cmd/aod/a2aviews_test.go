package main

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

func (s *server) addSeen(name string) {
	s.t.Helper()
	for path, content := range map[string]string{
		"Dockerfile": "FROM " + dockertest.Image + "\nCMD [\"seen\"]\n",
		"agent.yaml": "name: " + name + "\n", "tools.yaml": "[]\n",
		"schema.json": `{"input": {"type": "object", "properties": {"does": {"type": "string"}}, "required": ["does"]},
 "output": {"type": "object", "properties": {"text": {"type": "string"}, "file": {"type": "string", "format": "file_path"}}}}`,
	} {
		write(s.t, content, s.units, name, filepath.FromSlash(path))
	}
	s.runs(name, seenInside)
}

// watched is a task as five clients have seen it.
type watched struct {
	id       sdk.TaskID
	blocked  *sdk.Task   // the answer to who told it to go on, and waited
	polled   []*sdk.Task // one after the other
	streamed []sdk.Event // to who began it
	late     []sdk.Event // to who came in the middle of it
	pushed   []sdk.Event
}

func TestFiveClientsSeeTheSameTask(t *testing.T) {
	t.Parallel()
	heard, port := newReceiver(t)
	config := filepath.Join(t.TempDir(), "aod.yaml")
	write(t, "a2a: {push_private: [hook.example=127.0.0.1]}\n", config)
	s := newInside(t, "--config", config, "--concurrency", "2")
	s.addSeen("seen")
	s.start()
	rpc, rest, old, oldREST := peertest.Forms[0], peertest.Forms[1], peertest.Forms[2], peertest.Forms[3]
	for _, c := range []struct {
		form peertest.Form
		does string
		end  sdk.TaskState
		want []string // artifacts at the end
	}{
		{rpc, "nothing", sdk.TaskStateCompleted, []string{"first text:begun", "output data:{}"}},
		{rpc, "reject", sdk.TaskStateRejected, []string{"first text:begun"}},
		{rpc, "ask", sdk.TaskStateCompleted, []string{"first text:begun", `output text:I heard blue data:{"text":"I heard blue"}`}},
		{rpc, "stream", sdk.TaskStateCompleted, []string{"first text:begun", "chunks text:one  text:two  text:three", `beside data:{"n":1}`, "output data:{}"}},
		{rpc, "text", sdk.TaskStateCompleted, []string{"first text:begun", `output text:I heard blue data:{"text":"I heard blue"}`}},
		{rpc, "data", sdk.TaskStateCompleted, []string{"first text:begun", `output data:{"list":[1,{"two":null}],"n":3}`}},
		{rpc, "file", sdk.TaskStateCompleted, []string{"first text:begun", `output data:{"file":"dir/small.txt"}`, "file:dir/small.txt raw:dir/small.txt:1000"}},
		{rpc, "large", sdk.TaskStateCompleted, []string{"first text:begun", `output data:{"file":"large.bin"}`, "file:large.bin url:large.bin:" + s.url() + "/v1/runs/TASK/files/large.bin"}},
		{rest, "all", sdk.TaskStateCompleted, allSeen},
		{old, "all", sdk.TaskStateCompleted, allSeen},
		{oldREST, "all", sdk.TaskStateCompleted, allSeen},
		{rest, "ask", sdk.TaskStateCompleted, []string{"first text:begun", `output text:I heard blue data:{"text":"I heard blue"}`}},
		{old, "reject", sdk.TaskStateRejected, []string{"first text:begun"}},
	} {
		t.Run(c.form.Name()+" "+c.does, func(t *testing.T) {
			client := s.taskClient("seen", c.form)
			client.t = t
			w := client.watch(c.does, "http://hook.example:"+port+"/in", heard)
			want := strings.Split(strings.ReplaceAll(strings.Join(c.want, "\n"), "TASK", string(w.id)), "\n")
			if got := givenBy(w.blocked); w.blocked.Status.State != c.end || !slices.Equal(got[1:], want) {
				t.Errorf("it gave %q, want %s and %q", got, c.end, want)
			}
			w.judge(t)
		})
	}
	if _, bad := heard.all(); len(bad) > 0 {
		t.Errorf("pushes: %q", bad)
	}
	s.downloads(t)
}

var allSeen = []string{
	"first text:begun", "chunks text:one  text:two  text:three", `beside data:{"n":1}`,
	`output text:all data:{"file":"small.txt","text":"all"}`, "file:small.txt raw:small.txt:10",
}

// watch has a task come to its end before five clients.
func (c *taskClient) watch(does, hook string, heard *receiver) *watched {
	c.t.Helper()
	w := &watched{}
	ctx, leave := context.WithCancel(c.ctx)
	c = &taskClient{c.Client, c.t, ctx, c.web}
	var clients sync.WaitGroup
	defer clients.Wait()
	defer leave()
	begun, there := make(chan sdk.TaskID, 1), make(chan bool, 1)
	push := &sdk.PushConfig{URL: hook, Token: "canary-token", Auth: &sdk.PushAuthInfo{Scheme: "Bearer", Credentials: "canary-credentials"}}
	clients.Go(func() {
		defer close(begun)
		request := &sdk.SendMessageRequest{Message: messageOf(sdk.NewDataPart(map[string]any{"does": does})), Config: &sdk.SendMessageConfig{PushConfig: push}}
		for event, err := range c.SendStreamingMessage(c.ctx, request) {
			if err != nil {
				c.t.Errorf("who began it: %v", err)
				return
			}
			if task, ok := event.(*sdk.Task); ok && len(w.streamed) == 0 {
				begun <- task.ID
			}
			w.streamed = append(w.streamed, event)
		}
	})
	if w.id = <-begun; w.id == "" {
		c.t.FailNow()
	}
	waits := func(task *sdk.Task) bool {
		return len(task.Artifacts) > 0 && (does != "ask" || task.Status.State == sdk.TaskStateInputRequired)
	}
	c.poll(w, "it waits to be told", waits)
	clients.Go(func() {
		defer close(there)
		for event, err := range c.SubscribeToTask(c.ctx, &sdk.SubscribeToTaskRequest{ID: w.id}) {
			if err != nil {
				c.t.Errorf("who came late: %v", err)
				return
			}
			if len(w.late) == 0 {
				there <- true
			}
			w.late = append(w.late, event)
		}
	})
	<-there
	clients.Go(func() {
		var err error
		if w.blocked, err = c.send(messageTo(w.id, "blue"), false); err != nil {
			c.t.Errorf("who waits: %v", err)
			w.blocked = &sdk.Task{}
		}
	})
	c.poll(w, "it ends", func(task *sdk.Task) bool { return task.Status.State.Terminal() })
	clients.Wait()
	testkit.Eventually(c.t, "the end is pushed", func() bool {
		w.pushed = heard.of(w.id)
		return slices.ContainsFunc(w.pushed, func(event sdk.Event) bool { _, whole := event.(*sdk.Task); return whole })
	})
	return w
}

// poll asks for the task until something is so.
func (c *taskClient) poll(w *watched, what string, is func(*sdk.Task) bool) {
	c.t.Helper()
	testkit.Eventually(c.t, what, func() bool {
		task, err := c.GetTask(c.ctx, &sdk.GetTaskRequest{ID: w.id})
		if err != nil {
			c.t.Fatalf("who asks again and again: %v", err)
		}
		w.polled = append(w.polled, task)
		return is(task)
	})
}

// judge holds that all have seen the same end, the same artifacts and the same order.
func (w *watched) judge(t *testing.T) {
	t.Helper()
	want := givenBy(w.polled[len(w.polled)-1])
	streamed, late, pushed := folded(w.streamed), folded(w.late), folded(w.pushed)
	for who, task := range map[string]*sdk.Task{"waits": w.blocked, "streams": &streamed, "comes late": &late, "is pushed to": &pushed} {
		if diff := cmp.Diff(want, givenBy(task)); diff != "" {
			t.Errorf("who %s sees another task than who asks for it: %s", who, diff)
		}
		if task.ID != w.id || task.ContextID != w.blocked.ContextID || task.ContextID == "" {
			t.Errorf("who %s sees the task %q of %q", who, task.ID, task.ContextID)
		}
	}
	last := len(w.pushed) - 1
	if _, whole := w.pushed[last].(*sdk.Task); !whole {
		t.Errorf("after its end there is pushed %q", tellings(w.pushed))
	}
	pushes := tellings(w.pushed[:last])
	all := tellings(w.streamed[1:])
	if rest := tellings(w.late[1:]); !isEnd(all, rest) || len(rest) == 0 {
		t.Errorf("who came late was told %q, and who was there before %q", rest, all)
	}
	if shared := withoutEnd(w.streamed[1:]); !isEnd(pushes, shared) {
		t.Errorf("a stream tells %q, pushes %q", shared, pushes)
	}
	if !inOrder(statesSeen(w.polled), statesTold(w.pushed)) {
		t.Errorf("who asks again and again sees %q, pushes tell %q", statesSeen(w.polled), statesTold(w.pushed))
	}
}

func tellings(events []sdk.Event) (lines []string) {
	for _, event := range events {
		lines = append(lines, tellingOf(event))
	}
	return lines
}

// withoutEnd is what a stream tells and pushes as well: neither how far it is, nor, one by one, what
// there is at the end.
func withoutEnd(events []sdk.Event) (lines []string) {
	for _, event := range events {
		if e, ok := event.(*sdk.TaskStatusUpdateEvent); ok && (e.Status.State.Terminal() || e.Status.Message != nil && e.Status.Message.Metadata["percent"] != nil) {
			continue
		}
		if e, ok := event.(*sdk.TaskArtifactUpdateEvent); ok && (e.Artifact.ID == "output" || strings.HasPrefix(string(e.Artifact.ID), "file:")) {
			continue
		}
		lines = append(lines, tellingOf(event))
	}
	return lines
}

// isEnd reports whether a list ends with another one.
func isEnd(all, end []string) bool {
	return len(end) <= len(all) && slices.Equal(all[len(all)-len(end):], end)
}

func statesSeen(tasks []*sdk.Task) (states []sdk.TaskState) {
	for _, task := range tasks {
		states = append(states, task.Status.State)
	}
	return slices.Compact(states)
}

func statesTold(events []sdk.Event) []sdk.TaskState {
	states := []sdk.TaskState{sdk.TaskStateSubmitted}
	for _, event := range events {
		task := folded([]sdk.Event{event})
		if task.Status.State != "" {
			states = append(states, task.Status.State)
		}
	}
	return states
}

// inOrder reports whether all of some states are among others, in their order.
func inOrder(some, others []sdk.TaskState) bool {
	for _, state := range others {
		if len(some) > 0 && some[0] == state {
			some = some[1:]
		}
	}
	return len(some) == 0
}

// of is what was pushed of a task, each delivery once.
func (r *receiver) of(id sdk.TaskID) (events []sdk.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, event := range r.events {
		if about, ok := event.(sdk.TaskInfoProvider); ok && about.TaskInfo().TaskID == id {
			events = append(events, event)
		}
	}
	return events
}

// downloads fetches the large file of the task that gave one.
func (s *server) downloads(t *testing.T) {
	t.Helper()
	client := s.taskClient("seen", peertest.Forms[0])
	list, err := client.ListTasks(client.ctx, &sdk.ListTasksRequest{IncludeArtifacts: true, PageSize: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range list.Tasks {
		for _, a := range task.Artifacts {
			if a.ID != "file:large.bin" {
				continue
			}
			response, err := s.get(t.Context(), strings.TrimPrefix(string(a.Parts[0].URL()), s.url()), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if n, err := io.Copy(io.Discard, response.Body); n != 5<<20 || err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("the large file has %d bytes, status %d, %v", n, response.StatusCode, err)
			}
			return
		}
	}
	t.Error("no task gave a large file")
}
