package httpwire

import (
	"fmt"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Encode returns a value as one line of JSON with its line end. HTML in strings stays as
// it is.
func Encode(v any) ([]byte, error) {
	raw, err := strictjson.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return append(raw, '\n'), nil
}
