package container

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// getsSecrets reports whether a unit's program gets secrets when it starts.
func getsSecrets(u *unit.Unit) bool { return len(u.Policy.Secrets) > 0 }

// takesSecrets refuses a unit whose program can't be told its secrets when it starts: they would
// have to lie where others see them.
func (c *Containers) takesSecrets(u *unit.Unit) error {
	switch {
	case !getsSecrets(u):
		return nil
	case runtime.IsRemote(c.engine):
		return fault.New(fault.Unsupported,
			"%q gets secrets, which an engine elsewhere can't be given without keeping them", u.Name).
			WithHint("use an engine on this machine, or an upstream, which keeps the key outside")
	case u.Policy.Isolation != "":
		return fault.New(fault.Unsupported, "%q gets secrets, which can't be given under the isolation runtime %s",
			u.Name, u.Policy.Isolation).
			WithHint("use an upstream, which keeps the key outside")
	}
	return nil
}

// unreadable is the error of a run whose secret can't be read.
type unreadable struct{ err error }

func (u *unreadable) Error() string { return u.err.Error() }

func (u *unreadable) Unwrap() error { return u.err }

// result is the end of the run.
func (u *unreadable) result() run.Result {
	public := fault.Public(u.err)
	return run.Failed(api.SystemError, exitContract, &api.RunError{
		Category: api.CategoryPermanent, Kind: api.KindSecretUnavailable, Message: public.Msg, Hint: public.Hint,
	})
}

// secretEnv reads the secrets of the run's program, "NAME=value", and has their values hidden in
// all that is told of the run.
func (x *execution) secretEnv() ([]string, error) {
	var env, values []string
	for _, variable := range slices.Sorted(maps.Keys(x.Unit.Policy.Secrets)) {
		value, err := x.containers.opts.Secret(x.Unit.Policy.Secrets[variable])
		if err != nil {
			return nil, &unreadable{err}
		}
		env, values = append(env, variable+"="+string(value)), append(values, string(value))
	}
	x.Hide(values)
	return env, nil
}

// begin has the program of a container that was just started begin with its secrets, which the
// engine never hears of.
func (x *execution) begin(ctx context.Context, s *runtime.Sandbox, spec runtime.Spec, secrets []string) error {
	err := s.Begin(ctx, spec, secrets)
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), runtime.ErrDetach):
		s.Release()
		return errors.Join(runtime.ErrDetach, err)
	}
	return errors.Join(err, s.Remove(ctx))
}
