package registry

import "github.com/agent-on-demand/aod/fault"

// noUnit is the fault for a name that no unit has.
func (r *Registry) noUnit(name string, found []found) *fault.Error {
	names := r.uploads()
	for _, f := range found {
		names = append(names, f.name)
	}
	return fault.New(fault.NotFound, "there is no unit %s", fault.Quote(name)).
		WithHint("%s", fault.Suggest(name, names, "put its directory where the server looks for units, or upload it"))
}
