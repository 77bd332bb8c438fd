package mcp

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// FuzzURIs reads URIs of strangers: what is taken names a file of a run, or is small enough.
func FuzzURIs(f *testing.F) {
	for _, seed := range []string{
		"aod://runs/" + idOf(1) + "/files/a%20b", "aod://runs/" + idOf(1) + "/files/%2e%2e/a", "data:text/plain;name=%2F..%2Fx;base64,aGk=", "data:;base64,", "data:,", "aod:",
	} {
		f.Add(seed)
	}
	fuzzbound.Run(f, func(t *testing.T, uri string) {
		if run, name, err := parseFileURI(uri); err == nil {
			if api.CheckFileName(name) != nil {
				t.Errorf("%q names %q", uri, name)
			}
			if r, n, err := parseFileURI(fileURI(run, name)); err != nil || r != run || n != name {
				t.Errorf("%q is %q %q, and then %q %q %v", uri, run, name, r, n, err)
			}
		}
		if _, name, content, err := parseData(uri); err == nil && (len(content) > maxData || strings.ContainsAny(name, "/\x00")) {
			t.Errorf("%.80q: %d bytes as %q", uri, len(content), name)
		}
	})
}

// FuzzDoor sends bytes of strangers to both doors: nothing panics, and no answer tells of our
// inside.
func FuzzDoor(f *testing.F) {
	for _, seed := range []string{
		hello, strings.ReplaceAll(list, "%s", strings.ReplaceAll(meta, "%s", Stateless)), "[]", "[" + hello + "]",
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"doc":"data:;base64,aGk="},` + strings.ReplaceAll(meta, "%s", Stateless) + `}}`,
		`{"jsonrpc":"2.0","id":{},"method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
	} {
		f.Add(seed, "tools/call", true)
		f.Add(seed, "", false)
	}
	service := newFake("hello")
	service.add("read", `{"input":{"type":"object","properties":{"doc":{"type":"string","format":"file_path"}}},"output":{"type":"object"}}`)
	s := New(service, Options{})
	fuzzbound.Run(f, func(t *testing.T, body, method string, new bool) {
		headers := []string{"Mcp-Method: " + method}
		if new {
			headers = append(headers, stateless)
		}
		if strings.ContainsAny(method, "\r\n\x00") || strings.Contains(body, "subscriptions/listen") { // that one has no end
			return
		}
		w := ask(t, s, http.MethodPost, body, headers...)
		if w.Code >= 500 || strings.Contains(w.Body.String(), "goroutine ") {
			t.Errorf("%d %.300s", w.Code, w.Body)
		}
		endAll(s)
	})
}

// FuzzLines reads lines of strangers: what comes through is messages that the SDK takes.
func FuzzLines(f *testing.F) {
	f.Add("noise\n{}\n\r\n[1]\n{", false)
	f.Add(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":1.0,"result":1}]`, true)
	fuzzbound.Run(f, func(t *testing.T, text string, batches bool) {
		var out strings.Builder
		door := newLineDoor(&out)
		door.batches = batches
		got, err := io.ReadAll(newLines(strings.NewReader(text), 1000, door.take, func(string) {}))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		for line := range strings.Lines(string(got)) {
			messages := []json.RawMessage{json.RawMessage(line)}
			if strings.HasPrefix(line, "[") {
				must(t, json.Unmarshal([]byte(line), &messages))
			}
			for _, m := range messages {
				if _, err := jsonrpc.DecodeMessage(m); strings.TrimSpace(string(m)) != "" && err != nil {
					t.Errorf("%q: the SDK gets %q: %v", text, m, err)
				}
			}
		}
	})
}
