package run

import (
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
)

// Event is something that happens in a live run. Exactly one of the fields from State to
// Artifact is set, but for Delay. Delay belongs to Attempt.
type Event struct {
	Run      string
	Unit     string
	Parent   string // the run that called it; "" for a root
	Step     string // of the flow that called it, by its address
	State    *api.Transition
	Build    *runtime.BuildEvent
	Log      *runtime.LogLine
	Attempt  *api.Attempt // that failed and is made again after Delay
	Delay    time.Duration
	Warning  string
	Progress *handoff.Progress
	Model    *api.ModelCall // that is over
	Upstream *api.UpstreamEvent
	Node     *api.NodeEvent // a step of a flow that was kept
	Question *api.QuestionEvent
	Agent    *api.AgentEvent // of a session's program
	Egress   *api.EgressEvent
	Message  *api.MessageEvent  // that was said to it
	Artifact *api.ArtifactEvent // a part of what it gives

	// With the State that a run ended in:
	Outcome string // the kind of its error; "" without one
	Files   int    // how many it gave
}
