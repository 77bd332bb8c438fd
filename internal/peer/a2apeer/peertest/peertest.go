// Package peertest has agents of the A2A protocol for tests: the handlers of the protocol's own SDK over an executor that
// does what its message says.
package peertest

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// Form is how an agent is asked.
type Form struct {
	Binding a2a.TransportProtocol
	Version a2a.ProtocolVersion
}

// Forms are all forms.
var Forms = []Form{
	{a2a.TransportProtocolJSONRPC, "1.0"},
	{a2a.TransportProtocolHTTPJSON, "1.0"},
	{a2a.TransportProtocolJSONRPC, "0.3"},
	{a2a.TransportProtocolHTTPJSON, "0.3"},
}

// Name is the name of a subtest.
func (f Form) Name() string {
	return strings.ReplaceAll(string(f.Binding), "+", "-") + " " + string(f.Version)
}

// FarFile is what stands in each file below /files of an agent.
const FarFile = "a far file"

// Agent is an agent elsewhere. What it does is the first word of a message's text: see execute.
type Agent struct {
	*httptest.Server
	Card    *a2a.AgentCard
	Release chan struct{} // closed by who lets tasks that wait come to an end

	mu       sync.Mutex
	messages []*a2a.Message
	cancels  int
	headers  []http.Header
	paths    []string
	inner    http.Handler
	gate     func(w http.ResponseWriter, r *http.Request) bool
}

// New starts an agent of a form, whose card has streaming if streams.
func New(t testing.TB, form Form, streams bool) *Agent { return At(t, form, streams, "127.0.0.1:0") }

// At is New at an address.
func At(t testing.TB, form Form, streams bool, address string) *Agent {
	t.Helper()
	a := &Agent{Release: make(chan struct{})}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	a.Server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: a, ReadHeaderTimeout: time.Minute}}
	a.Start()
	t.Cleanup(a.Close)
	t.Cleanup(a.CloseClientConnections)
	t.Cleanup(func() { // what waits lets go of its requests
		select {
		case <-a.Release:
		default:
			close(a.Release)
		}
	})
	a.Card = &a2a.AgentCard{
		Name: "Tester", Description: "Does what it is told.", Version: "1", Capabilities: a2a.AgentCapabilities{Streaming: streams},
		DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Skills:              []a2a.AgentSkill{{ID: "do", Name: "Do", Description: "Does it.", Tags: []string{"test"}}},
		SupportedInterfaces: []*a2a.AgentInterface{{URL: a.URL, ProtocolBinding: form.Binding, ProtocolVersion: form.Version}},
	}
	handler := a2asrv.NewHandler(a, a2asrv.WithLogger(slog.New(slog.DiscardHandler)),
		a2asrv.WithCapabilityChecks(&a.Card.Capabilities), a2asrv.WithEventQueueManager(newQueues()))
	mux := http.NewServeMux()
	mux.Handle("/", handlers[form](handler))
	mux.HandleFunc("/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.Card)
	})
	mux.HandleFunc("/files/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, FarFile) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inner = mux
	return a
}

var handlers = map[Form]func(a2asrv.RequestHandler) http.Handler{
	Forms[0]: func(h a2asrv.RequestHandler) http.Handler { return a2asrv.NewJSONRPCHandler(h) },
	Forms[1]: func(h a2asrv.RequestHandler) http.Handler { return a2asrv.NewRESTHandler(h) },
	Forms[2]: func(h a2asrv.RequestHandler) http.Handler { return a2av0.NewJSONRPCHandler(h) },
	Forms[3]: func(h a2asrv.RequestHandler) http.Handler { return a2av0.NewRESTHandler(h) },
}

// Gate has each request come to a function first, which says whether it goes on.
func (a *Agent) Gate(gate func(w http.ResponseWriter, r *http.Request) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gate = gate
}

// ServeHTTP implements http.Handler.
func (a *Agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.headers, a.paths = append(a.headers, r.Header.Clone()), append(a.paths, r.URL.Path)
	inner, gate := a.inner, a.gate
	a.mu.Unlock()
	if gate == nil || gate(w, r) {
		inner.ServeHTTP(w, r)
	}
}

// Messages returns the messages that were carried out.
func (a *Agent) Messages() []*a2a.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*a2a.Message{}, a.messages...)
}

// Cancels returns how often a task was to be ended.
func (a *Agent) Cancels() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cancels
}

// Headers returns those of all requests, with their paths.
func (a *Agent) Headers() ([]http.Header, []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]http.Header{}, a.headers...), append([]string{}, a.paths...)
}

// Execute implements a2asrv.AgentExecutor.
func (a *Agent) Execute(ctx context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	a.mu.Lock()
	a.messages = append(a.messages, x.Message)
	a.mu.Unlock()
	return func(yield func(a2a.Event, error) bool) {
		told := true
		tell := func(e a2a.Event) { told = told && yield(e, nil) }
		text := textOf(x.Message)
		if x.StoredTask != nil {
			tell(a2a.NewArtifactEvent(x, a2a.NewTextPart("answered "+text)))
			tell(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCompleted, nil))
			return
		}
		if text == "message" {
			tell(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("just a word")))
			return
		}
		tell(a2a.NewSubmittedTask(x, x.Message))
		tell(a2a.NewStatusUpdateEvent(x, a2a.TaskStateWorking, says("at it")))
		a.execute(ctx, x, text, tell)
	}
}

// execute does what the first word of a text says.
func (a *Agent) execute(ctx context.Context, x *a2asrv.ExecutorContext, text string, tell func(a2a.Event)) {
	end := func(state a2a.TaskState, words string) { tell(a2a.NewStatusUpdateEvent(x, state, says(words))) }
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case "ask":
		end(a2a.TaskStateInputRequired, "Which one?")
		return
	case "auth":
		end(a2a.TaskStateAuthRequired, "May I?")
		if !a.released(ctx) {
			return
		}
		tell(a2a.NewArtifactEvent(x, a2a.NewTextPart("granted")))
	case "reject":
		end(a2a.TaskStateRejected, "not mine")
		return
	case "fail":
		end(a2a.TaskStateFailed, "broke down")
		return
	case "wait":
		if !a.released(ctx) {
			return
		}
		tell(a2a.NewArtifactEvent(x, a2a.NewTextPart("waited")))
	case "chunks":
		first := a2a.NewArtifactEvent(x, a2a.NewTextPart("one "))
		tell(first)
		tell(a2a.NewArtifactUpdateEvent(x, first.Artifact.ID, a2a.NewTextPart("two "), a2a.NewTextPart("three")))
	case "data":
		tell(a2a.NewArtifactEvent(x, a2a.NewDataPart(map[string]any{"words": 3, "text": "of the data"}), a2a.NewTextPart("beside")))
	case "files":
		inline := a2a.NewRawPart([]byte("inline"))
		inline.Filename = "../../etc/passwd"
		named := a2a.NewRawPart([]byte("named"))
		named.Filename, named.Metadata = "report.txt", map[string]any{"field": "report"}
		tell(a2a.NewArtifactEvent(x, inline, named, a2a.NewFileURLPart(a2a.URL(a.URL+"/files/far"), "text/plain"),
			a2a.NewFileURLPart("http://127.0.0.1:1/elsewhere", "text/plain")))
	default:
		echo := []*a2a.Part{a2a.NewTextPart(text)}
		for _, p := range x.Message.Parts {
			if p.Text() == "" {
				echo = append(echo, p)
			}
		}
		tell(a2a.NewArtifactEvent(x, echo...))
	}
	end(a2a.TaskStateCompleted, "")
}

// released waits until tasks may come to an end, or returns false if nobody waits for this one.
func (a *Agent) released(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-a.Release:
		return true
	}
}

// Cancel implements a2asrv.AgentExecutor.
func (a *Agent) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	a.mu.Lock()
	a.cancels++
	a.mu.Unlock()
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCanceled, nil), nil)
	}
}

func says(words string) *a2a.Message {
	if words == "" {
		return nil
	}
	return a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart(words))
}

func textOf(m *a2a.Message) string {
	for _, p := range m.Parts {
		if text := p.Text(); text != "" {
			return text
		}
	}
	return ""
}
