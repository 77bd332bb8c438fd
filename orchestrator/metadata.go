package orchestrator

import (
	"encoding/json"
	"fmt"
	"io"
)

// hashMetadata makes metadata a part of what a key stands for. None is none: the keys of
// submissions without it are what they always were.
func hashMetadata(sum io.Writer, metadata map[string]string) {
	if len(metadata) == 0 {
		return
	}
	raw, _ := json.Marshal(metadata) // sorted, and texts alone
	_, _ = fmt.Fprintf(sum, "\nmetadata %s", raw)
}
