package orchestrator

import (
	"encoding/json"
	"fmt"
	"io"
)

// hashMetadata adds metadata to a submission's fingerprint. Empty metadata adds nothing, so
// that the fingerprints of stored submissions without metadata stay valid.
func hashMetadata(sum io.Writer, metadata map[string]string) {
	if len(metadata) == 0 {
		return
	}
	raw, _ := json.Marshal(metadata) // sorted, and texts alone
	_, _ = fmt.Fprintf(sum, "\nmetadata %s", raw)
}
