package run

import "github.com/agent-on-demand/aod/handoff"

// ChildRuns are the runs that one attempt asks for. A kind offers them to its program by the
// capsule API, or asks for them itself.
type ChildRuns interface {
	handoff.Runs
	// Keys are those of the calls that an earlier process took from the same attempt.
	Keys() []string
	// CancelAll ends the calls that go on. It doesn't wait for that.
	CancelAll(cause error)
	// End is called when the attempt is over: after it nothing of its calls goes on, unless
	// they outlive this process as the caller does.
	End(cause error)
}
