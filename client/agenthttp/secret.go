package agenthttp

import (
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/secrets"
)

// Secret is a text that only the agent may see.
type Secret = secrets.Secret

// CheckToken refuses characters that could end the header.
func CheckToken(s Secret) error {
	if strings.ContainsFunc(string(s), func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return fault.New(fault.Input, "the agent's token holds characters that no token has").
			WithHint("a token is one line of visible ASCII")
	}
	return nil
}
