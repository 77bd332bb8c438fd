package httpwire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode returns a value as one line of JSON with its line end. HTML in strings stays as
// it is.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return b.Bytes(), nil
}
