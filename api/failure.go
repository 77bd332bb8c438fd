package api

import "github.com/agent-on-demand/aod/fault"

// FaultKind returns the kind of fault that a run without a result is for who asked for it.
// It reports false where the unit failed though it was asked well.
func (r Record) FaultKind() (fault.Kind, bool) {
	kind, isFault := fault.KindNamed(r.Error.Kind)
	switch {
	case isFault:
		return kind, true
	case r.Outcome == TimedOut:
		return fault.Deadline, true
	case r.Error.Kind == KindQueueTimeout:
		return fault.Unavailable, true
	}
	return fault.Internal, false
}
