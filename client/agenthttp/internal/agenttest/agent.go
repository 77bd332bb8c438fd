// Package agenttest has agents of the agent HTTP contract for tests: a good one, each part
// of which can be broken, and some that put a canary everywhere. The specification alone says
// what is good here: it uses nothing of the packages that it tests, but their reader of JSON.
package agenttest

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
)

const (
	syncPath   = "/agents/run/sync"
	streamPath = "/agents/run/stream"
)

// Task is the task that the agents know.
const Task = "WORD_STATS"

// Asked is a request as an agent here reads it.
type Asked struct {
	RequestID, TaskType string
	Inputs              json.RawMessage
}

// Agent is an agent that keeps the contract, each part of which a test can break.
type Agent struct {
	Health      func(w http.ResponseWriter)
	Answer      func(asked Asked) map[string]any
	Media       string
	Body        func(raw []byte) []byte // the last change of a sync answer
	Frames      func(asked Asked) []string
	StreamMedia string
	Refuse      func(w http.ResponseWriter, asked Asked)
	Accepts     func(path string, f document.Fields) bool // whether a request is complete
	Knows       func(path, task string) bool

	Clock *Clock // of the agent and of who checks it; nil is no work to do
	Kept  bool   // events are kept back until the end
}

// Good returns an agent that keeps every rule.
func Good() *Agent {
	return &Agent{
		Health:      func(w http.ResponseWriter) { Reply(w, 200, map[string]any{"status": "ok", "service": "words"}) },
		Answer:      Success,
		Media:       "application/json",
		Body:        func(raw []byte) []byte { return raw },
		Frames:      func(asked Asked) []string { return Frames(asked.RequestID, asked.TaskType) },
		StreamMedia: "text/event-stream",
		Refuse: func(w http.ResponseWriter, asked Asked) {
			Reply(w, 422, map[string]any{"request_id": asked.RequestID, "ok": false, "outputs": map[string]any{}, "warnings": []string{"task_type"}})
		},
		Accepts: func(_ string, f document.Fields) bool { return f.Text("request_id") != "" && f.Text("task_type") != "" },
		Knows:   func(_, task string) bool { return task == Task },
	}
}

// Success is a good sync answer.
func Success(asked Asked) map[string]any {
	return map[string]any{"request_id": asked.RequestID, "status": "ok", "outputs": map[string]any{"words": 3}, "artifacts": []string{"https://agent.example.com/1"}, "warnings": []string{}}
}

// Refusal is a refusal in the contract's shape.
func Refusal(id string) map[string]any {
	return map[string]any{"request_id": id, "ok": false, "outputs": map[string]any{}, "warnings": []string{}}
}

// Frames are the events of a good stream.
func Frames(id, task string) []string {
	return []string{
		Frame("started", map[string]any{"type": "started", "request_id": id, "task_type": task}),
		": a heartbeat\n\n",
		Frame("progress", map[string]any{"type": "progress", "percent": 50, "step": "complete"}),
		Frame("final", Terminal(id, task, nil)),
	}
}

// Terminal is the data of a good terminal event with some members changed; nil removes.
func Terminal(id, task string, changes map[string]any) map[string]any {
	data := map[string]any{
		"type": "final", "request_id": id, "task_type": task, "status": "ok", "ok": true,
		"outputs": map[string]any{"words": 3}, "warnings": []string{},
	}
	for name, value := range changes {
		if value == nil {
			delete(data, name)
			continue
		}
		data[name] = value
	}
	return data
}

// Frame is one event as it is sent.
func Frame(name string, data any) string {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return "event: " + name + "\ndata: " + string(raw) + "\n\n"
}

// Reply answers with a JSON document.
func Reply(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document)
}

func (a *Agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" {
		a.Health(w)
		return
	}
	raw, _ := io.ReadAll(r.Body)
	f, _ := document.Read(raw)
	asked := Asked{f.Text("request_id"), f.Text("task_type"), f.Object("inputs")}
	switch {
	case r.Method != http.MethodPost || r.URL.Path != syncPath && r.URL.Path != streamPath:
		http.NotFound(w, r)
	case !a.Accepts(r.URL.Path, f):
		Reply(w, 400, map[string]any{"detail": "request_id and task_type are required"})
	case !a.Knows(r.URL.Path, asked.TaskType):
		a.Refuse(w, asked)
	case r.URL.Path == syncPath:
		a.sync(w, asked)
	default:
		a.stream(w, asked)
	}
}

func (a *Agent) sync(w http.ResponseWriter, asked Asked) {
	raw, _ := json.Marshal(a.Answer(asked))
	w.Header().Set("Content-Type", a.Media)
	_, _ = w.Write(a.Body(raw))
}

func (a *Agent) stream(w http.ResponseWriter, asked Asked) {
	w.Header().Set("Content-Type", a.StreamMedia)
	w.WriteHeader(http.StatusOK)
	a.Clock.forget()
	a.work(a.Kept)
	for i, f := range a.Frames(asked) {
		_, _ = io.WriteString(w, f)
		if a.Kept {
			continue
		}
		_ = http.NewResponseController(w).Flush()
		if i == 0 {
			a.work(true)
		}
	}
}

// work takes two seconds of the clock, after the first event was seen where there is one.
func (a *Agent) work(now bool) {
	if a.Clock == nil || !now || a.StreamMedia != "text/event-stream" { // else nobody looks for events
		return
	}
	if !a.Kept {
		<-a.Clock.first
	}
	a.Clock.advance(2 * time.Second)
}

// Serve starts an agent, and returns its address.
func Serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// StartExample starts examples/remote-agent and returns its address. The root is the repository's, from the
// directory of the test.
func StartExample(t *testing.T, root string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	program := filepath.Join(root, "examples/remote-agent/agent.py")
	agent := exec.CommandContext(t.Context(), python, program, "--port", "0")
	agent.Stderr = os.Stderr
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Wait() }) // the end of the test's context kills it
	line, err := bufio.NewReader(out).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !found {
		t.Fatalf("it said %q, %v", line, err)
	}
	return address
}
