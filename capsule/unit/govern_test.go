package unit

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/outside"
)

// asking is a unit with a sandbox that wants much.
func asking() *Unit {
	return &Unit{Name: "u", Policy: Policy{
		Limits: capsule.Limits{Timeout: time.Hour, MemoryBytes: 8, CPUs: 8, PIDs: 8, OutputBytes: 8}, Retries: new(8),
		Grants: []string{"a", "b"}, Network: "bridge", Writable: true, Isolation: "runsc", Warm: 8, Reuse: 8,
		Upstreams: []string{"a"}, Secrets: map[string]string{"API_KEY": "k"},
	}}
}

func TestGovernWithoutAWordChangesNothing(t *testing.T) {
	u := asking()
	u.Govern(Given{}, Bounds{})
	if diff := cmp.Diff(asking(), u); diff != "" {
		t.Error(diff)
	}
}

func TestGovernLeavesTheDefinitionAlone(t *testing.T) {
	shared := asking()
	own := *shared
	own.Govern(Given{Env: map[string]string{"A": "1"}, MayNotCall: []string{"a"}}, Bounds{Retries: new(1), Warm: new(1), Reuse: new(1), Limits: capsule.Limits{PIDs: 1}})
	if diff := cmp.Diff(asking(), shared); diff != "" {
		t.Error(diff)
	}
	if got := own.Policy; *got.Retries != 1 || got.Warm != 1 || got.Reuse != 1 || got.Limits.PIDs != 1 || len(got.Lowered) != 4 || got.Env["A"] != "1" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"b"}, own.Policy.Grants); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsGivenTwiceStandsOnce(t *testing.T) {
	u := asking()
	u.Govern(Given{MayCall: []string{"b", "c", "c"}, MayNotCall: []string{"a"}}, Bounds{})
	if diff := cmp.Diff([]string{"b", "c"}, u.Policy.Grants); diff != "" {
		t.Error(diff)
	}
}

// A unit without a sandbox has neither a network nor anything else of one.
func TestAUnitElsewhereIsGovernedWithoutASandbox(t *testing.T) {
	u := &Unit{Name: "u", Policy: Policy{Limits: capsule.Limits{Timeout: time.Hour}}}
	u.Govern(Given{Env: map[string]string{"A": "1"}, Network: "bridge"},
		Bounds{Networks: []string{}, Runtimes: []string{}, Runtime: "runsc", Sealed: true, Limits: capsule.Limits{Timeout: time.Minute}})
	if p := u.Policy; p.Network != "" || p.Env != nil || p.Isolation != "" || p.Refusal != nil || p.Limits.Timeout != time.Minute {
		t.Errorf("%+v", p)
	}
}

func TestTheShortestTimeoutTellsWhoseItIs(t *testing.T) {
	u := asking()
	rules := map[string]string{"timeout": "policy.timeout"}
	u.Govern(Given{Limits: capsule.Limits{Timeout: time.Minute}},
		Bounds{Limits: capsule.Limits{Timeout: 2 * time.Minute}, Rules: rules}.Within(3*time.Minute, "max_timeout"))
	if p := u.Policy; p.Limits.Timeout != time.Minute || p.Bounds.Limits.Timeout != time.Minute || p.Bounds.Rule("timeout") != "unit.u.timeout" {
		t.Errorf("%+v", p)
	}
	longer := asking()
	longer.Govern(Given{Limits: capsule.Limits{Timeout: 3 * time.Minute}}, Bounds{Limits: capsule.Limits{Timeout: 2 * time.Minute}, Rules: rules})
	if p := longer.Policy; p.Limits.Timeout != 2*time.Minute || p.Bounds.Rule("timeout") != "policy.timeout" {
		t.Errorf("%+v", p)
	}
	if rules["timeout"] != "policy.timeout" {
		t.Error("the operator's rules were changed, which all units share")
	}
}

func TestARefusalNamesTheRuleAndTheLine(t *testing.T) {
	rules := map[string]string{"networks": "policy.networks", "runtimes": "policy.runtimes", "read_only": "policy.read_only", "upstreams": "policy.upstreams", "secrets": "policy.uploads.secrets"}
	for want, bounds := range map[string]Bounds{
		"policy.networks|unit.u.policy.networks: [none, bridge]":   {Networks: []string{"none"}},
		"policy.runtimes|unit.u.policy.runtimes: [kata, runsc]":    {Runtimes: []string{"kata"}},
		"policy.read_only|unit.u.policy.read_only: false":          {Sealed: true},
		"policy.upstreams|unit.u.policy.upstreams: [b, a]":         {Upstreams: []string{"b"}, Services: []string{"a", "b"}},
		"isn't there|upstreams.a: {url: https://…, secret: a-key}": {Upstreams: []string{AnyName}, Services: []string{}},
		"policy.uploads.secrets|unit.u.policy.secrets: [k]":        {Secrets: []string{}},
		"": {Networks: []string{"bridge"}, Runtimes: []string{AnyRuntime}, Services: []string{"a"}, Upstreams: []string{AnyName}, Secrets: []string{"k"}},
	} {
		u := asking()
		bounds.Rules = rules
		u.Govern(Given{}, bounds)
		rule, line, refused := strings.Cut(want, "|")
		if (u.Policy.Refusal != nil) != refused {
			t.Errorf("%q: %v", want, u.Policy.Refusal)
			continue
		}
		if refused && (!strings.Contains(u.Policy.Refusal.Msg, rule) || !strings.HasSuffix(u.Policy.Refusal.Hint, line)) {
			t.Errorf("%q: %s, %s", want, u.Policy.Refusal.Msg, u.Policy.Refusal.Hint)
		}
	}
}

func TestWhatTheOperatorGivesTakesThePlaceOfWhatIsAsked(t *testing.T) {
	u := asking()
	u.Policy.Budgets = capsule.Budgets{Tokens: 10, Cost: 5, Calls: 3}
	u.Policy.Models, u.Policy.Limits.LogBytes, u.Policy.Limits.OutputFiles = []string{"own"}, 8, 8
	given := Given{
		Limits: capsule.Limits{MemoryBytes: 20, CPUs: 0.5, PIDs: 9, OutputBytes: 21, OutputFiles: 22, LogBytes: 23}, Retries: new(0), Warm: new(0), ReadWrite: new(true),
		Models: []string{}, Network: "none", Budgets: capsule.Budgets{Tokens: 20, Cost: 4, Calls: 99},
	}
	u.Govern(given, Bounds{})
	want := capsule.Limits{Timeout: time.Hour, MemoryBytes: 20, CPUs: 0.5, PIDs: 9, OutputBytes: 21, OutputFiles: 22, LogBytes: 23}
	if diff := cmp.Diff(want, u.Policy.Limits); diff != "" {
		t.Error(diff)
	}
	p := u.Policy
	if *p.Retries != 0 || p.Warm != 0 || !p.ReadWrite || len(p.Models) != 0 || p.Network != "none" || len(p.Lowered) != 0 {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff(capsule.Budgets{Tokens: 10, Cost: 4, Calls: 3}, p.Budgets); diff != "" { // the smaller one, of tokens and costs
		t.Error(diff)
	}
	for key, want := range map[string]string{"memory": "unit.u.limits.memory in the server's file", "cpus": "unit.u.limits.cpus in the server's file", "pids": "unit.u.limits.pids in the server's file", "output": "unit.u.limits.output in the server's file", "log": "unit.u.limits.log in the server's file", "timeout": "limits.timeout in agent.yaml"} {
		if got := u.PlaceOfLimit(key); got != want {
			t.Errorf("%s stands at %s", key, got)
		}
	}
	for _, key := range []string{"memory", "cpus", "pids", "output", "log"} {
		if got := asking().PlaceOfLimit(key); got != "limits."+key+" in agent.yaml" {
			t.Errorf("what nobody gave stands at %s", got)
		}
	}
}

func TestWhatABoundCutsIsTold(t *testing.T) {
	u := asking()
	rules := map[string]string{"memory": "policy.memory", "retries": "policy.retries", "warm": "policy.warm", "reuse": "policy.reuse", "cpus": "policy.cpus"}
	u.Govern(Given{Limits: capsule.Limits{MemoryBytes: 3 << 20}}, Bounds{
		Limits: capsule.Limits{Timeout: time.Hour, MemoryBytes: 2 << 20, CPUs: 1.5, PIDs: 9, OutputBytes: 7}, Retries: new(0), Warm: new(8), Reuse: new(7), Rules: rules,
	})
	want := []Lowered{
		{"limits.memory", "3MiB", "2MiB", "policy.memory"}, {"limits.cpus", "8", "1.5", "policy.cpus"}, {"limits.output", "8B", "7B", ""}, {"retries", "8", "0", "policy.retries"}, {"reuse", "8", "7", "policy.reuse"},
	}
	if diff := cmp.Diff(want, u.Policy.Lowered); diff != "" { // what is at its bound isn't cut
		t.Error(diff)
	}
	if p := u.Policy; *p.Retries != 0 || p.Warm != 8 || p.Reuse != 7 || p.Limits.CPUs != 1.5 || p.Limits.PIDs != 8 || p.Limits.OutputBytes != 7 || p.Limits.MemoryBytes != 2<<20 {
		t.Errorf("%+v", p)
	}
	silent := asking()
	silent.Policy.Retries = nil
	silent.Govern(Given{}, Bounds{Retries: new(0)})
	if silent.Policy.Retries != nil || len(silent.Policy.Lowered) != 0 {
		t.Errorf("what wasn't asked for was cut: %+v", silent.Policy)
	}
}

func TestBoundsOfTheNetwork(t *testing.T) {
	list := func(entries ...string) outside.List {
		l, found := outside.ParseList(entries)
		if found != nil {
			t.Fatal(found)
		}
		return l
	}
	rules := map[string]string{"egress": "policy.egress", "build_fetch": "policy.build_fetch"}
	for name, c := range map[string]struct {
		own     outside.List
		fetches string
		bounds  Bounds
		given   Given
		refused string // part of the message; "": it isn't
		hint    string // its end
	}{
		"hosts that are allowed":           {own: list("a.example"), bounds: Bounds{Egress: list("a.example", "b.example")}},
		"hosts beyond":                     {own: list("a.example", "c.example"), bounds: Bounds{Egress: list("a.example")}, refused: "policy.egress doesn't allow it to reach c.example", hint: "unit.u.policy.egress: [a.example, c.example]"},
		"hosts where none is allowed":      {own: list("a.example"), bounds: Bounds{Egress: outside.List{}}, refused: "to reach a.example", hint: "egress: [a.example]"},
		"no hosts where none is allowed":   {bounds: Bounds{Egress: outside.List{}}},
		"a build that fetches":             {fetches: "ADD https://x", bounds: Bounds{NoFetch: true}, refused: "policy.build_fetch doesn't allow it that its Dockerfile fetches from elsewhere: ADD https://x", hint: "unit.u.policy.build_fetch: true"},
		"a build that fetches nothing":     {bounds: Bounds{NoFetch: true}},
		"a build that fetches, allowed":    {fetches: "ADD https://x"},
		"the network that it is given":     {bounds: Bounds{Networks: []string{"none"}}, given: Given{Network: "none"}},
		"a runtime that all have to have":  {bounds: Bounds{Runtime: "kata", Runtimes: []string{}}},
		"no runtime where none is allowed": {bounds: Bounds{Runtimes: []string{}}, refused: `the runtime "runsc"`, hint: "runtimes: [runsc]"},
		"the network before the rest":      {own: list("a.example"), fetches: "x", bounds: Bounds{Networks: []string{}, Egress: outside.List{}, Sealed: true, NoFetch: true}, refused: "the network bridge", hint: "networks: [bridge]"},
		"hosts before the root":            {own: list("a.example"), fetches: "x", bounds: Bounds{Egress: outside.List{}, Sealed: true, NoFetch: true}, refused: "to reach", hint: "egress: [a.example]"},
		"the root before the build":        {fetches: "x", bounds: Bounds{Sealed: true, NoFetch: true}, refused: "a writable root file system", hint: "read_only: false"},
	} {
		u := asking()
		u.Policy.Egress, u.Policy.Fetches = c.own, c.fetches
		c.bounds.Rules = rules
		u.Govern(c.given, c.bounds)
		refusal := u.Policy.Refusal
		if (refusal != nil) != (c.refused != "") || refusal != nil && (refusal.Kind != fault.Forbidden || !strings.Contains(refusal.Msg, c.refused) || !strings.HasSuffix(refusal.Hint, c.hint)) {
			t.Errorf("%s: %v", name, refusal)
		}
		if c.bounds.Runtime != "" && u.Policy.Isolation != c.bounds.Runtime {
			t.Errorf("%s: it has %s", name, u.Policy.Isolation)
		}
	}
}

func TestTheNetworkOfBuilds(t *testing.T) {
	for name, c := range map[string]struct {
		bounds         Bounds
		network, lines string
	}{
		"that of the engine":        {Bounds{}, DefaultNetwork, ""},
		"none by the server's word": {Bounds{BuildNetwork: NoNetwork}, NoNetwork, "build_network: default"},
		"none by the unit's rule":   {Bounds{BuildNetworks: []string{NoNetwork}}, NoNetwork, "unit.u.policy.build_networks: [none, default]"},
		"none by both":              {Bounds{BuildNetwork: NoNetwork, BuildNetworks: []string{}}, NoNetwork, "build_network: default and unit.u.policy.build_networks: [none, default]"},
		"allowed by the rule":       {Bounds{BuildNetworks: []string{DefaultNetwork}}, DefaultNetwork, ""},
	} {
		if got, lines := c.bounds.NetworkOfBuilds(), c.bounds.AllowingNetwork("u"); got != c.network || lines != c.lines {
			t.Errorf("%s: %s, %q", name, got, lines)
		}
	}
	u := asking()
	if err := u.RefuseFetch("x"); err != nil {
		t.Errorf("without a bound: %v", err)
	}
	u.Policy.Bounds = Bounds{NoFetch: true, Rules: map[string]string{"build_fetch": "policy.build_fetch"}}
	if err := u.RefuseFetch("that it pulls y"); !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "policy.build_fetch doesn't allow it that it pulls y") {
		t.Errorf("with one: %v", err)
	}
}
