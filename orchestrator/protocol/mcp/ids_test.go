package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
)

const answersOpening = `"id":"opening"`

// speak says lines at stdio, after a session of the revision was opened, and returns the lines of the answer.
func speak(t *testing.T, s *Server, revision string, lines ...string) []string {
	t.Helper()
	opening := []string{
		`{"jsonrpc":"2.0","id":"opening","method":"initialize","params":{"protocolVersion":"` + revision + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}
	out := &told{writes: make(chan string, 100)}
	if err := s.ServeStdio(trusted.Context(t), &steps{lines: append(opening, lines...), writes: out.writes}, out); err != nil {
		t.Errorf("it ends with %v", err)
	}
	said := strings.Split(strings.TrimSpace(out.String()), "\n")
	return slices.DeleteFunc(said, func(line string) bool {
		return strings.Contains(line, "list_changed") || strings.Contains(line, answersOpening) // in any order
	})
}

// steps are lines of a client that waits for an answer after the first one, and for progress before one that cancels.
type steps struct {
	lines  []string
	at     int
	writes chan string
}

func (s *steps) Read(into []byte) (int, error) {
	if s.at == len(s.lines) {
		return 0, io.EOF
	}
	for s.at == 1 && !strings.Contains(<-s.writes, answersOpening) {
	}
	for strings.Contains(s.lines[s.at], "notifications/cancelled") && !strings.Contains(<-s.writes, "notifications/progress") {
	}
	s.at++
	return copy(into, s.lines[s.at-1]+"\n"), nil
}

// told is what a client is told.
type told struct {
	bytes.Buffer
	writes chan string
}

func (w *told) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	w.writes <- string(p)
	return n, err
}

func TestALineThatIsNoMessageIsRefusedAndTheNextOneIsHeard(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`[{"jsonrpc":"2.0","id":4,"method":"ping"}]`, `[]`, `{"id":4,"method":"ping"}`, `"x"`, `null`,
		`{"jsonrpc":"2.0","id":[1],"method":"ping"}`, `{"jsonrpc":"2.0","id":true,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":4,"method":5}`, `{"jsonrpc":"2.0","id":2.5,"method":"ping"}`,
	} {
		got := speak(t, New(newFake("hello"), Options{}), "2025-06-18", line, `{"jsonrpc":"2.0","id":99,"method":"ping"}`)
		if len(got) != 2 || !strings.Contains(got[0], `"code":-32600`) || got[1] != `{"jsonrpc":"2.0","id":99,"result":{}}` {
			t.Errorf("%s: %q", line, got)
		}
	}
	got := speak(t, New(newFake("hello"), Options{}), "2025-06-18", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`)
	if len(got) != 0 {
		t.Errorf("an error is answered with %q", got)
	}
}

var oddIDs = []string{"null", "0", "1.0", "1e2", "9007199254740993", `"a\/b"`, `"\u0061"`, "-7", `"aod-id:1"`}

func TestStdioAnswersEveryIDAsItWasWrittenAndEnds(t *testing.T) {
	t.Parallel()
	for _, id := range oddIDs {
		got := speak(t, New(newFake("hello"), Options{}), "2025-06-18", `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
		if want := `{"jsonrpc":"2.0","id":` + id + `,"result":{}}`; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is answered with %q", id, got)
		}
	}
}

func TestABatchOfTheOldRevisionIsAnsweredWhole(t *testing.T) {
	t.Parallel()
	got := speak(t, New(newFake("hello"), Options{}), "2025-03-26",
		`[{"jsonrpc":"2.0","id":1.0,"method":"ping"},5,{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","method":"notifications/y"},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	slices.Sort(got)
	if len(got) != 3 || got[0] != `[{"jsonrpc":"2.0","id":1.0,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]` ||
		!strings.Contains(got[1], `"id":2,"error":{"code":-32600`) || !strings.Contains(got[2], `"id":null,"error":{"code":-32600`) {
		t.Errorf("%q", got)
	}
}

func TestHTTPAnswersEveryIDAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := New(newFake("hello"), Options{})
	defer endAll(s)
	session := sessionHeader + ": " + ask(t, s, "POST", strings.ReplaceAll(hello, `"id":1`, `"id":9007199254740993`)).Header().Get(sessionHeader)
	call := `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"hello","arguments":{},%s}}`
	for _, id := range oddIDs {
		want := `"id":` + id + `,"result":`
		if w := ask(t, s, http.MethodPost, fmt.Sprintf(call, id, `"x":1`), session); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s in a session: %d %s", id, w.Code, w.Body)
		}
		body := fmt.Sprintf(call, id, fmt.Sprintf(meta, Stateless))
		if w := ask(t, s, http.MethodPost, body, stateless, "Mcp-Method: tools/call", "Mcp-Name: hello"); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s without one: %d %s", id, w.Code, w.Body)
		}
		refused := strings.ReplaceAll(body, "tools/call", "tools/eat")
		if w := ask(t, s, http.MethodPost, refused, stateless, "Mcp-Method: tools/eat"); !strings.Contains(w.Body.String(), `"id":`+id+`,"error":{"code":-32601`) {
			t.Errorf("%s with an unknown method: %d %s", id, w.Code, w.Body)
		}
	}
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":5,"method":"foo/bar"}`: `200 {"jsonrpc":"2.0","id":5,"error":{"code":-32601,`,
		`{"jsonrpc":"2.0","id":6,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"aod://runs/{run}/files/{+name}"},"argument":{"name":"run","value":"a"}}}`: "200 data: {\"jsonrpc\":\"2.0\",\"id\":6,\"result\":{\"completion\":{\"values\":[]}}}",
		`{"jsonrpc":"2.0","id":2.5,"method":"ping"}`:  `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`: `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`"x"`:                      `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"id":4,"method":"ping"}`: `400 {"jsonrpc":"2.0","id":4,"error":{"code":-32600,`,
	} {
		w := ask(t, s, http.MethodPost, body, session)
		answer := w.Body.String()
		if _, data, isStream := strings.Cut(answer, "\ndata: "); isStream {
			answer = "data: " + data
		}
		if !strings.HasPrefix(fmt.Sprint(w.Code, " ", answer), want) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

func TestProgressAndCancellationKnowTheirCallByItsBytes(t *testing.T) {
	t.Parallel()
	f := newFake("hello")
	f.hold = true
	f.events = []api.Event{{Type: api.EventProgress, Data: json.RawMessage(`{"message":"begun"}`)}}
	got := speak(t, New(f, Options{}), "2025-06-18",
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"hello","_meta":{"progressToken":1.0}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740993}}`)
	if len(f.cancelled) != 1 || len(got) != 2 || !strings.Contains(got[0], `"progressToken":1.0`) || !strings.Contains(got[1], `"id":9007199254740993,"error":`) {
		t.Errorf("%q, and %q are cancelled", got, f.cancelled)
	}
}

func TestHTTPAnswersInMessagesWhateverItIsTold(t *testing.T) {
	t.Parallel()
	s := New(newFake("hello"), Options{})
	defer endAll(s)
	session := sessionHeader + ": " + ask(t, s, "POST", hello).Header().Get(sessionHeader)
	newer := revisionHeader + ": 2025-06-18"
	const noBatch, noJSON = `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,`, `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,`
	for _, c := range []struct{ body, header, want string }{
		{`{"jsonrpc":"2.0","method":"foo/bar"}`, newer, "202 "},
		{`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"x"}}`, newer, "202 "},
		{`{"jsonrpc":"2.0","method":"tools/list"}`, newer, "202 "},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, newer, "202 "},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, newer, `"id":7,"error":{"code":-32602,`},
		{`{"jsonrpc":"2.0","id":7,"params":null,"method":"tools/call"}`, newer, `"id":7,"error":{"code":-32602,`},
		{`{"jsonrpc":"2.0","id":7,"method":"ping","params":null}`, newer, `"id":7,"result":{}`},
		{`{"jsonrpc":"2.0","id":7,"method":"ping"} x`, newer, noJSON},
		{`{"jsonrpc":"2.0","id":7,"method":"ping"}{}`, newer, noJSON},
		{`{"jsonrpc":"2.0","id":7,`, newer, noJSON},
		{"\ufeff{}", newer, noJSON},
		{"", newer, noJSON},
		{`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, newer, noBatch},
		{`[{"jsonrpc":"2.0","id":7,"method":"foo/bar"}]`, newer, noBatch},
		{`[]`, "X-Is: old", noBatch},
		{`[{"jsonrpc":"2.0","id":7.0,"method":"ping"},{"jsonrpc":"2.0","method":"foo/bar"},{"jsonrpc":"2.0","id":8,"method":"foo/bar"}]`, "X-Is: old", `"id":7.0,"result":{}`},
		{`[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8e0,"method":"foo/bar","params":{"a":1}}]`, "X-Is: old", `"id":8e0,"error":{"code":-32601,`},
	} {
		w := ask(t, s, http.MethodPost, c.body, session, c.header)
		if got := fmt.Sprint(w.Code, " ", w.Body); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.body, got)
		}
	}
	if got := speak(t, New(newFake("hello"), Options{}), "2025-06-18", "\ufeff"+`{"jsonrpc":"2.0","id":7,"method":"ping"}`); len(got) != 1 {
		t.Errorf("behind a byte order mark: %q", got)
	}
	for _, c := range []string{`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":null}`} {
		if got := speak(t, New(newFake("hello"), Options{}), "2025-06-18", c); len(got) != 1 || !strings.Contains(got[0], `"id":7,"error":{"code":-32602,`) {
			t.Errorf("at stdio, %s: %q", c, got)
		}
	}
}
