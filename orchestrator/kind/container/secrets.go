package container

import (
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// getsSecrets reports whether a unit's program gets secrets when it starts.
func getsSecrets(u *unit.Unit) bool { return len(u.Policy.Secrets) > 0 }

// unreadable is the error of a run whose secret can't be read.
type unreadable struct{ err error }

func (u *unreadable) Error() string { return u.err.Error() }

func (u *unreadable) Unwrap() error { return u.err }

// result is the end of the run.
func (u *unreadable) result() run.Result {
	return run.Failed(api.SystemError, exitContract, run.NoSecret(u.err))
}

// secretEnv reads the secrets of a run's program, "NAME=value", and has their values hidden in
// all that is told of the run.
func (m *machine) secretEnv(r *run.Run) ([]string, error) {
	values, err := r.ReadSecrets(m.opts.Secret)
	if err != nil {
		return nil, &unreadable{err}
	}
	var env []string
	for _, variable := range slices.Sorted(maps.Keys(r.Unit.Policy.Secrets)) {
		env = append(env, variable+"="+string(values[r.Unit.Policy.Secrets[variable]]))
	}
	return env, nil
}
