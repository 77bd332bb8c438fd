package unit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/capsule/flow"
)

// asked is a capsule that asks for all there is, with changes.
func asked(change func(*capsule.Capsule)) *capsule.Capsule {
	c := &capsule.Capsule{
		Name: "u", Kind: capsule.KindCapsule, Description: "d", Tools: []capsule.Tool{{Name: "own"}, {Name: "t", Capsule: "callee"}},
		Agent: capsule.Agent{
			Model: "m", Models: []string{"n", "m", "", "n"}, MaxTokens: 9, ModelCache: time.Hour, Limits: capsule.Limits{PIDs: 7}, Budgets: capsule.Budgets{Calls: 3},
			Network: "bridge", Runtime: "runsc", Warm: 2, Reuse: 3, Concurrency: 4, Recursion: 1, Retries: new(5),
			Upstreams: []string{"up"}, Secrets: map[string]string{"KEY": "k"},
		},
	}
	change(c)
	return c
}

func TestTheKindOfAUnitSaysWhatItMayHave(t *testing.T) {
	sandboxed := func(p Policy) bool {
		return p.Network == "bridge" && p.Isolation == "runsc" && p.Warm == 2 && p.Reuse == 3 && p.Writable && len(p.Upstreams) == 1 && p.Secrets["KEY"] == "k"
	}
	bare := func(p Policy) bool {
		return p.Network == "" && p.Isolation == "" && p.Warm == 0 && p.Reuse == 0 && !p.Writable && p.Upstreams == nil && p.Secrets == nil && p.Egress == nil
	}
	for name, c := range map[string]struct {
		change func(*capsule.Capsule)
		holds  func(Policy) bool
	}{
		"a capsule has a sandbox":          {func(*capsule.Capsule) {}, sandboxed},
		"an agent elsewhere has none":      {func(c *capsule.Capsule) { c.Kind, c.Remote = capsule.KindRemote, new(capsule.Remote) }, bare},
		"a flow has none":                  {func(c *capsule.Capsule) { c.Kind, c.Flow = capsule.KindFlow, new(flow.Flow) }, bare},
		"a wrapped agent has one":          {func(c *capsule.Capsule) { c.Kind, c.Wrapped = capsule.KindAgent, new(agent.Config) }, sandboxed},
		"its runs wait as agents' do":      {func(c *capsule.Capsule) { c.Wrapped = new(agent.Config) }, func(p Policy) bool { return p.Queue == 10 && p.QueueWait == 30*time.Minute }},
		"others wait as the server has it": {func(*capsule.Capsule) {}, func(p Policy) bool { return p.Queue == 0 && p.QueueWait == 0 && p.Masking == MaskNothing }},
		"an agent's contract masks texts":  {func(c *capsule.Capsule) { c.Wrapped = new(agent.Config) }, func(p Policy) bool { return p.Masking == MaskTexts && !p.ReadWrite && !p.Disabled }},
		"an agent says that it changes":    {func(c *capsule.Capsule) { c.Wrapped = &agent.Config{ReadWrite: true} }, func(p Policy) bool { return p.ReadWrite && !p.Disabled }},
		"an agent says that it is off":     {func(c *capsule.Capsule) { c.Wrapped = &agent.Config{Disabled: true} }, func(p Policy) bool { return !p.ReadWrite && p.Disabled }},
		"a root that is read only":         {func(c *capsule.Capsule) { c.Agent.ReadOnly = true }, func(p Policy) bool { return !p.Writable }},
		"a transcript, if not said":        {func(*capsule.Capsule) {}, func(p Policy) bool { return p.Transcript }},
		"a transcript, if said":            {func(c *capsule.Capsule) { c.Agent.Transcript = new(true) }, func(p Policy) bool { return p.Transcript }},
		"none, if said":                    {func(c *capsule.Capsule) { c.Agent.Transcript = new(false) }, func(p Policy) bool { return !p.Transcript }},
	} {
		if u := Of(asked(c.change)); !c.holds(u.Policy) {
			t.Errorf("%s: %+v", name, u.Policy)
		}
	}
	u := Of(asked(func(*capsule.Capsule) {}))
	if p := u.Policy; u.Name != "u" || u.Kind != Capsule || u.Description != "d" || p.Limits.PIDs != 7 || p.Budgets.Calls != 3 || p.Concurrency != 4 || p.Recursion != 1 || *p.Retries != 5 || p.MaxTokens != 9 || p.ModelCache != time.Hour {
		t.Errorf("%+v", u)
	}
	if diff := cmp.Diff([]string{"m", "n"}, u.Policy.Models); diff != "" {
		t.Error(diff)
	}
}

func TestWhomAUnitMayCall(t *testing.T) {
	tool := func(capsuleName, only string) capsule.Tool { return capsule.Tool{Capsule: capsuleName, Only: only} }
	graph, found := flow.Parse([]byte("{start: a, nodes: {a: {run: x, next: b}, b: {run: y, next: c}, c: {run: x}}}"))
	if graph == nil {
		t.Fatal(found)
	}
	for name, c := range map[string]struct {
		tools  []capsule.Tool
		graph  *flow.Flow
		grants []string
		narrow map[string][]string
	}{
		"nobody":                              {grants: nil, narrow: map[string][]string{}},
		"not its own functions":               {tools: []capsule.Tool{tool("", "")}, narrow: map[string][]string{}},
		"each once, in their order":           {tools: []capsule.Tool{tool("b", ""), tool("a", ""), tool("b", "")}, grants: []string{"b", "a"}, narrow: map[string][]string{}},
		"single tools of a server":            {tools: []capsule.Tool{tool("s", "x"), tool("s", "y"), tool("a", "")}, grants: []string{"s", "a"}, narrow: map[string][]string{"s": {"x", "y"}}},
		"a server as a whole, also if single": {tools: []capsule.Tool{tool("s", "x"), tool("s", ""), tool("r", "z")}, grants: []string{"s", "r"}, narrow: map[string][]string{"r": {"z"}}},
		"the units that a flow names":         {graph: graph, grants: []string{"x", "y"}, narrow: map[string][]string{}},
	} {
		u := Of(asked(func(a *capsule.Capsule) { a.Tools, a.Flow = c.tools, c.graph }))
		if diff := cmp.Diff(c.grants, u.Policy.Grants); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(c.narrow, u.Policy.Tools); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(c.tools, u.Tools()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if tools := (&Unit{}).Tools(); tools != nil {
		t.Errorf("a unit without a capsule has %v", tools)
	}
}
