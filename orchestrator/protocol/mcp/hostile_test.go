package mcp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// ask sends one request as a client of its own making.
func ask(t testing.TB, h http.Handler, method, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(trusted.Context(t), method, Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const (
	hello     = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	list      = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{%s}}`
	meta      = `"_meta":{"io.modelcontextprotocol/protocolVersion":"%s","io.modelcontextprotocol/clientCapabilities":{}}`
	stateless = "Mcp-Protocol-Version: 2026-07-28"
)

// asClient has a server's requests count for a client.
func asClient(s *Server, g *bytegate.Gate, name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, r := httpwire.Receive(w, r)
		defer in.Done()
		in.Count(g, name)
		s.ServeHTTP(w, r)
	})
}

func TestTheSessionThatIsIdleForLongestEndsForAFurtherOne(t *testing.T) {
	s := New(newFake("hello"), Options{Sessions: 3})
	defer endAll(s)
	g := bytegate.New(0)
	mine, others := asClient(s, g, "me"), asClient(s, g, "another")
	open := func(client http.Handler) string {
		w := ask(t, client, "POST", hello)
		if w.Code != 200 || w.Header().Get(sessionHeader) == "" {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return sessionHeader + ": " + w.Header().Get(sessionHeader)
	}
	uses := func(session string) int { return ask(t, mine, "POST", fmt.Sprintf(list, ""), session).Code }
	theirs := open(others)
	first, second, third := open(mine), open(mine), open(mine)
	if got := uses(first); got != 200 {
		t.Errorf("the first one: %d", got)
	}
	fourth := open(mine)
	for session, want := range map[string]int{theirs: 200, first: 200, second: 404, third: 200, fourth: 200} {
		if got := uses(session); got != want {
			t.Errorf("%d, not %d", got, want)
		}
	}
	for _, session := range []string{first, third, fourth} { // requests that go on
		leave, err := s.doors.visits.enter(strings.TrimPrefix(session, sessionHeader+": "), "", "POST")
		must(t, err)
		defer leave()
	}
	if w := ask(t, mine, "POST", hello); w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "DELETE") {
		t.Errorf("one more than are in use: %d %s", w.Code, w.Body)
	}
	if w := ask(t, mine, "POST", fmt.Sprintf(list, fmt.Sprintf(meta, Stateless)), stateless, "Mcp-Method: tools/list"); w.Code != 200 {
		t.Errorf("without a session: %d %s", w.Code, w.Body)
	}
	if w := ask(t, mine, "DELETE", "", third); w.Code != 204 || uses(third) != 404 {
		t.Errorf("delete: %d", w.Code)
	}
	open(mine)
	open(others)
	if g.Held() != 0 {
		t.Errorf("%d bytes are held in the end", g.Held())
	}
}

// unread is a body of which nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

func TestABodyIsReadForASessionThatIsThereOnly(t *testing.T) {
	s := New(newFake("hello"), Options{})
	r := httptest.NewRequestWithContext(trusted.Context(t), http.MethodPost, Path, unread{t})
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(sessionHeader, "nobody")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(t, s, "POST", `{"x":"`+strings.Repeat("a", maxOpening)+`"}`); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body without a session: %d %s", w.Code, w.Body)
	}
}

func TestACallThatThereIsNoMemoryForIsRefused(t *testing.T) {
	s := New(newFake("hello"), Options{})
	defer endAll(s)
	g := bytegate.New(1 << 20)
	client := asClient(s, g, "me")
	session := sessionHeader + ": " + ask(t, client, "POST", hello).Header().Get(sessionHeader)
	large := `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"hello","arguments":{"x":"` + strings.Repeat("a", 600<<10) + `"},` + fmt.Sprintf(meta, Stateless) + `}}`
	for _, headers := range [][]string{{session}, {stateless, "Mcp-Method: tools/call", "Mcp-Name: hello"}} {
		if w := ask(t, client, "POST", large, headers...); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%v: %d %.300s", headers, w.Code, w.Body)
		}
	}
	if g.Held() != 0 {
		t.Errorf("%d bytes are held in the end", g.Held())
	}
}

// endAll ends all sessions.
func endAll(s *Server) {
	for session := range s.sdk.Sessions() {
		_ = session.Close()
	}
}

func TestWhatTheProtocolRefuses(t *testing.T) {
	s := New(newFake("hello"), Options{})
	good := fmt.Sprintf(list, fmt.Sprintf(meta, Stateless))
	for name, c := range map[string]struct {
		status  int
		says    string
		body    string
		headers []string
	}{
		"good":                {200, `"hello"`, good, []string{stateless, "Mcp-Method: tools/list"}},
		"no header":           {400, "-32020", good, nil},
		"another version":     {400, "-32020", fmt.Sprintf(list, fmt.Sprintf(meta, "2025-11-25")), []string{stateless, "Mcp-Method: tools/list"}},
		"another method":      {400, "-32020", good, []string{stateless, "Mcp-Method: tools/call"}},
		"no _meta":            {400, "-32602", fmt.Sprintf(list, ""), []string{stateless, "Mcp-Method: tools/list"}},
		"no capabilities":     {400, "-32602", fmt.Sprintf(list, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), []string{stateless, "Mcp-Method: tools/list"}},
		"unknown new version": {400, "-32022", fmt.Sprintf(list, fmt.Sprintf(meta, "2031-01-01")), []string{"Mcp-Protocol-Version: 2031-01-01", "Mcp-Method: tools/list"}},
		"unknown old version": {400, "Unsupported protocol version", hello, []string{"Mcp-Protocol-Version: 2024-01-01"}},
		"unknown method":      {404, "-32601", strings.ReplaceAll(good, "tools/list", "tools/eat"), []string{stateless, "Mcp-Method: tools/eat"}},
		"no session":          {404, "no such session", fmt.Sprintf(list, ""), []string{"Mcp-Session-Id: nobody"}},
		"not begun":           {200, "invalid during session initialization", fmt.Sprintf(list, ""), nil},
		"half a body":         {400, "", hello[:40], nil},
		"no body":             {400, "", "", nil},
		"a batch":             {400, "batch", "[" + good + "," + good + "]", []string{stateless}},
		"another type":        {415, "", good, []string{stateless, "Content-Type: text/plain"}},
		"no stream taken":     {400, "", good, []string{stateless, "Accept: application/json"}},
		"deep":                {400, "", strings.Repeat("[", 1<<20), []string{stateless}},
		"17 MiB":              {413, "", `{"x":"` + strings.Repeat("a", 17<<20) + `"}`, nil},
		"17 MiB, stateless":   {413, "", `{"x":"` + strings.Repeat("a", 17<<20) + `"}`, []string{stateless}},
	} {
		w := ask(t, s, "POST", c.body, c.headers...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %.300s", name, w.Code, w.Body)
		}
	}
	for session := range s.sdk.Sessions() {
		t.Errorf("session %q is left", session.ID())
	}
}

func TestOtherMethodsAndStreamsWithoutASession(t *testing.T) {
	s := New(newFake(), Options{})
	for _, c := range []struct {
		method string
		want   int
		header string
	}{
		{"GET", 400, "X: y"}, {"GET", 404, "Mcp-Session-Id: x"}, {"GET", 405, stateless}, {"DELETE", 400, "X: y"}, {"DELETE", 405, stateless}, {"PUT", 405, "X: y"},
	} {
		if w := ask(t, s, c.method, "", c.header); w.Code != c.want {
			t.Errorf("%s %s: %d %s", c.method, c.header, w.Code, w.Body)
		}
	}
}

func TestFilesThatAreNoneOfTheClients(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "in")
	must(t, os.MkdirAll(filepath.Join(inside, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("canary"), 0o600))
	must(t, os.WriteFile(filepath.Join(inside, "sub", "good"), []byte("good"), 0o600))
	must(t, os.Symlink(filepath.Join(dir, "secret"), filepath.Join(inside, "link")))
	must(t, os.Symlink("..", filepath.Join(inside, "up")))
	must(t, unix.Mkfifo(filepath.Join(inside, "fifo"), 0o600))
	f := newFake()
	f.add("read", `{"input":{"type":"object","properties":{"doc":{"type":"string","format":"file_path"}}},"output":{"type":"object"}}`)
	run := f.keepFile("a", "of a run")
	s := New(f, Options{Files: inside})
	for uri, good := range map[string]bool{
		"sub/good": true, filepath.Join(inside, "sub/good"): true, "file://" + filepath.Join(inside, "sub/good"): true, "aod://runs/" + run + "/files/a": true,
		"../secret": false, filepath.Join(dir, "secret"): false, "link": false, "up/secret": false, "fifo": false, "sub": false, ".": false, "": false,
		"/dev/zero": false, "/proc/self/environ": false, "none": false, "sub/%2e%2e/../../secret": false, "a\x00b": false,
		"aod://runs/" + run + "/files/../a": false, "aod://runs/" + run + "/files/%2e%2e/a": false, "aod://runs/" + run + "/files/a?x": false,
		"aod://runs/" + idOf(99) + "/files/a": false, "aod://runs/x/files/a": false, "aod://other": false, "aod:": false,
		"data:,plain": false, "data:text/plain;base64,!!": false, "data:;base64,aGk": false, "data:": false,
		"data:;base64," + strings.Repeat("AAAA", 1500000): false,
	} {
		f.contents = nil
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"doc":%s},%s}}`, quoted(uri), fmt.Sprintf(meta, Stateless))
		w := ask(t, s, "POST", body, stateless, "Mcp-Method: tools/call", "Mcp-Name: read")
		if failed := strings.Contains(w.Body.String(), `"isError":true`); w.Code != 200 || failed == good || len(f.contents) > 0 != good || strings.Contains(fmt.Sprint(f.contents), "canary") {
			t.Errorf("%.80q: %d %.300s %q", uri, w.Code, w.Body, f.contents)
		}
	}
}

func TestLinesThatAreNoJSONArePassedOver(t *testing.T) {
	long := strings.Repeat("x", 100)
	var dropped []string
	in := newLines(strings.NewReader("noise\n{\"a\":1}\r\n\n"+long+"\n{\"b\":2}\n{"), 50, func(line []byte) []byte { return append(line, '\n') }, func(why string) { dropped = append(dropped, why) })
	got, err := io.ReadAll(in)
	must(t, err)
	if !bytes.Equal(got, []byte("{\"a\":1}\n{\"b\":2}\n")) || strings.Join(dropped, ",") != "no JSON,too long,no JSON" {
		t.Errorf("%q %q", got, dropped)
	}
}
