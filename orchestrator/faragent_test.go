package orchestrator

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/units"
)

// farAgent is an agent elsewhere. A test decides what it answers.
type farAgent struct {
	*httptest.Server
	connections atomic.Int32 // that were opened
	broken      atomic.Int32 // requests whose client went away

	mu      sync.Mutex
	asked   []agenthttp.Request
	headers []http.Header
	answer  func(w http.ResponseWriter, asked agenthttp.Request)
}

func newFarAgent(t *testing.T, start func(*httptest.Server)) *farAgent {
	t.Helper()
	a := &farAgent{answer: wordStats}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(a.serve))
	a.Config.ErrorLog = nil
	a.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			a.connections.Add(1)
		}
	}
	start(a.Server)
	t.Cleanup(a.CloseClientConnections)
	t.Cleanup(a.Close)
	return a
}

func (a *farAgent) serve(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	asked, err := agenthttp.ParseRequest(raw)
	a.mu.Lock()
	a.asked, a.headers = append(a.asked, asked), append(a.headers, r.Header.Clone())
	answer := a.answer
	a.mu.Unlock()
	if err != nil {
		http.Error(w, "no request of the contract", http.StatusBadRequest)
		return
	}
	defer func() {
		if r.Context().Err() != nil {
			a.broken.Add(1)
		}
	}()
	answer(watched{w, r.Context().Done()}, asked)
}

// watched is an answer whose agent may wait for its client to go away.
type watched struct {
	http.ResponseWriter
	gone <-chan struct{}
}

func (w watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answers changes what the agent says from now on.
func (a *farAgent) answers(with func(http.ResponseWriter, agenthttp.Request)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = with
}

func (a *farAgent) requests() []agenthttp.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

func (a *farAgent) lastHeader() http.Header {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.headers[len(a.headers)-1]
}

// wordStats is a good answer.
func wordStats(w http.ResponseWriter, asked agenthttp.Request) {
	says(http.StatusOK, `{"request_id":"$ID","task_type":"$TASK","status":"ok","outputs":{"words":3}}`)(w, asked)
}

// says answers with a text, in which $ID and $TASK are the request's.
func says(status int, text string) func(http.ResponseWriter, agenthttp.Request) {
	return func(w http.ResponseWriter, asked agenthttp.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = strings.NewReplacer("$ID", asked.RequestID, "$TASK", asked.TaskType).WriteString(w, text)
	}
}

// streams answers with events and then the good answer.
func streams(events ...string) func(http.ResponseWriter, agenthttp.Request) {
	return func(w http.ResponseWriter, asked agenthttp.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, data := range events {
			fmt.Fprintf(w, "event: progress\ndata: %s\n\n", data)
			_ = http.NewResponseController(w).Flush()
		}
		fmt.Fprintf(w, "event: final\ndata: {\"request_id\":%q,\"task_type\":%q,\"status\":\"ok\",\"outputs\":{\"words\":3}}\n\n", asked.RequestID, asked.TaskType)
	}
}

// hangs answers nothing until its client has gone.
func hangs(w http.ResponseWriter, _ agenthttp.Request) { <-w.(watched).gone }

// cutsOff closes the connection in the middle.
func cutsOff(http.ResponseWriter, agenthttp.Request) { panic(http.ErrAbortHandler) }

const wordsSchema = `{
  "input": {"type": "object", "properties": {"text": {"type": "string"}}},
  "output": {"type": "object", "properties": {"words": {"type": "int"}}, "required": ["words"]}
}`

// writeWords writes the unit "words", whose agent is elsewhere. More is further lines of its
// agent.yaml, those of remote first.
func writeWords(t *testing.T, dir, url, more string) {
	t.Helper()
	write(t, filepath.Join(dir, "agent.yaml"), "name: words\nkind: remote\nremote:\n  url: "+url+"\n"+more)
	write(t, filepath.Join(dir, "schema.json"), wordsSchema)
}

// newFarFixture is a fixture with the unit "words", whose agent is elsewhere, and with no engine
// that would answer anything.
func newFarFixture(t *testing.T, more string, change ...func(*settings)) (*fixture, *farAgent) {
	t.Helper()
	agent := newFarAgent(t, (*httptest.Server).Start)
	w := newCallFixture(t, append([]func(*settings){func(o *settings) {
		o.Units = map[string]units.Settings{"caller": {Given: unit.Given{MayCall: []string{"words"}}}}
		writeWords(t, filepath.Join(o.Sources[0], "words"), agent.URL, more)
	}}, change...)...)
	return w, agent
}

// ask has a run of "words" accepted.
func (w *fixture) ask(text string) string {
	w.t.Helper()
	input, _ := json.Marshal(map[string]string{"text": text})
	record, _, err := w.service.Submit(trusted.Context(w.t), spool.Submission{Unit: "words", Input: input})
	if err != nil {
		w.t.Fatal(err)
	}
	return record.ID
}

// noEngine lets no call of the engine pass, until the test is over.
func (w *fixture) noEngine() {
	every := []string{"Probe", "Image", "Build", "Pull", "Create", "ContainersByLabel"}
	for _, method := range every {
		w.breaks(method, fault.New(fault.Unavailable, "there is no engine"))
	}
	w.t.Cleanup(func() {
		for _, method := range every {
			w.breaks(method, nil)
		}
	})
}
