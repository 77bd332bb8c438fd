package handoff

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/safefs"
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
		return File{}, fault.New(fault.Unsupported, "files can't be shown before the end of a run whose engine is on another machine").
			WithHint("leave it in %s: it is a file of the result; or send its text", contract.StageOutput)
	case b.caller.Output == "":
		return File{}, fault.New(fault.Unsupported, "this run has no directory %s", contract.StageOutput).WithHint("send text or data")
	}
	root, err := openDir(b.caller.Output)
	if err != nil {
		return File{}, fault.Wrap(fault.Input, withoutName(err), "the directory %s is not as it was made", contract.StageOutput).
			WithHint("leave the directories of /io where they are")
	}
	defer func() { _ = root.Close() }() // holds no data
	f, info, err := safefs.OpenRegular(root, name)
	if err != nil {
		return File{}, unopenedOutput(name, err)
	}
	return File{Name: name, Open: f, Size: info.Size()}, nil
}

// unopenedOutput is the fault of a file of /io/output that can't be opened.
func unopenedOutput(name string, err error) error {
	var special *safefs.Irregular
	switch {
	case errors.As(err, &special):
		return fault.New(fault.Input, "names file %s, %s", quote(name), describe(special)).
			WithHint("write the content into a regular file in %s", contract.StageOutput)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fault.New(fault.Input, "names file %s, which is not in %s", quote(name), contract.StageOutput).
			WithHint("write the file there first")
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Input, "names file %s, which can't be read", quote(name)).
			WithHint("check its permissions and those of its directory")
	}
	return fault.Wrap(fault.Unavailable, withoutName(err), "a file of the artifact can't be opened").WithHint("try again later")
}
