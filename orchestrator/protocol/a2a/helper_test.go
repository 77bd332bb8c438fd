package a2a

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"
)

// testTime is far longer than anything of these tests takes.
const testTime = time.Minute

// harness is a Server over a fakeService.
type harness struct {
	*fakeService
	t    *testing.T
	url  string
	log  *bytes.Buffer
	opts Options
	held map[string]int // bodies that were held against the protocol, by their methods
}

func newHarness(t *testing.T, change func(*Options)) *harness {
	t.Helper()
	w := &harness{fakeService: newFake(t), t: t, log: &bytes.Buffer{}, held: map[string]int{}}
	w.opts = Options{Version: "test", NoAuth: true, Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&w.opts)
	}
	server := httptest.NewServer(New(w.fakeService, w.opts))
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	w.url = server.URL
	return w
}

// said is an answer that was read.
type answerRead struct {
	*http.Response
	body string
}

// do makes a request. Whatever is answered has to be what the protocol says.
func (w *harness) do(method, path, body string, header ...string) answerRead {
	w.t.Helper()
	return w.read(w.begin(method, path, body, header...), body)
}

// begin makes a request, and returns when the first byte of its answer is there.
func (w *harness) begin(method, path, body string, header ...string) *http.Response {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(trusted.Context(w.t), testTime)
	w.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range header {
		key, value, _ := strings.Cut(h, ": ")
		r.Header.Set(key, value)
		if value == "-" {
			r.Header.Del(key)
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return response
}

// read reads an answer to its end.
func (w *harness) read(response *http.Response, sent string) answerRead {
	w.t.Helper()
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	said := answerRead{response, string(raw)}
	w.checkWire(response.Request.Method, response.Request.URL.EscapedPath(), sent, said)
	return said
}

// rpc calls a method of JSON-RPC, and returns its result.
func (w *harness) rpc(unit, method, params string) map[string]any {
	w.t.Helper()
	said := w.do("POST", "/a2a/"+unit, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":`+params+`}`)
	var answer struct {
		Result map[string]any
		Error  any
	}
	if err := json.Unmarshal([]byte(said.body), &answer); err != nil || answer.Error != nil || said.StatusCode != 200 {
		w.t.Fatalf("%s: %d %s", method, said.StatusCode, said.body)
	}
	return answer.Result
}

// at is the value at a path of keys and indices.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				return nil
			}
			value = list[step]
		}
	}
	return value
}

func message(id, text string, more string) string {
	return `{"messageId":"` + id + `","role":"ROLE_USER","parts":[{"text":"` + text + `"}]` + more + `}`
}

// events reads a stream of server-sent events to its end.
func events(t *testing.T, body io.Reader) []string {
	t.Helper()
	var all []string
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			all = append(all, data)
		}
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return all
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// open begins to read a stream, and returns when its first byte is there.
func (w *harness) open(path string) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(trusted.Context(w.t), testTime)
	w.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(r)
}
