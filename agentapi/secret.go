package agentapi

import (
	"log/slog"
	"strings"

	"github.com/agent-on-demand/aod/fault"
)

// Secret is a text that only the agent may see: printed, logged or written as JSON it is
// "[secret]".
type Secret string

const hidden = "[secret]"

func (s Secret) String() string { return hidden }

// GoString is for %#v.
func (s Secret) GoString() string { return hidden }

// LogValue is for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText is for JSON and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// check refuses characters that could end the header.
func (s Secret) check() error {
	if strings.ContainsFunc(string(s), func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return fault.New(fault.Input, "the agent's token holds characters that no token has").
			WithHint("a token is one line of visible ASCII")
	}
	return nil
}
