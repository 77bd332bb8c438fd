package run

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
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
	value, err := flow.Decode(raw)
	object, _ := value.(map[string]any)
	return object, err
}
