package run

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/runtime"
)

func TestWhatToDoAboutALimitDependsOnWhoSetIt(t *testing.T) {
	failed := func(kind, key string) api.RunError {
		return api.RunError{Kind: kind, Hint: "raise limits." + key + " in agent.yaml if it needs that much"}
	}
	full := capsule.Limits{Timeout: time.Minute, MemoryBytes: 5, PIDs: 6, OutputBytes: 7}
	rules := map[string]string{"timeout": "policy.timeout", "memory": "policy.memory", "pids": "policy.pids", "output": "policy.output"}
	for name, c := range map[string]struct {
		failure api.RunError
		limits  runtime.Limits
		policy  unit.Policy
		want    string
	}{
		"the unit's own":                    {failed("memory_limit", "memory"), runtime.Limits{MemoryBytes: 5}, unit.Policy{}, "raise limits.memory in agent.yaml if it needs that much"},
		"what the operator has given":       {failed("memory_limit", "memory"), runtime.Limits{MemoryBytes: 5}, unit.Policy{Given: capsule.Limits{MemoryBytes: 5}}, "raise unit.u.limits.memory in the server's file if it needs that much"},
		"memory at the operator's bound":    {failed("memory_limit", "memory"), runtime.Limits{MemoryBytes: 5}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "it has all that policy.memory allows, which the operator can raise"},
		"memory below it":                   {failed("memory_limit", "memory"), runtime.Limits{MemoryBytes: 4}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "raise limits.memory in agent.yaml if it needs that much"},
		"processes at the operator's bound": {failed("pids_limit", "pids"), runtime.Limits{PIDs: 6}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "it has all that policy.pids allows, which the operator can raise"},
		"output at the operator's bound":    {failed("output_limit", "output"), runtime.Limits{OutputBytes: 7}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "it has all that policy.output allows, which the operator can raise"},
		"a bound of no rule":                {failed("pids_limit", "pids"), runtime.Limits{PIDs: 6}, unit.Policy{Bounds: unit.Bounds{Limits: full}}, "raise limits.pids in agent.yaml if it needs that much"},
		"its time, at the bound":            {*TimedOut(nil, time.Minute).Failure, runtime.Limits{Timeout: time.Minute}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "it has all that policy.timeout allows, which the operator can raise"},
		"its time, below it":                {*TimedOut(nil, time.Second).Failure, runtime.Limits{Timeout: time.Second}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, moreTime},
		"its caller's time":                 {*Stopped(nil, ErrDeadline).Failure, runtime.Limits{Timeout: time.Minute}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "give the caller more"},
		"no limit at all":                   {api.RunError{Kind: "capsule_error", Hint: "look into the log"}, runtime.Limits{}, unit.Policy{}, "look into the log"},
	} {
		r := runIn(api.Running)
		r.Unit, r.Limits = &unit.Unit{Name: "u", Policy: c.policy}, c.limits
		r.LedBy(&fakeHost{}, nil)
		if err := r.End(Failed(api.CapsuleError, 1, &c.failure)); err != nil || !strings.HasPrefix(r.Record.Error.Hint, c.want) {
			t.Errorf("%s: %q, %v", name, r.Record.Error.Hint, err)
		}
	}
}

func TestTheLimitsInForce(t *testing.T) {
	asks := capsule.Limits{Timeout: 10 * time.Second, MemoryBytes: 10, CPUs: 1, PIDs: 10}
	fallback := runtime.Limits{Timeout: time.Minute, MemoryBytes: 99, CPUs: 9, PIDs: 99, OutputBytes: 99, OutputFiles: 99, LogBytes: 99}
	for name, c := range map[string]struct {
		asked  time.Duration
		bounds capsule.Limits
		want   runtime.Limits
	}{
		"the unit's, else the fallback":  {0, capsule.Limits{}, runtime.Limits{Timeout: 10 * time.Second, MemoryBytes: 10, CPUs: 1, PIDs: 10, OutputBytes: 99, OutputFiles: 99, LogBytes: 99}},
		"the request's time before it":   {time.Hour, capsule.Limits{}, runtime.Limits{Timeout: time.Hour, MemoryBytes: 10, CPUs: 1, PIDs: 10, OutputBytes: 99, OutputFiles: 99, LogBytes: 99}},
		"but none beyond the bounds":     {time.Hour, capsule.Limits{Timeout: 20 * time.Second, MemoryBytes: 5}, runtime.Limits{Timeout: 20 * time.Second, MemoryBytes: 5, CPUs: 1, PIDs: 10, OutputBytes: 99, OutputFiles: 99, LogBytes: 99}},
		"and the fallback is bounded so": {0, capsule.Limits{OutputBytes: 7, OutputFiles: 8, LogBytes: 9}, runtime.Limits{Timeout: 10 * time.Second, MemoryBytes: 10, CPUs: 1, PIDs: 10, OutputBytes: 7, OutputFiles: 8, LogBytes: 9}},
	} {
		req := Request{Unit: &unit.Unit{Policy: unit.Policy{Limits: asks, Bounds: unit.Bounds{Limits: c.bounds}}}, Timeout: c.asked}
		if diff := cmp.Diff(c.want, req.Limits(fallback)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
