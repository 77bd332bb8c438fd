package api

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/fault"
)

// MaxContext bounds the context of a run, in bytes.
const MaxContext = 256

// CheckContext returns an Input fault unless a text can be the context of a run: at most 256 bytes
// of UTF-8 without control characters; "" is none.
func CheckContext(text string) error {
	if len(text) <= MaxContext && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl) {
		return nil
	}
	return fault.New(fault.Input, "the context is not at most %d bytes of UTF-8 without control characters", MaxContext).
		WithHint("give an id of the conversation or group that the run belongs to")
}
