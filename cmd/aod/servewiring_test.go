package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/orchestrator/protocol/agents"
)

func TestThePolicyForTasksIsThatOfTheConfiguration(t *testing.T) {
	c := &config.Config{
		Agents: config.AgentsConfig{Require: []string{"user_id"}, Modes: []string{"DEMO"}, RiskTiers: []string{"LOW"}, TaskTypes: map[string]string{"A": "a"}},
		Unit: map[string]config.UnitConfig{
			"a": {Require: []string{"stage_id"}, Modes: []string{"LIVE"}, RiskTiers: []string{"HIGH"}, Refuse200: true},
			"b": {},
		},
	}
	want := agents.Policy{
		Rules:     agents.Rules{Require: []string{"user_id"}, Modes: []string{"DEMO"}, RiskTiers: []string{"LOW"}},
		TaskTypes: map[string]string{"A": "a"},
		Units:     map[string]agents.Rules{"a": {Require: []string{"stage_id"}, Modes: []string{"LIVE"}, RiskTiers: []string{"HIGH"}}, "b": {}},
		Refuse200: map[string]bool{"a": true, "b": false},
	}
	if diff := cmp.Diff(want, agentPolicy(c)); diff != "" {
		t.Error(diff)
	}
}
