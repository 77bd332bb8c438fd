package agenthttp

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// FuzzParse reads documents of any kind: what is taken keeps its promises.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"request_id":"r","task_type":"t","ok":true,"outputs":{},"inputs":null,"warnings":["w",{}]}`))
	f.Add([]byte(`{"request_id":"r","status":"error"}`))
	f.Add([]byte(`{"detail":{"request_id":"r","ok":false,"outputs":{},"warnings":[]}}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		asked := Request{RequestID: "r", TaskType: "t"}
		response, err := ParseResponse(raw, asked)
		if err == nil && (response.RequestID != "r" || response.OK && response.Outputs == nil) {
			t.Fatalf("%+v", response)
		}
		if err == nil {
			written, err := strictjson.Encode(response)
			if again, err2 := ParseResponse(written, asked); err != nil || err2 != nil || again.OK != response.OK {
				t.Fatalf("%v %v %s", err, err2, written)
			}
		}
		request, err := ParseRequest(raw)
		if err == nil && request.Check() != nil {
			t.Fatalf("%v", request.Check())
		}
		_ = refused(raw, asked)
		if _, err := eventOf(httpwire.Event{Name: "", Data: string(raw)}); err == nil && document.Check(raw) != nil {
			t.Fatal("an event that isn't JSON")
		}
	})
}
