package api

import "github.com/agent-on-demand/aod/fault"

// CheckScheduleName returns nil for a string that can be a schedule's name: one that could be a
// unit's, see CheckUnitName. Otherwise it returns an Input fault.
func CheckScheduleName(name string) error {
	if len(name) <= maxName && nameRule.MatchString(name) {
		return nil
	}
	return fault.New(fault.Input, "%s is no name of a schedule", fault.Quote(name)).
		WithHint("use lower-case letters and digits, joined by single '.', '_' or '-', at most %d", maxName)
}
