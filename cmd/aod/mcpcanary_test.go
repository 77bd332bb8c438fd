package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/orchestrator/servicetest"
)

// mcpCanary stands wherever a person's data may stand in a call, in a result, or in what a
// unit says of itself.
const mcpCanary = "Tweety"

// songsOfTools are requests with the word in all places: method, params.
func songsOfTools(run string) [][2]string {
	call := func(arguments string) [2]string {
		return [2]string{"tools/call", `"name":"singer","arguments":` + arguments}
	}
	return [][2]string{
		call(`{"say":"Tweety"}`),
		call(`{"say":"Tweety","do":"fail"}`),
		call(`{"say":["Tweety"]}`),
		call(`{"Tweety":"Tweety"}`),
		call(`{"doc":"data:text/Tweety;name=Tweety.csv;base64,VHdlZXR5"}`),
		call(`{"doc":"data:text/Tweety;Tweety"}`),
		call(`{"doc":"/home/Tweety"}`),
		call(`{"doc":"aod://runs/` + run + `/files/Tweety.txt"}`),
		call(`{"doc":"aod://runs/` + run + `/files/Tweety"}`),
		call(`"Tweety"`),
		{"tools/call", `"name":"Tweety","arguments":{"say":"Tweety"}`},
		{"resources/read", `"uri":"aod://runs/` + run + `/files/Tweety.txt"`},
		{"resources/read", `"uri":"aod://runs/` + run + `/files/../Tweety"`},
		{"resources/read", `"uri":"file:///Tweety"`},
		{"tasks/get", `"taskId":"Tweety"`},
		{"Tweety/list", `"Tweety":"Tweety"`},
	}
}

func (s *server) addSinger() {
	s.addCaller("singer", "")
	s.runs("singer", singInside)
	write(s.t, "[]\n", s.units, "singer", "tools.yaml")
	write(s.t, `{"input": {"type": "object", "additionalProperties": false, "properties": {
  "say": {"type": "string"}, "do": {"type": "string"}, "doc": {"type": "string", "format": "file_path"}}}, "output": {"type": "object"}}`,
		s.units, "singer", "schema.json")
}

// singInside says the word everywhere.
func singInside(ctx context.Context, box servicetest.Sandbox) int {
	b := boxed{box, ctx}
	var input struct{ Do string }
	_ = box.Input(&input) // where that is none, it sings all the same
	_, _ = fmt.Fprintln(box.Stdout, mcpCanary)
	_, _ = fmt.Fprintln(box.Stderr, mcpCanary)
	b.asks("POST", "/progress", "", `{"step":"Tweety","message":"Tweety"}`)
	b.writes("Tweety.txt", []byte(mcpCanary))
	if input.Do == "fail" {
		box.Output(failing(mcpCanary, mcpCanary))
		return 3
	}
	box.Output(map[string]string{"song": mcpCanary})
	return 0
}

// singTrace is the trace of a client's calls.
const singTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

// singByHTTP goes through the songs at /mcp, without a session and in one.
func (s *server) singByHTTP(run string) {
	s.t.Helper()
	for _, song := range songsOfTools(run) {
		name := ""
		if song[0] == "tools/call" {
			name = "singer"
		}
		_, _ = s.asksMCP(song[0], name, song[1]+`,"_meta":{"traceparent":"Tweety"}`) // refused: it comes twice
		_, _ = s.asksMCP(song[0], name, song[1])                                     // what it is answered is its own
	}
	hello := strings.Replace(mcpHello, `"name":"t"`, `"name":"Tweety"`, 1)
	response, _ := s.speaks("POST", "", "", hello)
	session := response.Header.Get("Mcp-Session-Id")
	s.speaks("POST", "", session, mcpReady)
	for i, song := range songsOfTools(run) {
		s.speaks("POST", "", session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,"_meta":{"progressToken":"Tweety","traceparent":"00-%s-00f067aa0ba902b7-01"}}}`, i+1, song[0], song[1], singTrace))
	}
	s.speaks("POST", "", session, `{"Tweety":`)
	s.speaks("POST", "", "Tweety", mcpReady)
	s.speaks("DELETE", "", session, "")
}

// singByStdio goes through them with `aod mcp`, and returns its stderr.
func (s *server) singByStdio(run string) string {
	s.t.Helper()
	var in, stderr strings.Builder
	fmt.Fprintln(&in, strings.Replace(mcpHello, `"name":"t"`, `"name":"Tweety"`, 1))
	fmt.Fprintln(&in, mcpReady+"\nTweety\n{Tweety")
	for i, song := range songsOfTools(run) {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,"_meta":{"progressToken":"Tweety"}}}`+"\n", i+1, song[0], song[1])
	}
	cmd := exec.Command(s.program, "mcp", "--unit", "singer", "--out", s.t.TempDir())
	cmd.Env = append(os.Environ(), "AOD_DATA="+s.data)
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), &stderr
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"structuredContent":{"song":"Tweety"}`) {
		s.t.Errorf("%v %s", err, out)
	}
	return stderr.String()
}

// text is all that was exported, a line for each text of each span.
func (s *spans) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	for _, span := range s.byID {
		fmt.Fprintf(&text, "%s %v %v %v\n", span.Name, span.Attributes, span.Status, span.Events)
	}
	return text.String()
}

// hasCall wants the span of a call of a tool, below its client's and with a run's below it.
func (s *spans) hasCall(t *testing.T, tool string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	failed, good := 0, 0
	for _, span := range s.byID {
		if span.Name != "tools/call "+tool || hex.EncodeToString(span.TraceId) != singTrace {
			continue
		}
		a := attributes(span)
		if a["mcp.method.name"] != "tools/call" || a["gen_ai.tool.name"] != tool || a["mcp.protocol.version"] != "2025-11-25" || hex.EncodeToString(span.ParentSpanId) != "00f067aa0ba902b7" {
			t.Errorf("%x: %v", span.ParentSpanId, a)
		}
		switch a["error.type"] {
		case "":
			good++
			if below := s.below(span); len(below) != 1 || below[0] != "run" {
				t.Errorf("below a call are %q", below)
			}
		case "tool_error":
			failed++
		}
	}
	if good == 0 || failed == 0 {
		t.Errorf("%d good calls and %d failed ones have a span", good, failed)
	}
}
