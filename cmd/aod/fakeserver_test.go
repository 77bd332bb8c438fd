package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

const fakeID = "01999999-aaaa-7bbb-8ccc-dddddddddddd"

// fakeServer speaks as much of the wire as the commands need. Every run of it ends as
// record says.
type fakeServer struct {
	*httptest.Server
	record api.Record
	files  map[string]string // content by name
	log    []string
	events []string      // data by "type data", before the end
	hold   chan struct{} // the run ends when it is closed; nil: at once
	held   func()        // called when the events stand still
	idle   bool          // it lists no runs
	asked  func()        // called when a run is submitted, before the answer

	mu       sync.Mutex
	requests []string // "METHOD path?query", without those that only look
	bodies   []string
	tokens   map[string]bool
}

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	code := 0
	s := &fakeServer{
		record: api.Record{
			ID: fakeID, Unit: "hello", Kind: "capsule", State: api.Completed, Outcome: api.Success,
			ExitCode: &code, Output: json.RawMessage(`{"n":3}`),
		},
		files: map[string]string{}, tokens: map[string]bool{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/units/{name}/schema", say(`{"input":{"type":"object","properties":{"n":{"type":"int"},"doc":{"type":"string","format":"file_path"}}},"output":{"type":"object"}}`))
	mux.HandleFunc("PUT /v1/units/{name}", s.putUnit)
	mux.HandleFunc("DELETE /v1/units/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.noted(r, "")
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /v1/units/{name}/versions", say(`{"versions":[{"version":"00000000000000a1","source":"upload","since":"2026-01-02T03:04:05Z","current":true},{"version":"00000000000000a0","source":"upload","since":"2026-01-01T03:04:05Z","current":false}]}`))
	mux.HandleFunc("POST /v1/units/{name}/rollback", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.noted(r, string(body))
		_, _ = io.WriteString(w, `{"name":"hello","version":"00000000000000a0"}`)
	})
	mux.HandleFunc("POST /v1/runs", s.submit)
	mux.HandleFunc("POST /v1/runs/{id}/rerun", s.submit)
	mux.HandleFunc("POST /v1/runs/{id}/cancel", s.cancel)
	mux.HandleFunc("POST /v1/prune", s.prune)
	mux.HandleFunc("GET /v1/runs", s.list)
	mux.HandleFunc("GET /v1/units", say(`{"units":[{"name":"hello","kind":"capsule","version":"0123456789abcdef0","source":"upload","description":"says\n\u001b[2Jhello","problem":{"message":"broken"},`+fakePolicy+`},{"name":"other","kind":"capsule"}]}`))
	mux.HandleFunc("GET /v1/units/{name}", say(`{"name":"hello","kind":"capsule","access":"read-only","concurrency":2,`+fakePolicy+`,"input_schema":{"type":"object"}}`))
	mux.HandleFunc("GET /v1/runs/{id}", s.get)
	mux.HandleFunc("GET /v1/runs/{id}/events", s.follow)
	mux.HandleFunc("GET /v1/runs/{id}/artifacts", say(`{"artifacts":[{"n":3,"id":"page","parts":[{"text":"ab"}]}],"next":null}`))
	mux.HandleFunc("GET /v1/runs/{id}/pushes", say(`{"pushes":[{"id":"p1","url":"https://hook.example/secret","created_at":"2026-01-02T03:04:05Z","deliveries":{"delivered":5,"waiting":2,"lost":0}},{"id":"p2","url":"https://hook.example/secret","created_at":"2026-01-02T03:04:05Z","deliveries":{"delivered":0,"waiting":0,"lost":7},"given_up_at":"2026-01-02T04:04:05Z","reason":"unanswered"}]}`))
	mux.HandleFunc("GET /v1/runs/{id}/logs", s.logs)
	mux.HandleFunc("GET /v1/runs/{id}/files/{name...}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, s.files[r.PathValue("name")])
	})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.tokens[r.Header.Get("Authorization")] = true
		s.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// addFile gives the runs an output file.
func (s *fakeServer) addFile(name, content string) {
	sum := sha256.Sum256([]byte(content))
	s.files[name] = content
	s.record.Files = append(s.record.Files, api.File{Name: name, SizeBytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])})
}

func (s *fakeServer) noted(r *http.Request, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.bodies = append(s.bodies, body)
}

// seen returns the requests and their bodies.
func (s *fakeServer) seen() (requests, bodies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.bodies
}

func (s *fakeServer) submit(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	form, err := r.MultipartReader()
	if err != nil {
		_, _ = io.Copy(&body, r.Body)
	}
	for err == nil {
		part, failed := form.NextPart()
		if failed != nil {
			break
		}
		content, _ := io.ReadAll(part)
		fmt.Fprintf(&body, "%s(%s)=%s;", part.FormName(), part.FileName(), content)
	}
	s.noted(r, body.String())
	if s.asked != nil {
		s.asked()
	}
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(api.Record{ID: fakeID, Unit: "hello", State: api.Idle})
}

func (s *fakeServer) get(w http.ResponseWriter, _ *http.Request) {
	record := s.record
	record.FinishedAt = &record.CreatedAt
	_ = json.NewEncoder(w).Encode(record)
}

func (s *fakeServer) follow(w http.ResponseWriter, r *http.Request) {
	for i, event := range s.events {
		kind, data, _ := strings.Cut(event, " ")
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", i+1, kind, data)
	}
	_ = http.NewResponseController(w).Flush()
	if s.hold != nil {
		if s.held != nil {
			s.held()
		}
		select {
		case <-s.hold:
		case <-r.Context().Done():
			return
		}
	}
	fmt.Fprintf(w, "id: %d\nevent: end\ndata: {}\n\n", len(s.events)+1)
}

func (s *fakeServer) logs(w http.ResponseWriter, r *http.Request) {
	tail, _ := strconv.Atoi(r.URL.Query().Get("tail"))
	for n, text := range s.log {
		if tail > 0 && n < len(s.log)-tail {
			continue
		}
		_ = json.NewEncoder(w).Encode(api.LogEntry{Line: int64(n + 1), Stream: "stdout", Text: text})
	}
	_ = http.NewResponseController(w).Flush()
	if s.hold != nil && r.URL.Query().Get("follow") == "true" {
		select {
		case <-s.hold:
		case <-r.Context().Done():
		}
	}
}

func (s *fakeServer) cancel(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.noted(r, string(body))
	if s.hold == nil {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"code":"conflict","detail":"the run has ended"}`)
		return
	}
	code := 143
	s.record.State, s.record.Outcome, s.record.ExitCode, s.record.Output = api.Cancelled, api.WasCancelled, &code, nil
	close(s.hold)
	_ = json.NewEncoder(w).Encode(s.record)
}

func (s *fakeServer) prune(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.noted(r, string(body))
	_, _ = io.WriteString(w, `{"runs":2,"bytes":2048,"dry_run":true}`)
}

func (s *fakeServer) list(w http.ResponseWriter, r *http.Request) {
	s.noted(r, "")
	if s.idle {
		_, _ = io.WriteString(w, `{"runs":[],"next":null}`)
		return
	}
	_, _ = io.WriteString(w, `{"runs":[
		{"id":"a-1","unit":"hello","state":"idle","created_at":"2020-01-02T03:04:05Z"},
		{"id":"a-2","unit":"x\u001b[2J","state":"failed","retries":2,"error":{"kind":"memory_limit","type":"X","message":"killed\u001b[2J\nreally"},
		 "created_at":"2020-01-02T03:04:05Z","started_at":"2020-01-02T03:04:05Z","finished_at":"2020-01-02T03:04:06.5Z"}],"next":null}`)
}

func (s *fakeServer) putUnit(w http.ResponseWriter, r *http.Request) {
	var names []string
	for archive := tar.NewReader(r.Body); ; {
		header, err := archive.Next()
		if err != nil {
			break
		}
		names = append(names, header.Name)
	}
	s.noted(r, strings.Join(names, " "))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"name":%q}`, r.PathValue("name"))
}

// command runs a command line in a directory of its own. Nothing of the environment
// counts.
func command(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	out, shown := screen(false)
	failed, told := screen(false)
	a := newApp(strings.NewReader(""), out, failed)
	code = a.run(ctx, args)
	return code, shown.String(), told.String()
}

// alone makes a working directory and a data directory that nobody else has.
func alone(t *testing.T) (work, data string) {
	t.Helper()
	work = t.TempDir()
	data = filepath.Join(work, "data")
	t.Chdir(work)
	for _, name := range []string{"AOD_SERVER", "AOD_TOKEN", "AOD_TOKEN_FILE", "AOD_CA", "AOD_PIN", "AOD_UNITS"} {
		t.Setenv(name, "")
	}
	t.Setenv("AOD_DATA", data)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(work, "config"))
	return work, data
}

const fakePolicy = `"policy":{"timeout":"1m","max_timeout":"1h","retries":1,"may_call":["a","b"],"network":"bridge","runtime":"runsc",
"memory_bytes":67108864,"cpus":0.5,"pids":9,"output_bytes":1048576,"reuse":4,"warm":2,"env":["E"],
"lowered":[{"setting":"retries","asked":"5","holds":"1","rule":"policy.retries"}],"refusal":{"message":"may not","hint":"ask"}}`
