package agents

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func TestAnArrayOfAnAgenticUnitIsPutIntoAnObject(t *testing.T) {
	got := (&task{}).answer(api.Record{Output: []byte(" [1, 2.0]")})
	if string(got.Outputs) != `{"output":[1,2.0]}` {
		t.Errorf("%s", got.Outputs)
	}
}

func TestARefusalHasNoneOfTheUnitsWords(t *testing.T) {
	told := &api.RunError{
		Kind: "capsule_error", Message: "no patient canary", Hint: "canary",
		Findings: []fault.Finding{{Pointer: "/canary", Message: "canary"}},
	}
	for _, outcome := range []api.Outcome{api.CapsuleError, api.ContractViolation, api.TimedOut, api.SystemError} {
		err := taskError(api.Record{ID: "id", Outcome: outcome, Error: told})
		refusal := string(object((&task{}).refusal(httpwire.ProblemOf(err))))
		if text := refusal + err.Error(); strings.Contains(text, "canary") || !strings.Contains(text, string(outcome)) {
			t.Error(text)
		}
	}
}

func TestBudgetsAreRead(t *testing.T) {
	for budgets, want := range map[string]string{
		`{}`: "0s", `null`: "0s", `{"timeout_ms":1500}`: "1.5s", `{"timeout_s":2,"max_seconds":0.5}`: "500ms",
		`{"timeout_seconds":1e-9}`: "1ms", `{"timeout_seconds":1e300}`: "2562047h47m16.854775807s",
		`{"timeout_ms":null,"timeout_s":1e999}`: "2562047h47m16.854775807s",
	} {
		within, warnings, err := readBudgets(agenthttp.Object(budgets))
		if err != nil || within.String() != want || warnings != nil {
			t.Errorf("%s: %v %v %v", budgets, within, warnings, err)
		}
	}
	for _, bad := range []string{`0`, `-1`, `"5"`, `true`, `[1]`, `{}`, `-1e999`, `1e-999`} {
		if _, _, err := readBudgets(agenthttp.Object(`{"timeout_s":1,"max_seconds":` + bad + `}`)); !fault.Is(err, fault.Input) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
