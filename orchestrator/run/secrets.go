package run

import (
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/secrets"
)

// ReadSecrets returns the secrets of the run's program by their names, and has their values hidden in all that is told
// of the run. Those of Run.Secrets aren't read again.
func (r *Run) ReadSecrets(
	read func(name string) (secrets.Secret, error),
) (byName map[string]secrets.Secret, err error) {
	byName = map[string]secrets.Secret{}
	var values []string
	for _, name := range slices.Sorted(maps.Values(r.Unit.Policy.Secrets)) {
		value, given := r.Secrets[name]
		if !given {
			if value, err = read(name); err != nil {
				return nil, err
			}
		}
		byName[name], values = value, append(values, string(value))
	}
	r.Hide(values)
	return byName, nil
}

// NoSecret is the failure of a run whose secret can't be read.
func NoSecret(err error) *api.RunError {
	public := fault.Public(err)
	return &api.RunError{
		Category: api.CategoryPermanent, Kind: api.KindSecretUnavailable, Message: public.Msg, Hint: public.Hint,
	}
}
