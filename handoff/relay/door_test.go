package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// host has servers in this process.
type host struct {
	serve func(ctx context.Context, stdin io.ReadCloser, stdout io.WriteCloser)
	rules Options
	err   error

	mu       sync.Mutex
	sessions []*Session
}

func (h *host) Rules(_ context.Context, unit string) (Options, error) {
	if unit != "memory" {
		return Options{}, fault.New(fault.NotFound, "there is no unit %q", unit)
	}
	return h.rules, nil
}

func (h *host) Start(_ context.Context, _ string, s *Session) error {
	if h.err != nil {
		return h.err
	}
	h.mu.Lock()
	h.sessions = append(h.sessions, s)
	h.mu.Unlock()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { h.serve(ctx, inR, outW); _ = outW.Close(); _ = inR.Close() }()
	go func() { <-s.Done(); cancel(); _ = outW.Close(); _ = inR.Close() }()
	go func() { s.Talk(inW, outR, func([]byte) {}); _ = outR.Close() }()
	return nil
}

// askingServer is an SDK's server, whose tool asks its client back and tells of progress.
func askingServer(ctx context.Context, stdin io.ReadCloser, stdout io.WriteCloser) {
	server := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	n := 0
	mcp.AddTool(server, &mcp.Tool{Name: "count", Description: "Counts its calls."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		n++
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(n)}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "ask", Description: "Asks back."}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "half"})
		_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Data: "told"})
		said, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 5, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "?"}}}})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{said.Content}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "hidden", Description: "Is not listed."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("it was called")
	})
	_ = server.Run(ctx, &mcp.IOTransport{Reader: stdin, Writer: stdout})
}

func newDoor(t *testing.T, h *host, most int) (*Door, string) {
	t.Helper()
	d := NewDoor(h, DoorOptions{Sessions: most, Logger: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, s := range h.sessions {
			s.End(ErrClientLeft)
			wait(t, s.Done())
		}
	})
	return d, server.URL + Prefix + "memory"
}

// A session is of the token with which it was begun. For others it isn't there.
func TestASessionIsOfItsToken(t *testing.T) {
	h := &host{serve: askingServer}
	d, _ := newDoor(t, h, 2)
	ask := func(name, method, session, body string) *httptest.ResponseRecorder {
		ctx := httpwire.WithOwner(t.Context(), name)
		r := httptest.NewRequestWithContext(ctx, method, Prefix+"memory", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set(sessionHeader, session)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		return w
	}
	begun := ask("ada", http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	id := begun.Header().Get(sessionHeader)
	if id == "" {
		t.Fatalf("%d %s", begun.Code, begun.Body)
	}
	for method, body := range map[string]string{http.MethodPost: `{"jsonrpc":"2.0","id":2,"method":"ping"}`, http.MethodGet: "", http.MethodDelete: ""} {
		if got, none := ask("bob", method, id, body), ask("bob", method, "none", body); got.Code != http.StatusNotFound || got.Body.String() != none.Body.String() {
			t.Errorf("%s: %d %s", method, got.Code, got.Body)
		}
	}
	if got := ask("ada", http.MethodPost, id, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); got.Code != http.StatusOK {
		t.Errorf("its own: %d %s", got.Code, got.Body)
	}
}

func TestAClientOfTheSDK(t *testing.T) {
	for _, revision := range append(slices.Clone(Revisions), "") {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", revision, !alone), func(t *testing.T) {
				h := &host{serve: askingServer, rules: Options{Tools: []string{"ask", "count"}}}
				d, url := newDoor(t, h, 10)
				told := make(chan string, 10)
				client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
					CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
						told <- "asked"
						return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "mine"}}, nil
					},
					ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params.Message },
					LoggingMessageHandler:       func(_ context.Context, r *mcp.LoggingMessageRequest) { told <- fmt.Sprint(r.Params.Data) },
				})
				session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: alone}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
				if err != nil {
					t.Fatal(err)
				}
				if got := session.InitializeResult().ProtocolVersion; revision != "" && got != revision || got > "2026" {
					t.Errorf("it speaks %s", got)
				}
				list, err := session.ListTools(t.Context(), nil)
				if err != nil || len(list.Tools) != 2 {
					t.Errorf("tools %+v, %v", list, err)
				}
				if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
					t.Error(err)
				}
				params := &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{}}
				params.SetProgressToken("p")
				result, err := session.CallTool(t.Context(), params)
				if err != nil || result.IsError || result.Content[0].(*mcp.TextContent).Text != "mine" {
					t.Errorf("%+v, %v", result, err)
				}
				for _, want := range []string{"half", "told", "asked"} {
					if got := <-told; got != want {
						t.Errorf("the client was told %q, want %q", got, want)
					}
				}
				if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "hidden", Arguments: map[string]any{}}); err == nil || !strings.Contains(err.Error(), "there is no tool") {
					t.Errorf("hidden: %v", err)
				}
				if err := session.Close(); err != nil {
					t.Error(err)
				}
				wait(t, h.sessions[0].Done())
				if !h.sessions[0].EndedWell() {
					t.Error(h.sessions[0].Err())
				}
				testkit.Eventually(t, "the session is gone", func() bool { return d.count() == 0 })
			})
		}
	}
}

func (d *Door) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.sessions)
}

func TestStateLivesInASession(t *testing.T) {
	h := &host{serve: askingServer}
	_, url := newDoor(t, h, 30)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = session.Close() }()
			for want := range 5 {
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "count", Arguments: map[string]any{}})
				if err != nil || result.Content[0].(*mcp.TextContent).Text != fmt.Sprint(want+1) {
					t.Errorf("%+v, %v", result, err)
				}
			}
		})
	}
	all.Wait()
	if len(h.sessions) != 20 {
		t.Errorf("%d servers", len(h.sessions))
	}
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// posts sends a message, and returns the answer.
func posts(t *testing.T, method, url, session, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set(sessionHeader, session)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(raw)
}

func TestWhatADoorRefuses(t *testing.T) {
	h := &host{serve: askingServer}
	_, url := newDoor(t, h, 1)
	first, _ := posts(t, "POST", url, "", hello)
	session := first.Header.Get(sessionHeader)
	if first.StatusCode != 200 || session == "" {
		t.Fatalf("%s %q", first.Status, session)
	}
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	end := listen(t, url, session) // so that it is in use
	for _, c := range []struct {
		name, method, url, session, body string
		header                           []string
		status                           int
		says                             string
	}{
		{"a session too many", "POST", url, "", hello, nil, 503, "1 sessions are open"},
		{"no session", "POST", url, "", ping, nil, 400, "Mcp-Session-Id"},
		{"much without a session", "POST", url, "", `{"jsonrpc":"2.0","id":1,"method":"ping","x":"` + strings.Repeat("x", maxOpening) + `"}`, nil, 413, "65536"},
		{"an unknown session", "POST", url, "x", ping, nil, 404, "no such session"},
		{"that of another unit", "POST", url + "2", session, ping, nil, 404, "no such session"},
		{"an unknown unit", "POST", url + "2", "", hello, nil, 404, "memory2"},
		{"another path", "POST", url + "/x", "", hello, nil, 404, "memory/x"},
		{"a newer revision", "POST", url, "", ping, []string{revisionHeader, "2026-07-28"}, 400, "-32022"},
		{"a newer client", "POST", url, "", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, nil, 400, "2025-11-25"},
		{"a batch", "POST", url, session, "[" + ping + "]", nil, 400, "-32600"},
		{"no JSON", "POST", url, session, "{", nil, 400, "-32700"},
		{"another type", "POST", url, session, ping, []string{"Content-Type", "text/plain"}, 400, "application/json"},
		{"17 MiB", "POST", url, session, `{"jsonrpc":"2.0","id":1,"method":"ping","x":"` + strings.Repeat("x", 17<<20) + `"}`, nil, 413, "16777216"},
		{"a GET of no stream", "GET", url, session, "", []string{"Accept", "text/html"}, 400, "text/event-stream"},
		{"a PUT", "PUT", url, session, "", nil, 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			response, body := posts(t, c.method, c.url, c.session, c.body, c.header...)
			if response.StatusCode != c.status || !strings.Contains(body, c.says) {
				t.Errorf("%s %.300s", response.Status, body)
			}
			if (c.status == 503) != (response.Header.Get("Retry-After") != "") {
				t.Error("Retry-After", response.Header)
			}
		})
	}
	end()
	if response, body := posts(t, "POST", url, session, ping); response.StatusCode != 200 || !strings.Contains(body, `"id":1`) {
		t.Errorf("after all that: %s %s", response.Status, body)
	}
	if response, _ := posts(t, "DELETE", url, session, ""); response.StatusCode != 204 {
		t.Errorf("DELETE: %s", response.Status)
	}
	if response, _ := posts(t, "POST", url, session, ping); response.StatusCode != 404 {
		t.Errorf("after its end: %s", response.Status)
	}
}

// listen opens the stream of a session, and returns how to close it.
func listen(t *testing.T, url, session string) (end func()) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", eventStream)
	r.Header.Set(sessionHeader, session)
	response, err := http.DefaultClient.Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	return func() { _ = response.Body.Close() }
}

// as sends a request for a client.
type as struct {
	door *Door
	gate *bytegate.Gate
}

func (a as) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in, r := httpwire.Receive(w, r)
	defer in.Done()
	in.Count(a.gate, r.Header.Get("X-Client"))
	a.door.ServeHTTP(w, r)
}

func TestTheSessionThatIsIdleForLongestEndsForAFurtherOne(t *testing.T) {
	h := &host{serve: askingServer}
	d, _ := newDoor(t, h, 2)
	g := bytegate.New(0)
	server := httptest.NewServer(as{d, g})
	defer server.Close()
	url := server.URL + Prefix + "memory"
	open := func(client string) string {
		response, body := posts(t, "POST", url, "", hello, "X-Client", client)
		if response.StatusCode != 200 {
			t.Fatalf("%s %s", response.Status, body)
		}
		return response.Header.Get(sessionHeader)
	}
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	theirs, first, second := open("another"), open("me"), open("me")
	posts(t, "POST", url, first, ping)
	third := open("me")
	for session, want := range map[string]int{theirs: 200, first: 200, second: 404, third: 200} {
		if response, body := posts(t, "POST", url, session, ping); response.StatusCode != want {
			t.Errorf("%s, not %d: %s", response.Status, want, body)
		}
	}
	wait(t, h.sessions[2].Done())
	if !h.sessions[2].EndedWell() {
		t.Error(h.sessions[2].Err())
	}
	testkit.Eventually(t, "all memory is given back", func() bool { return g.Held() == 0 })
}

// A server that doesn't read holds a message, also when its client has gone.
func TestAMessageCountsUntilItsServerHasReadIt(t *testing.T) {
	read := make(chan struct{})
	h := &host{serve: func(_ context.Context, stdin io.ReadCloser, stdout io.WriteCloser) {
		_, _ = io.ReadFull(stdin, make([]byte, len(hello)+1))
		_, _ = io.WriteString(stdout, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"deaf","version":"1"}}}`+"\n")
		<-read
		_, _ = io.Copy(io.Discard, stdin)
	}}
	d, _ := newDoor(t, h, 2)
	g := bytegate.New(0)
	server := httptest.NewServer(as{d, g})
	defer server.Close()
	url := server.URL + Prefix + "memory"
	first, _ := posts(t, "POST", url, "", hello)
	note := `{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`
	if response, body := posts(t, "POST", url, first.Header.Get(sessionHeader), note); response.StatusCode != http.StatusAccepted {
		t.Fatalf("%s %s", response.Status, body)
	}
	testkit.Eventually(t, "the message alone is held", func() bool { return g.Held() == int64(len(note)) })
	close(read)
	testkit.Eventually(t, "all memory is given back", func() bool { return g.Held() == 0 })
}

func TestAServerThatCantBeStarted(t *testing.T) {
	h := &host{err: fault.New(fault.Unsupported, "not on an engine elsewhere")}
	d, url := newDoor(t, h, 1)
	if response, body := posts(t, "POST", url, "", hello); response.StatusCode != 501 || !strings.Contains(body, "elsewhere") {
		t.Errorf("%s %s", response.Status, body)
	}
	testkit.Eventually(t, "no session is left", func() bool { return d.count() == 0 })
}

func TestADeadServerEndsItsSessionAndSaysSo(t *testing.T) {
	h := &host{serve: func(_ context.Context, stdin io.ReadCloser, stdout io.WriteCloser) {
		line := make([]byte, len(hello)+1)
		_, _ = io.ReadFull(stdin, line)
		_, _ = io.WriteString(stdout, `{"jsonrpc":"2.0","id":0,"result":{}}`+"\n")
		_, _ = io.ReadFull(stdin, line[:10]) // and it is gone in the middle of a call
	}}
	_, url := newDoor(t, h, 1)
	first, _ := posts(t, "POST", url, "", hello)
	session := first.Header.Get(sessionHeader)
	response, body := posts(t, "POST", url, session, call(1, "a"))
	if response.StatusCode != 200 && response.StatusCode != 404 || !strings.Contains(body, "the server ended") {
		t.Errorf("%s %s", response.Status, body)
	}
	wait(t, h.sessions[0].Done())
	if response, body := posts(t, "POST", url, session, call(2, "a")); response.StatusCode != 404 {
		t.Errorf("%s %s", response.Status, body)
	}
}
