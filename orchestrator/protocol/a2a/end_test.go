package a2a

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

func TestHowTasksEnd(t *testing.T) {
	for name, c := range map[string]struct {
		state   api.State
		outcome api.Outcome
		err     *api.RunError
		want    string
	}{
		"success":   {api.Completed, api.Success, nil, "completed"},
		"an error":  {api.Failed, api.CapsuleError, &api.RunError{Kind: "capsule_error", Message: "it broke"}, "failed"},
		"no time":   {api.Timeout, api.TimedOut, &api.RunError{Kind: "timeout", Message: "it took longer than 1s"}, "failed"},
		"cancelled": {api.Cancelled, api.WasCancelled, &api.RunError{Kind: "cancelled", Message: "cancelled"}, "canceled"},
		"refused":   {api.Failed, api.InvalidInput, &api.RunError{Kind: "invalid_input", Message: "no such field"}, "rejected"},
		"rejected":  {api.Failed, api.CapsuleError, &api.RunError{Kind: "capsule_error", Type: "Rejected", Message: "I won't"}, "rejected"},
		"no reason": {api.Failed, api.SystemError, nil, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, nil)
			w.hold = true
			w.rpc("echo", "SendMessage", `{"message":`+message("m", "x", "")+`,"configuration":{"returnImmediately":true}}`)
			w.last(func(r *fakeRun) { r.record.Error = c.err; w.end(r, c.state, c.outcome) })
			task := w.rpc("echo", "GetTask", `{"id":"`+runID(1)+`"}`)
			if got := plainState(task); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			text, _ := at(task, "status", "message", "parts", 0, "text").(string)
			if c.err != nil && (text != c.err.Message || at(task, "status", "message", "metadata", "kind") != c.err.Kind) {
				t.Errorf("%v", task["status"])
			}
			list := w.rpc("echo", "ListTasks", `{"status":"TASK_STATE_`+strings.ToUpper(c.want)+`"}`)
			if tasks, _ := list["tasks"].([]any); len(tasks) != 1 {
				t.Errorf("listed: %v", list)
			}
		})
	}
}

// The run goes on in the next process, so what it is now isn't an answer to who waits for its end.
func TestWhoWaitsIsToldThatTheServerEnds(t *testing.T) {
	w := newHarness(t, nil)
	w.hold, w.leaves = true, true
	got := w.do("POST", "/a2a/echo/message:send", `{"message":`+message("m", "x", "")+`}`)
	if got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v: %s", got.StatusCode, got.Header, got.body)
	}
}

// A run that asks something is begun again by a server that goes on with it.
func TestAQuestionIsOpenOverTheDeathOfItsServer(t *testing.T) {
	w := newHarness(t, nil)
	w.hold = true
	w.rpc("echo", "SendMessage", `{"message":`+message("m", "x", "")+`,"configuration":{"returnImmediately":true}}`)
	w.last(func(r *fakeRun) {
		w.ask(r, api.Question{ID: "q", Text: "?", Answers: []string{"approve"}, AskedAt: born})
		w.enter(r, api.Starting)
		w.enter(r, api.Running)
	})
	task := w.rpc("echo", "GetTask", `{"id":"`+runID(1)+`"}`)
	if got := plainState(task); got != "input_required" || at(task, "status", "message", "messageId") != "q" {
		t.Errorf("%v", task["status"])
	}
	sent := w.rpc("echo", "SendMessage", `{"message":`+message("n", "approve", `,"taskId":"`+runID(1)+`"`)+`}`)
	if got := plainState(sent["task"]); got != "completed" {
		t.Errorf("%v", sent)
	}
}

// A task's time is that of its end, also when its run is cleaned up behind it.
func TestATaskEndsOnce(t *testing.T) {
	w := newHarness(t, nil)
	w.rpc("echo", "SendMessage", `{"message":`+message("m", "x", "")+`}`)
	want := at(w.rpc("echo", "GetTask", `{"id":"`+runID(1)+`"}`), "status", "timestamp")
	w.last(func(r *fakeRun) {
		ended, rest := *r.record.ChangedAt, r.record.ChangedAt.Add(time.Minute)
		r.record.Transitions = []api.Transition{{State: api.Idle, At: born}, {State: api.Completed, At: ended}, {State: api.Cleanup, At: rest}, {State: api.Idle, At: rest}}
		r.record.ChangedAt = &rest
	})
	if got := at(w.rpc("echo", "GetTask", `{"id":"`+runID(1)+`"}`), "status", "timestamp"); got != want {
		t.Errorf("it ended at %v, and later at %v", want, got)
	}
	if got := at(w.rpc("echo", "ListTasks", `{}`), "tasks", 0, "status", "timestamp"); got != want {
		t.Errorf("it ended at %v, and in a list at %v", want, got)
	}
}

func TestWhatATaskGives(t *testing.T) {
	w := newHarness(t, func(o *Options) { o.PublicURL = "https://aod.example" })
	w.hold = true
	w.rpc("echo", "SendMessage", `{"message":`+message("m", "x", "")+`,"configuration":{"returnImmediately":true}}`)
	w.patch = "--- a\n+++ b\n"
	w.last(func(r *fakeRun) {
		w.files[r.record.ID+"/a b/small.txt"] = "small"
		w.files[r.record.ID+"/large.bin"] = strings.Repeat("x", 5<<20)
		r.record.Files = []api.File{{Name: "a b/small.txt", SizeBytes: 5}, {Name: "large.bin", SizeBytes: 5 << 20}}
		r.record.Changes = &api.ChangeCounts{}
		w.tell(r, api.ArtifactEvent{ID: "chunks", Name: "parts", Parts: []api.Part{{Text: "one"}}})
		w.tell(r, api.ArtifactEvent{ID: "chunks", Parts: []api.Part{{Data: []byte(`{"n":2}`)}}, Append: true, Last: true})
		w.succeed(r, "done")
	})
	var got []string
	artifacts, _ := w.rpc("echo", "GetTask", `{"id":"`+runID(1)+`"}`)["artifacts"].([]any)
	for _, a := range artifacts {
		line := fmt.Sprint(at(a, "artifactId"))
		parts, _ := at(a, "parts").([]any)
		for _, p := range parts {
			line += fmt.Sprintf(" %v/%v/%v/%v", at(p, "text"), at(p, "data"), at(p, "raw"), at(p, "url"))
		}
		got = append(got, line)
	}
	base := "https://aod.example/v1/runs/" + runID(1)
	want := []string{
		"chunks one/<nil>/<nil>/<nil> <nil>/map[n:2]/<nil>/<nil>",
		"output done/<nil>/<nil>/<nil> <nil>/map[text:done]/<nil>/<nil>",
		"file:a b/small.txt <nil>/<nil>/" + base64.StdEncoding.EncodeToString([]byte("small")) + "/<nil>",
		"file:large.bin <nil>/<nil>/<nil>/" + base + "/files/large.bin",
		"patch <nil>/<nil>/" + base64.StdEncoding.EncodeToString([]byte(w.patch)) + "/<nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestManyFilesAreNotAllInline(t *testing.T) {
	w := newHarness(t, nil)
	w.hold = true
	w.rpc("echo", "SendMessage", `{"message":`+message("m", "x", "")+`,"configuration":{"returnImmediately":true}}`)
	w.last(func(r *fakeRun) {
		for i := range 12 {
			name := fmt.Sprintf("f%02d", i)
			w.files[r.record.ID+"/"+name] = strings.Repeat("x", 1<<20)
			r.record.Files = append(r.record.Files, api.File{Name: name, SizeBytes: 1 << 20})
		}
		w.succeed(r, "done")
	})
	said := w.do("GET", "/a2a/echo/tasks/"+runID(1), "")
	if raw, links := strings.Count(said.body, `"raw"`), strings.Count(said.body, `"url"`); raw != 8 || links != 4 {
		t.Errorf("%d raw, %d links", raw, links)
	}
}

func TestEverySubscriberIsToldTheSame(t *testing.T) {
	w := newHarness(t, nil)
	w.hold = true
	w.rpc("echo", "SendMessage", `{"message":`+message("m", "x", "")+`,"configuration":{"returnImmediately":true}}`)
	w.last(func(r *fakeRun) {
		w.tell(r, api.ArtifactEvent{ID: "early", Parts: []api.Part{{Text: "before"}}})
		w.enter(r, api.Idle) // another attempt is waited for
	})
	const subscribers = 3
	told := make(chan []string, subscribers)
	begun := make(chan bool, subscribers)
	for range subscribers {
		go func() {
			resp, err := w.open("/a2a/echo/tasks/" + runID(1) + ":subscribe")
			begun <- true
			if err != nil {
				told <- []string{err.Error()}
				return
			}
			defer resp.Body.Close()
			told <- events(t, resp.Body)
		}()
	}
	for range subscribers {
		<-begun
	}
	half := 1.5
	w.last(func(r *fakeRun) {
		w.tell(r, api.ProgressEvent{Message: "half", Percent: &half})
		w.tell(r, api.MessageEvent{ID: "says", Role: api.RoleAgent, Parts: []api.Part{{Text: "well"}}, At: born})
		w.tell(r, api.ArtifactEvent{ID: "a", Parts: []api.Part{{Text: "one"}}})
		w.ask(r, api.Question{ID: "q", Text: "?", Kind: api.QuestionAuth, Answers: []string{"approve"}, AskedAt: born})
	})
	w.rpc("echo", "SendMessage", `{"message":`+message("n", "approve", `,"taskId":"`+runID(1)+`"`)+`}`)
	var first []string
	for i := range subscribers {
		got := <-told
		if len(got) < 2 || at(decode(t, got[0]), "task", "artifacts", 0, "artifactId") != "early" {
			t.Fatalf("%v", got)
		}
		var kinds []string
		for _, e := range got[1:] {
			kinds = append(kinds, plainKind(decode(t, e)))
		}
		want := []string{
			"statusUpdate working", "statusUpdate working", "artifactUpdate ", "statusUpdate auth_required", "statusUpdate working",
			"artifactUpdate ", "statusUpdate completed",
		}
		if diff := cmp.Diff(want, kinds); diff != "" {
			t.Error(diff)
		}
		if i == 0 {
			first = got
		} else if diff := cmp.Diff(first[1:], got[1:]); diff != "" {
			t.Error(diff)
		}
	}
}

func TestListsAreInPages(t *testing.T) {
	w := newHarness(t, nil)
	for i := range 7 {
		w.rpc("echo", "SendMessage", `{"message":`+message(fmt.Sprint("m", i), "x", `,"contextId":"group"`)+`}`)
	}
	w.rpc("other", "SendMessage", parts10(`{"data":{"n":1}}`))
	var ids []string
	token := ""
	for pages := 0; pages < 3; pages++ {
		page := decode(t, w.do("GET", "/a2a/echo/tasks?pageSize=3&contextId=group&pageToken="+token, "").body)
		tasks, _ := page["tasks"].([]any)
		for _, task := range tasks {
			ids = append(ids, at(task, "id").(string))
			if at(task, "artifacts") != nil || at(task, "history") != nil {
				t.Errorf("%v", task)
			}
		}
		if page["totalSize"] != 7.0 || page["pageSize"] != 3.0 {
			t.Errorf("%v", page)
		}
		token, _ = page["nextPageToken"].(string)
	}
	if len(ids) != 7 || token != "" || ids[0] != runID(7) {
		t.Errorf("%v %q", ids, token)
	}
	full := decode(t, w.do("GET", "/a2a/echo/tasks?pageSize=1&includeArtifacts=true&historyLength=5", "").body)
	if at(full, "tasks", 0, "artifacts", 0, "artifactId") != "output" || at(full, "tasks", 0, "history", 0, "messageId") != "m6" {
		t.Errorf("%v", full)
	}
	late := decode(t, w.do("GET", "/a2a/_/tasks?statusTimestampAfter=2036-01-01T00:00:00Z", "").body)
	if tasks, ok := late["tasks"].([]any); !ok || len(tasks) != 0 {
		t.Errorf("%v", late)
	}
}

// A page by a state has as many tasks as were asked for, whatever else is in the state of their runs.
func TestAPageOfAStateIsFull(t *testing.T) {
	w := newHarness(t, nil)
	w.hold = true
	const runs = 30
	for i := range runs {
		w.rpc("echo", "SendMessage", `{"message":`+message(fmt.Sprint("m", i), "x", "")+`,"configuration":{"returnImmediately":true}}`)
		if i%3 == 0 {
			id := fmt.Sprint("q", i)
			w.last(func(r *fakeRun) { w.ask(r, api.Question{ID: id, Text: "?", Kind: api.QuestionInput}) })
		}
	}
	var sizes []int
	seen := map[any]bool{}
	for token := ""; ; {
		page := w.rpc("echo", "ListTasks", `{"status":"TASK_STATE_INPUT_REQUIRED","pageSize":4,"pageToken":"`+token+`"}`)
		tasks, _ := page["tasks"].([]any)
		for _, task := range tasks {
			if seen[at(task, "id")] || plainState(task) != "input_required" {
				t.Errorf("%v", task)
			}
			seen[at(task, "id")] = true
		}
		sizes = append(sizes, len(tasks))
		if token, _ = page["nextPageToken"].(string); token == "" {
			break
		}
	}
	if !slices.Equal(sizes, []int{4, 4, 2}) {
		t.Errorf("the pages have %v tasks", sizes)
	}
}

// One page reads no more than some hundreds of runs.
func TestAPageOfARareStateIsShort(t *testing.T) {
	w := newHarness(t, nil)
	w.hold = true
	for i := range maxLooks + 1 {
		w.rpc("echo", "SendMessage", `{"message":`+message(fmt.Sprint("m", i), "x", "")+`,"configuration":{"returnImmediately":true}}`)
		if i == 0 {
			w.last(func(r *fakeRun) { w.ask(r, api.Question{ID: "q", Text: "?", Kind: api.QuestionAuth}) })
		}
	}
	first := w.rpc("echo", "ListTasks", `{"status":"TASK_STATE_AUTH_REQUIRED","pageSize":1}`)
	token, _ := first["nextPageToken"].(string)
	if tasks, _ := first["tasks"].([]any); len(tasks) != 0 || token == "" {
		t.Fatalf("%v", first)
	}
	second := w.rpc("echo", "ListTasks", `{"status":"TASK_STATE_AUTH_REQUIRED","pageSize":1,"pageToken":"`+token+`"}`)
	if tasks, _ := second["tasks"].([]any); len(tasks) != 1 || at(tasks, 0, "id") != runID(1) {
		t.Errorf("%v", second)
	}
}

func TestNothingOfAMessageIsLogged(t *testing.T) {
	w := newHarness(t, nil)
	w.do("POST", "/a2a/echo/message:send", parts10(`{"text":"canary-text"},{"data":{"count":1,"x":"canary-data"}},{"raw":"Y2FuYXJ5","filename":"canary-file"}`), "Authorization: Bearer canary-token")
	w.do("POST", "/a2a/echo/message:stream", parts10(`{"text":"panic canary"}`))
	w.do("POST", "/a2a/canary", `{"jsonrpc":"2.0","id":"canary","method":"canary","params":{"canary":1}}`)
	w.do("GET", "/a2a/echo/tasks/canary", "")
	if log := w.log.String(); bytes.Contains(w.log.Bytes(), []byte("canary")) && !strings.Contains(log, "panic: canary") {
		t.Error(log)
	}
}
