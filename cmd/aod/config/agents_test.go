package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheBlockOfAgents(t *testing.T) {
	c := mustLoad(t, given{file: `agents:
  require: [user_id, user_id]
  modes: [DEMO, LIVE]
  task_types:
    LIT_RETRIEVAL: literature
    "a b": x
unit:
  x: {modes: [DEMO], risk_tiers: [LOW], require: [stage_id]}
`})
	want := AgentsConfig{
		Require: []string{"user_id"}, Modes: []string{"DEMO", "LIVE"},
		TaskTypes: map[string]string{"LIT_RETRIEVAL": "literature", "a b": "x"},
	}
	if diff := cmp.Diff(want, c.Agents); diff != "" {
		t.Error(diff)
	}
	u := c.ForUnit("x")
	if diff := cmp.Diff([][]string{{"stage_id"}, {"DEMO"}, {"LOW"}}, [][]string{u.Require, u.Modes, u.RiskTiers}); diff != "" {
		t.Error(diff)
	}
	if at := source(c, "agents.task_types"); at != "aod.yaml:4" {
		t.Errorf("the task types come from %s", at)
	}
	for _, v := range c.Values() {
		if v.Key == "agents.task_types" && v.Value != "LIT_RETRIEVAL=literature,a b=x" {
			t.Errorf("shown as %s", v.Value)
		}
	}
}

func TestWhatIsWrongWithAgents(t *testing.T) {
	long := strings.Repeat("x", 201)
	for text, want := range map[string]string{
		"agents: {require: [task_type]}":                                        `aod.yaml:1: agents.require: "task_type" isn't an optional field of the contract`,
		"agents: {modes: ['" + long + "']}":                                     "aod.yaml:1: agents.modes: " + `"` + long[:80] + `…" has more than 200 bytes`,
		"agents:\n  task_types:\n    T: Not-A-Name":                             `aod.yaml:3: agents.task_types: the name "Not-A-Name" can't be an image tag`,
		"agents:\n  task_types: {T: a, T: b}":                                   `aod.yaml:2: "agents.task_types.T" stands twice, first in line 2`,
		"agents:\n  task_types: {\"a\\tb\": c}":                                 `aod.yaml:2: agents.task_types: the task type: "a\tb" isn't plain text`,
		"agents: {mode: []}":                                                    `aod.yaml:1: there is no setting "agents.mode"`,
		"agents: {modes: [DEMO]}\nunit:\n  a:\n    modes: [DEMO, LIVE]":         `aod.yaml:4: unit.a.modes: "LIVE" isn't among agents.modes`,
		"agents: {risk_tiers: [LOW]}\nunit:\n  a:\n    risk_tiers: [LOW, HIGH]": `aod.yaml:4: unit.a.risk_tiers: "HIGH" isn't among agents.risk_tiers`,
	} {
		_, err := load(t, given{file: text})
		if err == nil {
			t.Errorf("%s is taken", text)
			continue
		}
		if diff := cmp.Diff([]string{want}, findings(t, err)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
