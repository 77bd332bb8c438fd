package runcmd

import (
	"testing"

	"github.com/agent-on-demand/aod/api"
)

func TestExitCodes(t *testing.T) {
	code := func(n int) *int { return &n }
	cases := []struct {
		outcome api.Outcome
		code    *int
		want    int
	}{
		{api.Success, code(0), 0},
		{api.CapsuleError, code(7), 7},
		{api.OutOfMemory, code(137), 137},
		{api.ContractViolation, code(1), 1},
		{api.TimedOut, code(143), 124},
		{api.WasCancelled, nil, 130},
		{api.StartFailed, code(127), 127},
		{api.SystemError, nil, 125},
	}
	for _, c := range cases {
		if got := ExitCode(api.Record{Outcome: c.outcome, ExitCode: c.code}); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.outcome, got, c.want)
		}
	}
}
