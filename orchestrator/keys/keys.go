// Package keys has the keys by which what is asked for or told again is known: of submissions, of reruns, and of what
// is sent again because its answer was lost. They are stored, and so are their fingerprints: one that changes refuses
// what a client sends again.
//
// It must not know how runs are led, or HTTP.
//
// Its Go API may change with every release: see docs/stability.md.
package keys

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Of returns the submission's key with a fingerprint of everything that it asks for.
func Of(sub spool.Submission) (store.Key, error) {
	if sub.Resend != "" {
		return ofSubmission(sub)
	}
	if sub.Key == "" {
		return store.Key{}, nil
	}
	var input bytes.Buffer
	if err := json.Compact(&input, inputOf(sub)); err != nil {
		return store.Key{}, fault.Wrap(fault.Input, err, "the input is not JSON")
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %q %v\n%s", sub.Unit, input.Bytes(), sub.Timeout, sub.Files.Digest())
	if sub.Within > 0 {
		_, _ = fmt.Fprintf(sum, "\n%v", sub.Within)
	}
	if sub.Unattended {
		_, _ = fmt.Fprint(sum, "\nunattended")
	}
	if sub.Session != "" {
		_, _ = fmt.Fprintf(sum, "\nsession %q", sub.Session)
	}
	if !sub.Start.IsZero() {
		start, err := json.Marshal(sub.Start)
		if err != nil {
			return store.Key{}, err
		}
		_, _ = fmt.Fprintf(sum, "\nstart %s", start)
	}
	if sub.Context != "" {
		_, _ = fmt.Fprintf(sum, "\ncontext %q", sub.Context)
	}
	if sub.Message != nil {
		_, _ = fmt.Fprintf(sum, "\nmessage %s", run.DigestOfMessage(*sub.Message))
	}
	hashMetadata(sum, sub.Metadata)
	return store.Key{Value: ofClient(sub.Key), Fingerprint: hex.EncodeToString(sum.Sum(nil))}, nil
}

// ofClient keeps the keys of clients apart from those of runs, see childRuns.
func ofClient(key string) string {
	if key == "" {
		return ""
	}
	return "client/" + key
}

func inputOf(sub spool.Submission) json.RawMessage {
	if len(sub.Input) == 0 {
		return json.RawMessage("{}")
	}
	return sub.Input
}

// hashMetadata adds metadata to a submission's fingerprint. Empty metadata adds nothing, so
// that the fingerprints of stored submissions without metadata stay valid.
func hashMetadata(sum io.Writer, metadata map[string]string) {
	if len(metadata) == 0 {
		return
	}
	raw, _ := json.Marshal(metadata) // sorted, and texts alone
	_, _ = fmt.Fprintf(sum, "\nmetadata %s", raw)
}

// OfRerun returns the key of a rerun of a run, with a fingerprint of everything that it asks for.
func OfRerun(id, key string, from api.Rerun) store.Key {
	return store.Key{Value: ofClient(key), Fingerprint: rerunFingerprint(id, from)}
}

func rerunFingerprint(id string, from api.Rerun) string {
	if from.From == "" {
		return "rerun of " + id
	}
	sum := sha256.Sum256(from.Set)
	return "rerun of " + id + " from " + from.From + " " + hex.EncodeToString(sum[:])
}
