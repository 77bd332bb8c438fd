package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
)

// Submission is what POST /v1/runs takes as JSON (schemas/openapi.json, "Submission"). As a
// form it has the same fields, and the caller's files beside them.
type Submission struct {
	Unit     string            `json:"unit,omitempty"`     // "" with a session
	Session  string            `json:"session,omitempty"`  // of the unit: the run is its next turn
	Input    json.RawMessage   `json:"input"`              // a JSON object
	Timeout  string            `json:"timeout,omitempty"`  // a duration such as "30s"; "": the unit's, or the server's
	Metadata map[string]string `json:"metadata,omitempty"` // what the run is about: see CheckMetadata
	// Unattended says that nobody answers what the run asks: its questions are denied at once.
	Unattended bool `json:"unattended,omitempty"`
	// Context is the conversation or group that the run is counted to: see CheckContext.
	Context string `json:"context,omitempty"`
	// Env and Dir are of the program of a wrapped agent: variables that its agent.caller_env names,
	// and a directory below that in which it starts.
	Env map[string]string `json:"env,omitempty"`
	Dir string            `json:"dir,omitempty"`
}

// Rerun says where a flow or an agent is to begin again; of another unit, and with the zero value, all is
// done again.
type Rerun struct {
	// From is the address of a step, such as review#2, or RerunFailed: the steps before it are
	// taken over. Of an agent it is a turn, such as turn:3. "": from the beginning.
	From string `json:"from,omitempty"`
	// Set is an object of what the state has before that step, in place of what it had.
	Set json.RawMessage `json:"set,omitempty"`
}

// RerunFailed as Rerun.From runs what has failed, or is missing, and what comes after it.
const RerunFailed = "failed"

// The bounds of metadata, which says what a run is about: words to find it by, no payload.
const (
	MaxMetadata      = 16  // entries of one run
	MaxMetadataValue = 200 // bytes
)

var metadataKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`) })

// CheckMetadata returns an Input fault unless metadata keeps its bounds. It tells keys by
// their rule or their place among the keys, and never a value.
func CheckMetadata(metadata map[string]string) error {
	if len(metadata) > MaxMetadata {
		return fault.New(fault.Input, "there are %d entries of metadata; %d are allowed", len(metadata), MaxMetadata)
	}
	var found []fault.Finding
	for i, key := range slices.Sorted(maps.Keys(metadata)) {
		switch {
		case !metadataKey().MatchString(key):
			found = append(found, fault.Finding{
				Pointer: "/metadata", Message: fmt.Sprintf("key %d of its sorted keys is not valid", i+1),
				Hint: "a key is 1 to 40 lower-case letters, digits and _, and begins with a letter",
			})
		case !IsMetadataValue(metadata[key]):
			found = append(found, fault.Finding{Pointer: "/metadata/" + key, Message: MetadataValueRule})
		}
	}
	if len(found) > 0 {
		return fault.New(fault.Input, "the metadata is not valid").WithFindings(found)
	}
	return nil
}

// MetadataValueRule is what a value that is none doesn't keep.
const MetadataValueRule = "it is not 1 to 200 bytes of UTF-8 without control characters"

// IsMetadataValue reports whether a text can be a value of metadata.
func IsMetadataValue(text string) bool {
	return text != "" && len(text) <= MaxMetadataValue && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, unicode.IsControl)
}

// MaxContext bounds the context of a run, in bytes.
const MaxContext = 256

// CheckContext returns an Input fault unless a text can be the context of a run: at most 256 bytes
// of UTF-8 without control characters; "" is none.
func CheckContext(text string) error {
	if len(text) <= MaxContext && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl) {
		return nil
	}
	return fault.New(fault.Input, "the context is not at most %d bytes of UTF-8 without control characters",
		MaxContext).
		WithHint("give an id of the conversation or group that the run belongs to")
}
