package flow

import "encoding/json"

// File is a file in a state, an input or an output. It goes on by reference: the host has its
// bytes, by their digest. No payload can hold one: Encode writes it so that no JSON that a
// program gives is taken for one.
type File struct {
	Name      string `json:"name"` // slash-separated, clean
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"` // hex
}

// fileKey marks a File in encoded values; a key of a program's that begins so is written with
// one more "$".
const fileKey = "$file"

// Encode writes a value of JSON values and Files.
func Encode(value any) (json.RawMessage, error) { return json.Marshal(escaped(value)) }

func escaped(value any) any {
	switch v := value.(type) {
	case File:
		type plain File
		return map[string]any{fileKey: plain(v)}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			out[escapedKey(key)] = escaped(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = escaped(item)
		}
		return out
	}
	return value
}

func escapedKey(key string) string { return key }
