package check

import (
	"slices"
	"testing"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// FuzzAnswers judges answers of any kind by the contract's schema.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"request_id":"r","status":"ok","outputs":{"a":1,"a":2},"artifacts":["a"],"warnings":[],"error":null}`))
	f.Add([]byte(`{"detail":{"ok":false,"error":{"code":1,"details":{"a":1,"a":1}},"grounding":{"sources":[1e999]}}}`))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		doc, err := document.Read(raw)
		if err != nil {
			return
		}
		a := subject{doc, document.Asked{RequestID: "r", TaskType: "t"}, document.Terminal}
		for _, judge := range []func(subject) (Verdict, string){judgeArtifacts, judgeWarnings, judgeSchema} {
			verdict, why := judge(a)
			if !slices.Contains([]Verdict{Pass, Fail, Advice, NotApplicable}, verdict) || (why == "") != (verdict == Pass) {
				t.Fatalf("%s %q", verdict, why)
			}
		}
	})
}
