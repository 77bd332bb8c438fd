package unit

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/capsule"
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
