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
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Of returns the key of somebody's submission, with a fingerprint of everything that it asks for. Others may use
// the same key for something else.
func Of(owner access.Owner, sub spool.Submission) (store.Key, error) {
	if sub.Resend != "" {
		return ofSubmission(owner, sub)
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
	return store.Key{Value: ofClient(owner, sub.Key), Fingerprint: hex.EncodeToString(sum.Sum(nil))}, nil
}

const (
	clientPrefix = "client/"  // keeps the keys of clients apart from those of runs, see childRuns
	ownedPrefix  = "client@/" // and those of a token from those of others
)

// ofClient is a client's key among those of all.
func ofClient(owner access.Owner, key string) string {
	switch {
	case key == "":
		return ""
	case Scope(owner) == "":
		return clientPrefix + key
	}
	return ownedPrefix + Scope(owner) + "/" + key
}

// Scope tells owners apart in keys: "" of what is the server's own.
func Scope(owner access.Owner) string {
	if owner.By == "" {
		return TeamScope(owner.Team)
	}
	return cmp.Or(owner.Team, access.DefaultTeam) + ":" + owner.By
}

// TeamScope tells teams apart in keys: "" of access.DefaultTeam.
func TeamScope(team string) string {
	if team == "" || team == access.DefaultTeam {
		return ""
	}
	return team + ":"
}

// BeforeTeams returns the key that a program of before version 12 of the store has stored for what a key is of;
// "": it has stored it under the same.
func BeforeTeams(key string) string {
	if rest, is := strings.CutPrefix(key, ownedPrefix); is {
		_, sent, _ := strings.Cut(rest, "/")
		return clientPrefix + sent
	}
	if at := strings.LastIndexByte(key, '@'); at >= 0 && strings.HasPrefix(key, resendPrefix) {
		return key[:at]
	}
	return ""
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

// OfRerun returns the key of somebody's rerun of a run, with a fingerprint of everything that it asks for.
func OfRerun(owner access.Owner, id, key string, from api.Rerun) store.Key {
	return store.Key{Value: ofClient(owner, key), Fingerprint: rerunFingerprint(id, from)}
}

func rerunFingerprint(id string, from api.Rerun) string {
	if from.From == "" {
		return "rerun of " + id
	}
	sum := sha256.Sum256(from.Set)
	return "rerun of " + id + " from " + from.From + " " + hex.EncodeToString(sum[:])
}
