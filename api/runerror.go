package api

import "github.com/agent-on-demand/aod/api/fault"

// Category says whether trying again makes sense (specification "Agent Wrapper",
// ErrorCategory).
type Category string

// The categories.
const (
	CategoryTransient Category = "Transient"
	CategoryPermanent Category = "Permanent"
	CategoryAgent     Category = "AgentError"
	CategorySystem    Category = "SystemError"
)

// RunError is what went wrong in a run, for a person and for a program.
type RunError struct {
	Category Category        `json:"category"`
	Kind     string          `json:"kind"`           // an Outcome, a limit ("pids_limit") or a fault's kind
	Type     string          `json:"type,omitempty"` // the exception's, as the capsule told it
	Step     string          `json:"step,omitempty"` // the address of a flow's node that failed
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}

// Values of RunError.Kind that are no Outcome, no limit and no kind of a fault.
const (
	KindQueueTimeout      = "queue_timeout"    // the run waited longer for a slot than it may
	KindMemoryLimit       = "memory_limit"     // killed at its memory limit
	KindStoppedOutside    = "stopped_outside"  // somebody else ended the container
	KindDiskFull          = "disk_full"        // the host's disk was full, or almost, and the run had kept its limits
	KindRemoteRefused     = "remote_refused"   // the agent elsewhere doesn't take the request
	KindRemoteBusy        = "remote_busy"      // it does, later
	KindRemoteUntrusted   = "remote_untrusted" // TLS says that it may be somebody else
	KindSecretUnavailable = "secret_unavailable"
)

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
