package check

import (
	"maps"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/schemas"
)

// answerSchema is compiled once. It is our own schema, so a compile error is a mistake of the
// build.
var answerSchema = sync.OnceValue(func() *contract.Schema {
	schema, findings := contract.Compile(schemas.AgentAnswer())
	if schema == nil {
		panic("check: the schema of answers doesn't compile: " + findings[0].String())
	}
	return schema
})

// held holds a whole answer against the contract's schema, and returns what breaks it. No
// finding shows a value. What the task gave is the task's own business.
func held(f document.Fields) ([]fault.Finding, error) {
	f = maps.Clone(f)
	for _, name := range []string{"outputs", "data"} {
		if f.Object(name) != nil {
			f[name] = []byte("{}")
		}
	}
	raw, err := strictjson.Encode(f)
	if err != nil {
		return nil, err
	}
	payload, err := contract.Decode(raw, maxAnswer)
	if err != nil {
		return nil, err
	}
	return answerSchema().Validate(payload), nil
}

// memberOf is the member of an answer that a finding is about, "" for the answer itself.
func memberOf(finding fault.Finding) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(finding.Pointer, "/"), "/")
	return first
}

// judgeHeld holds an answer against the schema, as far as a rule is about its members.
func judgeHeld(f document.Fields, isAbout func(member string) bool) (Verdict, string) {
	findings, err := held(f)
	if err != nil {
		return NotApplicable, "a name stands twice in it, or a number is out of range"
	}
	for _, finding := range findings {
		if isAbout(memberOf(finding)) {
			return Fail, finding.Pointer + ": " + finding.Message
		}
	}
	return Pass, ""
}
