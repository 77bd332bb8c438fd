package remote

import (
	"errors"
	"os"
	"path"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// maxInputFiles bounds the files of an input, in bytes together: they go along in the message.
const maxInputFiles = 8 << 20

// messageOf is what the agent is asked. Its id is the run's.
func messageOf(r *run.Run) (a2apeer.Message, error) {
	values := r.Input.Payload.Values()
	files, err := inputParts(r, values)
	if err != nil {
		return a2apeer.Message{}, err
	}
	parts, err := a2apeer.PartsOf(values, len(files) == 0)
	if err != nil {
		return a2apeer.Message{}, fault.Wrap(fault.Input, err, "the input can't be written as JSON")
	}
	return a2apeer.Message{ID: r.ID, Parts: append(parts, files...)}, nil
}

// inputParts reads the files of the input, and takes their fields out of its values: the agent gets the files
// themselves.
func inputParts(r *run.Run, values map[string]any) (parts []a2apeer.Part, err error) {
	refs := r.Unit.Contract.Input.FileRefs(r.Input.Payload)
	if len(refs) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(r.InputDir())
	if err != nil {
		return nil, run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // read only
	left := int64(maxInputFiles)
	for _, ref := range refs {
		if ref.Err != nil {
			continue // the input would have been refused
		}
		content, err := readInput(root, ref.Name, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(content))
		parts = append(parts, a2apeer.FilePart(path.Base(ref.Name), content, run.FieldOf(ref.Pointer)))
		if top := strictjson.Path(ref.Pointer); len(top) == 1 || len(top) == 2 &&
			!strings.Contains(run.FieldOf(ref.Pointer), ".") {
			delete(values, top[0])
		}
	}
	return parts, nil
}

// readInput reads a file of the input.
func readInput(root *os.Root, name string, most int64) ([]byte, error) {
	content, err := safefs.ReadRegular(root, name, most)
	if errors.Is(err, safefs.ErrTooLarge) {
		return nil, tooMuchInput()
	}
	return content, run.StorageFault(err)
}

func tooMuchInput() error {
	return fault.New(fault.Input,
		"the files of the input have more than %s, which is what an agent of the A2A protocol is sent",
		quantity.SizeText(maxInputFiles)).
		WithHint("give it an address where it can get them")
}

// checkInputFiles refuses files that an agent of the A2A protocol is not sent.
func checkInputFiles(ready run.Input) error {
	var all int64
	for _, f := range ready.Files {
		info, err := os.Stat(f.Source)
		if err != nil {
			continue // who places the file says so
		}
		if all += info.Size(); all > maxInputFiles {
			return tooMuchInput()
		}
	}
	return nil
}
