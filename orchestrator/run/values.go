package run

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// DecodeObject reads an object that a program or a person gave: whole numbers are int64, and
// nothing in it is taken for a file.
func DecodeObject(raw json.RawMessage) (map[string]any, error) {
	payload, err := contract.Decode(raw, int64(max(len(raw), 1)))
	if err != nil {
		return nil, err
	}
	value, err := flow.Values(payload.Values())
	object, _ := value.(map[string]any)
	return object, err
}

// FlowInputFile is the input of a flow in its StateDir, where it has files, as flow.Encode
// writes it.
const FlowInputFile = "input.json"

// FlowInput returns the input of a flow that is kept in its StateDir; nil: there is none.
func FlowInput(stateDir string) (map[string]any, error) {
	raw, err := os.ReadFile(filepath.Join(stateDir, FlowInputFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, StorageFault(err)
	}
	return DecodeShown(raw)
}

// DecodeShown reads an object of values and files of a flow, as flow.Encode writes it.
func DecodeShown(raw []byte) (map[string]any, error) {
	value, err := flow.Decode(raw)
	object, _ := value.(map[string]any)
	return object, err
}

// FilesOf returns the files in such an object, each under a name of its own.
func FilesOf(object map[string]any) ([]api.File, error) {
	names := flow.Names{Whole: true}
	if _, err := names.Plain(object); err != nil {
		return nil, err
	}
	files := make([]api.File, 0, len(names.Files()))
	for _, in := range names.Files() {
		files = append(files, api.File{Name: names.Of(in), SizeBytes: in.SizeBytes, SHA256: in.SHA256})
	}
	return files, nil
}

// OpenOfState opens a file that is kept in a StateDir for reading. One that isn't there is a NotFound fault.
func OpenOfState(stateDir string, file api.File) (*os.File, error) {
	content, info, err := safefs.OpenNamed(filepath.Join(stateDir, file.SHA256))
	if err == nil && info.Size() == file.SizeBytes {
		return content, nil
	}
	if content != nil {
		_ = content.Close() // read only
	}
	return nil, fault.Wrap(fault.NotFound, err, "the file of the state is gone")
}
