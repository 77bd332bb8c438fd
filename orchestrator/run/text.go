package run

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-on-demand/aod/fault"
)

// What is shown of the texts of somebody else, in bytes.
const (
	MaxMessage = 4 << 10 // of what a unit says of its own failure
	MaxType    = 200     // of a name
)

// Bounded cuts a text of somebody else's at so many bytes, and shows that it did.
func Bounded(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// Undecodable says what was wrong with an output that is no JSON object.
func Undecodable(err error) fault.Finding {
	public := fault.Public(err)
	message := strings.TrimPrefix(public.Msg, "the payload ") // the place says what it is
	return fault.Finding{Message: message, Hint: public.Hint}
}

// StorageFault is the fault of a data directory that can't be written.
func StorageFault(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the data directory can't be written").
		WithHint("is the disk full? `aod prune` removes old runs")
}

// Cancelled is the cause of the end of a run that somebody asked to end, for a reason of
// his, which may be "".
func Cancelled(reason string) error {
	if reason == "" {
		return context.Canceled
	}
	return errors.New(reason)
}
