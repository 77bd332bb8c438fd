package handoff

import (
	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// Artifact is a part of what a run gives, told while it goes on.
type Artifact struct {
	Key  string            // the run's own for this part; "": none
	Part api.ArtifactEvent // of its file there is the name alone
	// Open opens its file as it is then, which whoever opened it closes. The error is a fault. nil:
	// it has none.
	Open func() (File, error)
}

// openOutput opens a file that the caller has written to /io/output.
func (b *Broker) openOutput(name string) (File, error) {
	switch {
	case b.caller.Transfer != nil:
		return File{}, fault.New(fault.Unsupported,
			"files can't be shown before the end of a run whose engine is on another machine").
			WithHint("leave it in %s: it is a file of the result; or send its text", contract.StageOutput)
	case b.caller.Output == "":
		return File{}, fault.New(fault.Unsupported, "this run has no directory %s", contract.StageOutput).
			WithHint("send text or data")
	}
	root, err := openDir(b.caller.Output)
	if err != nil {
		return File{}, fault.Wrap(fault.Input, withoutName(err), "the directory %s is not as it was made",
			contract.StageOutput).
			WithHint("leave the directories of /io where they are")
	}
	defer func() { _ = root.Close() }() // holds no data
	return openFile(root, name, name, stage{contract.StageOutput, "write", "first", "artifact"})
}
