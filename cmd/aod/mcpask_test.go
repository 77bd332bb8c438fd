package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// atHTTP is a client's way to the server's own tools.
func (s *server) atHTTP() sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: s.url() + "/mcp", HTTPClient: &http.Client{Transport: bearer(s.token)}, DisableStandaloneSSE: true, MaxRetries: -1}
}

// atStdio is a client's way to `aod mcp`, and what closes its stdin. ended has its exit code.
func (s *server) atStdio() (transport sdk.Transport, hangUp func(), ended chan int) {
	in, client := io.Pipe()
	back, out := io.Pipe()
	a := newApp(in, &ui.Output{Writer: out, FD: -1}, &ui.Output{Writer: io.Discard, FD: -1})
	ended = make(chan int, 1)
	go func() {
		ended <- a.run(context.WithoutCancel(s.t.Context()), []string{"--server", s.url(), "--token-file", filepath.Join(s.home(), "token"), "mcp"})
		_ = out.Close()
	}()
	s.t.Cleanup(func() { _ = client.Close(); _ = back.Close() })
	return &sdk.IOTransport{Reader: back, Writer: client}, func() { _ = client.Close() }, ended
}

// speaksMCP connects a client that asks a person.
func (s *server) speaksMCP(transport sdk.Transport, revision string, person func(*sdk.ElicitParams) *sdk.ElicitResult) *sdk.ClientSession {
	s.t.Helper()
	opts := &sdk.ClientOptions{}
	if person != nil {
		opts.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) { return person(r.Params), nil }
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, opts)
	session, err := client.Connect(s.t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	return session
}

func asksPerson(t *testing.T, session *sdk.ClientSession, question string) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "person", Arguments: json.RawMessage(`{"ask":` + question + `}`)})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(result.Content)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(raw), `\"`, `"`)
}

func TestAPersonAnswersByMCP(t *testing.T) {
	t.Parallel()
	s := newAskServer(t)
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		for way, transport := range map[string]func() sdk.Transport{"http": s.atHTTP, "stdio": func() sdk.Transport { transport, _, _ := s.atStdio(); return transport }} {
			t.Run(way+" "+revision, func(t *testing.T) {
				answer := &sdk.ElicitResult{Action: "accept"}
				session := s.speaksMCP(transport(), revision, func(*sdk.ElicitParams) *sdk.ElicitResult { return answer })
				if got := asksPerson(t, session, `{"text":"May I?","kind":"approval"}`); !strings.Contains(got, `"answer":{"answer":"approve","option":"approve","by":"mcp"}`) {
					t.Errorf("accepted: %s", got)
				}
				answer = &sdk.ElicitResult{Action: "decline"}
				if got := asksPerson(t, session, `{"text":"May I?","kind":"approval"}`); !strings.Contains(got, `"denied":"a person said no"`) {
					t.Errorf("declined: %s", got)
				}
				answer = &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "Ada"}}
				if got := asksPerson(t, session, `{"text":"Who?"}`); !strings.Contains(got, `"answer":{"answer":"Ada","by":"mcp"}`) {
					t.Errorf("said: %s", got)
				}
				answer = &sdk.ElicitResult{Action: "cancel"}
				if got := asksPerson(t, session, `{"text":"Who?"}`); !strings.Contains(got, "a person dismissed what it asks") {
					t.Errorf("dismissed: %s", got)
				}
			})
			t.Run(way+" "+revision+" without forms", func(t *testing.T) {
				if got := asksPerson(t, s.speaksMCP(transport(), revision, nil), `{"text":"Who?"}`); !strings.Contains(got, "the capability `elicitation`") {
					t.Error(got)
				}
			})
		}
	}
}

// publishing asks a person who has to say why.
const publishing = `
nodes:
  a:
    ask: Publish ${{ input.n }}?
    show: {n: "${{ input.n }}"}
    form: {type: object, properties: {why: {type: string}}, required: [why]}
    next: {approve: end, reject: b}
  b: {set: {no: true}}
output: {no: "${{ state.no ?? false }}"}
`

func TestAPersonAnswersAFlowByMCP(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.addFlow("publishing", "", publishing)
	s.start()
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		var shown *sdk.ElicitParams
		session := s.speaksMCP(s.atHTTP(), revision, func(params *sdk.ElicitParams) *sdk.ElicitResult {
			shown = params
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "reject", "why": "it rains"}}
		})
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "publishing", Arguments: map[string]any{"n": 7}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(result.StructuredContent); err != nil || string(got) != `{"no":true}` {
			t.Errorf("%s: %s %v", revision, got, err)
		}
		if shown.Message != "publishing asks: Publish 7?\n\nn: 7" {
			t.Errorf("%s: %q", revision, shown.Message)
		}
	}
}

func TestAClientAtStdioTakesItsQuestionsWithIt(t *testing.T) {
	t.Parallel()
	s := newAskServer(t)
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		transport, hangUp, ended := s.atStdio()
		var asked atomic.Bool
		stays := make(chan struct{})
		session := s.speaksMCP(transport, revision, func(*sdk.ElicitParams) *sdk.ElicitResult {
			asked.Store(true)
			<-stays
			return &sdk.ElicitResult{Action: "cancel"}
		})
		called := make(chan struct{})
		go func() {
			defer close(called)
			_, _ = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "person", Arguments: json.RawMessage(`{"ask":{"text":"Who?"}}`)})
		}()
		testkit.Eventually(t, "it is asked", asked.Load)
		run := s.openQuestion().Run
		hangUp()
		if code := <-ended; code != 0 {
			t.Errorf("%s: exit code %d", revision, code)
		}
		close(stays)
		<-called
		if record := s.await(run); record.Outcome != api.WasCancelled || !strings.Contains(record.Error.Message, "its MCP client has gone") {
			t.Errorf("%s: %s %+v", revision, record.Outcome, record.Error)
		}
	}
}

// openQuestion is the only question that is open.
func (s *server) openQuestion() (q api.Question) {
	s.t.Helper()
	var err error
	for q, err = range s.client.Questions.List(s.t.Context(), "") {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return q
}
