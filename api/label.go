package api

import (
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

var labelRule = lazyregexp.New(`^[a-z0-9]([a-z0-9._=-]{0,61}[a-z0-9])?$`)

// CheckLabel returns an Input fault for what can't be a label of a worker, nor what a unit needs of one.
func CheckLabel(label string) error {
	if labelRule().MatchString(label) {
		return nil
	}
	return fault.New(fault.Input, "%s is no label", fault.Quote(label)).
		WithHint("a label has up to 63 characters of a-z, 0-9, `.`, `_`, `=` and `-`, such as gpu or zone=b, and " +
			"begins and ends with a letter or a digit")
}
