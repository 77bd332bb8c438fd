package main

import (
	"net"
	"strings"
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

func TestAServerThatOthersCanReachSaysSo(t *testing.T) {
	for ip, tells := range map[string]bool{"127.0.0.1": false, "10.0.0.5": false, "0.0.0.0": true, "::": true} {
		told, text := screen(false)
		listens := &net.TCPAddr{IP: net.ParseIP(ip), Port: 7070}
		a := newApp(strings.NewReader(""), told, told)
		a.noteAddress("http://"+reachable(listens), listens, &config.Config{}, nil)
		if strings.Contains(text.String(), "every address of this machine") != tells {
			t.Errorf("%s: %s", ip, text)
		}
	}
}
