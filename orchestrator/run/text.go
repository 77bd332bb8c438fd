package run

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// The bounds for foreign texts that AOD shows, in bytes.
const (
	MaxMessage = 4 << 10 // of what a unit says of its own failure
	MaxType    = 200     // of a name
)

// Bounded cuts a foreign text to at most limit bytes, and marks the cut.
func Bounded(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// Undecodable returns a finding for an output that isn't a JSON object.
func Undecodable(err error) fault.Finding {
	public := fault.Public(err)
	message := strings.TrimPrefix(public.Msg, "the payload ") // the place says what it is
	return fault.Finding{Message: message, Hint: public.Hint}
}

// StorageFault returns a fault for a data directory that can't be written; of nil it is nil.
func StorageFault(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "the data directory can't be written").
		WithHint("is the disk full? `aod prune` removes old runs")
}

// Cancelled returns the cause of the end of a cancelled run. The reason is the client's, and
// may be "".
func Cancelled(reason string) error {
	if reason == "" {
		return context.Canceled
	}
	return errors.New(reason)
}
