package cassette

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Request is what a key is made of.
type Request struct {
	Dialect string
	Model   string // as it was asked for
	Stream  bool
	Body    []byte // checked JSON
}

// longContent is how many bytes of content a canonical body holds as they are; more is a
// digest.
const longContent = 1024

// canonical returns the body as a document, without what doesn't matter for the answer.
func (r Request) canonical() (any, error) {
	v, err := strictjson.Decode(r.Body)
	if err != nil {
		return nil, fmt.Errorf("canonical body: %w", err)
	}
	if object, ok := v.(map[string]any); ok {
		delete(object, "stream")
		delete(object, "stream_options")
		delete(object, "model") // it is beside the body
	}
	return digested("", v), nil
}

// digested has digests in the place of images and files.
func digested(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = digested(key, value)
		}
	case []any:
		for i, value := range v {
			v[i] = digested(name, value)
		}
	case string:
		if len(v) > longContent && (strings.HasPrefix(v, "data:") || name == "data") {
			sum := sha256.Sum256([]byte(v))
			return "sha256:" + hex.EncodeToString(sum[:])
		}
	}
	return v
}

// KeyOf returns the key of a request. The error says that its body isn't JSON.
func KeyOf(r Request) (string, error) {
	_, key, err := r.keyed()
	return key, err
}

func (r Request) keyed() (body any, key string, err error) {
	if body, err = r.canonical(); err != nil {
		return nil, "", err
	}
	raw, err := strictjson.Encode([]any{"models/1", r.Dialect, r.Model, r.Stream, body})
	if err != nil {
		return nil, "", fmt.Errorf("canonical body: %w", err)
	}
	sum := sha256.Sum256(raw)
	return body, hex.EncodeToString(sum[:]), nil
}
