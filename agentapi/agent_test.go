package agentapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

const knownTask = "WORD_STATS"

// agent is an agent that keeps the contract, each part of which a test can break.
type agent struct {
	health      func(w http.ResponseWriter)
	answer      func(asked Request) map[string]any
	media       string
	body        func(raw []byte) []byte // the last change of a sync answer
	frames      func(asked Request) []string
	streamMedia string
	refuse      func(w http.ResponseWriter, asked Request)
	accepts     func(path string, f fields) bool // whether a request is complete
	knows       func(path, task string) bool

	clock *clock // of the agent and of who checks it; nil is no work to do
	kept  bool   // events are kept back until the end
}

func goodAgent() *agent {
	return &agent{
		health:      func(w http.ResponseWriter) { reply(w, 200, map[string]any{"status": "ok", "service": "words"}) },
		answer:      success200,
		media:       "application/json",
		body:        func(raw []byte) []byte { return raw },
		frames:      func(asked Request) []string { return goodFrames(asked.RequestID, asked.TaskType) },
		streamMedia: "text/event-stream",
		refuse: func(w http.ResponseWriter, asked Request) {
			reply(w, 422, map[string]any{"request_id": asked.RequestID, "ok": false, "outputs": map[string]any{}, "warnings": []string{"task_type"}})
		},
		accepts: func(_ string, f fields) bool { return f.text("request_id") != "" && f.text("task_type") != "" },
		knows:   func(_, task string) bool { return task == knownTask },
	}
}

func success200(asked Request) map[string]any {
	return map[string]any{"request_id": asked.RequestID, "status": "ok", "outputs": map[string]any{"words": 3}, "warnings": nil}
}

func goodFrames(id, task string) []string {
	return []string{
		frame("started", map[string]any{"request_id": id, "task_type": task}),
		": a heartbeat\n\n",
		frame("progress", map[string]any{"percent": 50, "step": "complete"}),
		frame("final", terminal(id, task, nil)),
	}
}

// terminal is the data of a good terminal event with some members changed; nil removes.
func terminal(id, task string, changes map[string]any) map[string]any {
	data := map[string]any{"request_id": id, "task_type": task, "status": "ok", "ok": true, "outputs": map[string]any{"words": 3}}
	for name, value := range changes {
		if value == nil {
			delete(data, name)
			continue
		}
		data[name] = value
	}
	return data
}

func frame(name string, data any) string {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return "event: " + name + "\ndata: " + string(raw) + "\n\n"
}

func reply(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document)
}

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" {
		a.health(w)
		return
	}
	raw, _ := io.ReadAll(r.Body)
	f, _ := readFields(raw)
	asked, _ := ParseRequest(raw)
	switch {
	case r.Method != http.MethodPost || r.URL.Path != SyncPath && r.URL.Path != StreamPath:
		http.NotFound(w, r)
	case !a.accepts(r.URL.Path, f):
		reply(w, 400, map[string]any{"detail": "request_id and task_type are required"})
	case !a.knows(r.URL.Path, asked.TaskType):
		a.refuse(w, asked)
	case r.URL.Path == SyncPath:
		a.sync(w, asked)
	default:
		a.stream(w, asked)
	}
}

func (a *agent) sync(w http.ResponseWriter, asked Request) {
	raw, _ := json.Marshal(a.answer(asked))
	w.Header().Set("Content-Type", a.media)
	_, _ = w.Write(a.body(raw))
}

func (a *agent) stream(w http.ResponseWriter, asked Request) {
	w.Header().Set("Content-Type", a.streamMedia)
	w.WriteHeader(200)
	a.clock.forget()
	a.work(a.kept)
	for i, f := range a.frames(asked) {
		_, _ = io.WriteString(w, f)
		if a.kept {
			continue
		}
		_ = http.NewResponseController(w).Flush()
		if i == 0 {
			a.work(true)
		}
	}
}

// work takes two seconds of the clock, after the first event was seen where there is one.
func (a *agent) work(now bool) {
	if a.clock == nil || !now || a.streamMedia != "text/event-stream" { // else nobody looks for events
		return
	}
	if !a.kept {
		<-a.clock.first
	}
	a.clock.advance(2 * time.Second)
}

// clock stands still but for what is worked.
type clock struct {
	mu    sync.Mutex
	at    time.Time
	first chan struct{} // holds one when an event was seen
}

func newClock() *clock { return &clock{at: time.Unix(1e9, 0), first: make(chan struct{}, 1)} }

// forget forgets the events of the stream before this one.
func (c *clock) forget() {
	if c == nil {
		return
	}
	select {
	case <-c.first:
	default:
	}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (c *clock) seen() {
	select {
	case c.first <- struct{}{}:
	default:
	}
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
