package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// answer is what an agent says to a request, which it has read.
type answer func(w http.ResponseWriter, r *http.Request, asked agenthttp.Request)

// agent is an agent elsewhere.
type agent struct {
	*httptest.Server
	opened, closed atomic.Int32 // connections

	mu      sync.Mutex
	says    answer
	asked   []agenthttp.Request
	headers []http.Header
}

func newAgent(t *testing.T, says answer, start func(*httptest.Server)) *agent {
	t.Helper()
	a := &agent{says: says}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(a.serve))
	a.Config.ErrorLog = nil
	a.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			a.opened.Add(1)
		case http.StateClosed, http.StateHijacked:
			a.closed.Add(1)
		}
	}
	start(a.Server)
	t.Cleanup(a.Close)
	t.Cleanup(a.CloseClientConnections)
	return a
}

func (a *agent) serve(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	asked, _ := agenthttp.ParseRequest(raw)
	a.mu.Lock()
	a.asked, a.headers = append(a.asked, asked), append(a.headers, r.Header.Clone())
	says := a.says
	a.mu.Unlock()
	says(w, r, asked)
}

// answers changes what the agent says from now on.
func (a *agent) answers(with answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.says = with
}

func (a *agent) requests() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

func (a *agent) last() (agenthttp.Request, http.Header) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[len(a.asked)-1], a.headers[len(a.headers)-1]
}

// says answers with a text, in which $ID is the request's.
func says(status int, text string) answer {
	return func(w http.ResponseWriter, _ *http.Request, asked agenthttp.Request) {
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "$ID", asked.RequestID))
	}
}

// with sets a header before an answer.
func with(name, value string, then answer) answer {
	return func(w http.ResponseWriter, r *http.Request, asked agenthttp.Request) {
		w.Header().Set(name, value)
		then(w, r, asked)
	}
}

// cutOff says something and breaks the connection.
func cutOff(text string) answer {
	return func(w http.ResponseWriter, r *http.Request, asked agenthttp.Request) {
		says(http.StatusOK, text)(w, r, asked)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// hangs says something, calls a function, and says nothing more until its client has gone.
func hangs(text string, then func()) answer {
	return func(w http.ResponseWriter, r *http.Request, asked agenthttp.Request) {
		if text != "" {
			says(http.StatusOK, text)(w, r, asked)
			_ = http.NewResponseController(w).Flush()
		}
		then()
		<-r.Context().Done()
	}
}

const (
	good   = `{"request_id":"$ID","task_type":"WORDS","status":"ok","outputs":{"words":3}}`
	schema = `{"input": {"type": "object"}, "output": {"type": "object", "properties": {"words": {"type": "int"}}, "required": ["words"]}}`
)

// harness carries out runs of a unit whose agent is elsewhere, without a loop around them.
type harness struct {
	t       *testing.T
	kind    *Agents
	unit    *unit.Unit
	host    run.Host
	secrets string // their directory
	events  []run.Event
	file    map[string]string // other files of the unit
}

// newBench has the unit "words", with further lines of its agent.yaml, those of remote first.
func newBench(t *testing.T, url, more string) *harness {
	t.Helper()
	b := &harness{t: t, host: alone{}, secrets: t.TempDir(), file: map[string]string{}}
	b.kind = New(Options{Secrets: secrets.Files{Dir: b.secrets}})
	t.Cleanup(func() { _ = b.kind.Close() }) // it returns nil
	b.load(url, more)
	return b
}

func (b *harness) load(url, more string) {
	b.t.Helper()
	dir := b.t.TempDir()
	write(b.t, filepath.Join(dir, "agent.yaml"), "name: words\nkind: remote\nremote:\n  url: "+url+"\n"+more)
	write(b.t, filepath.Join(dir, "schema.json"), schema)
	for name, content := range b.file {
		write(b.t, filepath.Join(dir, name), content)
	}
	c, err := capsule.Load(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	b.unit = unit.Of(c)
}

// execution makes the attempts of a new run.
func (b *harness) execution() *execution {
	b.t.Helper()
	input, err := contract.Decode([]byte(`{"text":"a b c"}`), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	r := run.New("0199aaaa-0000-7000-8000-000000000001", run.Request{Unit: b.unit, Input: input}, run.Input{Payload: input}, runtime.DefaultLimits())
	r.Attempt = 1
	r.LedBy(b.host, func(e run.Event) { b.events = append(b.events, e) })
	return b.kind.Execution(r).(*execution)
}

// ends makes one attempt of a new run. It can't have an error.
func (b *harness) ends() (run.Result, *execution) {
	b.t.Helper()
	x := b.execution()
	got, err := x.Attempt(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return got, x
}

// alone is the host of a run without a loop.
type alone struct {
	run.Host
	cancelled error // that an earlier process stored
	at        api.State
	do        func() error
}

func (a alone) Save(transition api.Transition) error {
	if a.do != nil && transition.State == a.at {
		return a.do()
	}
	return nil
}
func (alone) Note(run.Event)         {}
func (a alone) CancelRequest() error { return a.cancelled }

// wants compares an end with what was expected of it.
func wants(t *testing.T, got run.Result, outcome api.Outcome, category api.Category, kind, says string) {
	t.Helper()
	if got.Outcome != outcome || got.ExitCode != nil || (got.Output != nil) != (outcome == api.Success) {
		t.Errorf("it ended as %+v, want %s: %+v", got, outcome, got.Failure)
		return
	}
	f := got.Failure
	if outcome == api.Success {
		if f != nil {
			t.Errorf("a success has the failure %+v", f)
		}
		return
	}
	if f == nil || f.Category != category || f.Kind != kind || !strings.Contains(f.Message, says) {
		t.Errorf("failure %+v, want %s %s that says %q", f, category, kind, says)
	}
}

// told is everything that a user is told of an end.
func told(r run.Result, x *execution) string {
	text := fmt.Sprintf("%s %q", r.Reason(), x.Record.Warnings)
	if f := r.Failure; f != nil {
		text += fmt.Sprintf("%+v", *f)
		for _, finding := range f.Findings {
			text += finding.String() + finding.Hint
		}
	}
	return text
}

var errBecause = errors.New("because")
