package a2a

import (
	"strings"
	"testing"
)

func TestJSONRPCAnswersEveryIDAsItWasWritten(t *testing.T) {
	w := newHarness(t, nil)
	for _, id := range []string{"0", "1.0", "1e2", "9007199254740993", `"a\/b"`, `"\u0061"`, `"aod-id:1"`, `"<"`} {
		for call, want := range map[string]string{
			`"method":"ListTasks"`: `"result":`, `"method":"GetTask","params":{"id":"none"}`: `"error":`, `"method":"eat"`: `"error":`,
			`"method":"SendStreamingMessage","params":{"message":` + message("m"+quoteID(id), "x", "") + `}`: `"result":`,
		} {
			said := w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":`+id+`,`+call+`}`)
			if !strings.Contains(said.body, `"id":`+id) || !strings.Contains(said.body, want) {
				t.Errorf("%s %s: %d %s", id, call, said.StatusCode, said.body)
			}
		}
	}
	for _, id := range []string{"2.5", "true", "[1]"} {
		said := w.do("POST", "/a2a/echo", `{"jsonrpc":"2.0","id":`+id+`,"method":"ListTasks"}`)
		if !strings.Contains(said.body, "-32600") {
			t.Errorf("%s: %d %s", id, said.StatusCode, said.body)
		}
	}
}

// quoteID makes a word of an id.
func quoteID(id string) string { return strings.Map(func(r rune) rune { return 'a' + r%26 }, id) }
