package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

const (
	sessionID = "01999999-aaaa-7bbb-8ccc-000000000000"
	turnID    = "01999999-aaaa-7bbb-8ccc-000000000001"
)

// cutServer is a server of one turn, which can be away. It loses the answer to the first submission.
type cutServer struct {
	t       *testing.T
	address string
	server  *http.Server

	mu        sync.Mutex
	keys      map[string]int // of submissions
	told      []api.AgentEvent
	after     []string // where streams began
	ended     bool
	cancelled int
}

func newCutServer(t *testing.T) *cutServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &cutServer{t: t, address: listener.Addr().String(), keys: map[string]int{}}
	s.serve(listener)
	t.Cleanup(s.cut)
	return s
}

func (s *cutServer) serve(listener net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/runs", s.submit)
	mux.HandleFunc("GET /v1/runs/{id}", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Record{ID: turnID, Outcome: api.Success})
	})
	mux.HandleFunc("POST /v1/runs/{id}/cancel", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cancelled++
		s.ended = true
		_ = json.NewEncoder(w).Encode(api.Record{ID: turnID})
	})
	mux.HandleFunc("GET /v1/runs/{id}/events", s.events)
	s.server = &http.Server{Handler: mux}
	go func(server *http.Server) { _ = server.Serve(listener) }(s.server)
}

// cut ends all connections, and listens no more.
func (s *cutServer) cut() { _ = s.server.Close() }

func (s *cutServer) isBack() {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.serve(listener)
}

func (s *cutServer) submit(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	if s.keys[key]++; s.keys[key] == 1 {
		panic(http.ErrAbortHandler)
	}
	_ = json.NewEncoder(w).Encode(api.Record{ID: turnID})
}

// tells adds what the program tells.
func (s *cutServer) tells(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range texts {
		s.told = append(s.told, say(text))
	}
}

func (s *cutServer) ends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

func (s *cutServer) events(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.after = append(s.after, r.Header.Get("Last-Event-ID"))
	s.mu.Unlock()
	seen := 0
	_, _ = fmt.Sscan(r.Header.Get("Last-Event-ID"), &seen)
	testkit.Within(testkit.Patience, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for ; seen < len(s.told); seen++ {
			raw, _ := json.Marshal(s.told[seen])
			_, _ = fmt.Fprintf(w, "id: %d\nevent: agent\ndata: %s\n\n", seen+1, raw)
		}
		if s.ended {
			_, _ = fmt.Fprintf(w, "id: %d\nevent: end\ndata: {}\n\n", seen+1)
		}
		_ = http.NewResponseController(w).Flush()
		return s.ended || r.Context().Err() != nil
	})
}

// talks begins a conversation with the server.
func (s *cutServer) talks(in reader, edited bool) (t *talk, screen *testkit.Log, interrupts chan os.Signal) {
	s.t.Helper()
	web := &http.Client{Transport: &http.Transport{}}
	s.t.Cleanup(web.CloseIdleConnections)
	server, err := client.New(client.Options{Server: "http://" + s.address, HTTP: web})
	if err != nil {
		s.t.Fatal(err)
	}
	screen, interrupts = &testkit.Log{}, make(chan os.Signal, 1)
	env := &cli.Env{Out: &ui.Output{Writer: screen, FD: -1}, Err: &ui.Output{Writer: screen, FD: -1}}
	t = newTalk(env, server, &peer{session: sessionID}, in, interrupts)
	t.view.edited = edited
	return t, screen, interrupts
}

func TestATurnOverACutIsShownOnce(t *testing.T) {
	t.Parallel()
	s := newCutServer(t)
	s.tells("one ", "two ")
	talk, screen, _ := s.talks(newLines(strings.NewReader("hello\n")), false)
	done := make(chan error, 1)
	go func() { done <- talk.loop(t.Context()) }()
	testkit.Eventually(t, "the begin is shown", func() bool { return strings.Contains(screen.String(), "one two ") })
	s.cut()
	testkit.Eventually(t, "it is told", func() bool { return strings.Contains(screen.String(), "away") })
	s.tells("three ")
	s.isBack()
	testkit.Eventually(t, "it goes on", func() bool { return strings.Contains(screen.String(), "three ") })
	s.cut()
	testkit.Eventually(t, "it is told again", func() bool { return strings.Count(screen.String(), "away") == 2 })
	s.tells("four")
	s.ends()
	s.isBack()
	if err := <-done; err != nil {
		t.Errorf("it ended with %v", err)
	}
	const away = "the server is away, waiting\n"
	if got, want := screen.String(), "one two "+away+"three "+away+"four\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.after, " "); len(s.keys) != 1 || s.keys[""] > 0 || got != "0 2 3" {
		t.Errorf("keys %v, streams after %s", s.keys, got)
	}
}

// A cancellation that the server doesn't hear of keeps nobody, and it is said once that the server is away.
func TestWhoeverLeavesDuringACutIsLetGo(t *testing.T) {
	t.Parallel()
	s := newCutServer(t)
	s.tells("one")
	in, typed := io.Pipe()
	defer typed.Close()
	talk, screen, interrupts := s.talks(newLines(in), true)
	done := make(chan error, 1)
	go func() { done <- talk.loop(t.Context()) }()
	_, _ = io.WriteString(typed, "hello\n")
	testkit.Eventually(t, "the begin is shown", func() bool { return strings.Contains(screen.String(), "one") })
	s.cut()
	testkit.Eventually(t, "it is told", func() bool { return strings.Contains(screen.String(), "away") })
	interrupts <- os.Interrupt
	interrupts <- os.Interrupt
	if err := <-done; err != nil {
		t.Errorf("it ended with %v", err)
	}
	talk.awaits()
	seen := screen.String()
	if strings.Count(seen, "away") != 1 || !strings.Contains(seen, "the turn goes on: `aod cancel "+turnID) {
		t.Errorf("seen %q", seen)
	}
}

// In a pipe an interrupt ends the conversation with its turn; at a terminal only the turn.
func TestAnInterruptCancelsTheTurn(t *testing.T) {
	t.Parallel()
	for _, edited := range []bool{false, true} {
		s := newCutServer(t)
		s.tells("one")
		in, typed := io.Pipe()
		talk, screen, interrupts := s.talks(newLines(in), edited)
		done := make(chan error, 1)
		go func() { done <- talk.loop(t.Context()) }()
		_, _ = io.WriteString(typed, "hello\n")
		testkit.Eventually(t, "the begin is shown", func() bool { return strings.Contains(screen.String(), "one") })
		interrupts <- os.Interrupt
		if edited {
			testkit.Eventually(t, "the turn has ended", func() bool { return strings.HasSuffix(screen.String(), "one\n") })
			interrupts <- os.Interrupt // which leaves
		}
		if err := <-done; err != nil || s.cancelled != 1 {
			t.Errorf("it ended with %v, cancelled %d times: %q", err, s.cancelled, screen.String())
		}
		_ = typed.Close()
	}
}

func TestAnInterruptAtThePromptIsAskedBack(t *testing.T) {
	t.Parallel()
	in, typed := io.Pipe()
	defer typed.Close()
	talk, screen, interrupts := newCutServer(t).talks(newLines(in), true)
	done := make(chan error, 1)
	go func() { done <- talk.loop(t.Context()) }()
	for range 2 {
		interrupts <- os.Interrupt
		testkit.Eventually(t, "it is said", func() bool { return strings.Contains(screen.String(), "Ctrl-C once more") })
	}
	if err := <-done; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
