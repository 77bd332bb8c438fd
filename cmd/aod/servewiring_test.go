package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/certs"
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
	pair, err := certs.Self(filepath.Join(t.TempDir(), "tls"), []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := certs.Open(pair, func(certs.State) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		listens []string
		keeper  *certs.Keeper
		says    string // "": nothing
	}{
		{[]string{"127.0.0.1:7070"}, nil, ""},
		{[]string{"[::1]:7070", "localhost:7071"}, nil, ""},
		{[]string{"10.0.0.5:7070"}, nil, "10.0.0.5:7070 without TLS"},
		{[]string{"[::]:7070"}, nil, "[::]:7070 without TLS"},
		{[]string{"127.0.0.1:7070", ":7071"}, nil, ":7071 without TLS"},
		{[]string{"[::]:7070"}, keeper, "can reach it at [::]:7070\n"},
		{[]string{"127.0.0.1:7070"}, keeper, ""},
	} {
		told, text := screen(false)
		log, lines := screen(false)
		e := &entrance{listens: c.listens, keeper: c.keeper, logger: cli.NewLogger(log, "json", "info")}
		a := newApp(strings.NewReader(""), told, told)
		a.noteAddress("x", e, &config.Config{})
		a.noteAddress("x", e, &config.Config{LogFormat: cli.LogJSON})
		if said := strings.Contains(text.String(), "other machines"); said != (c.says != "") || !strings.Contains(text.String(), c.says) {
			t.Errorf("%v: %s", c.listens, text)
		}
		if warns := strings.Contains(lines.String(), "WARN"); warns != strings.Contains(c.says, "without TLS") {
			t.Errorf("%v: %s", c.listens, lines)
		}
	}
}
