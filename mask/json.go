package mask

import (
	"bytes"
	"encoding/json"
	"errors"
)

// JSON returns a document with its strings masked; those whose name says that they are secret
// wholly. All else of it stays byte for byte. What is no JSON is an error.
func (m *Masker) JSON(document []byte) ([]byte, error) {
	if !json.Valid(document) {
		return nil, errors.New("mask: the document is no JSON")
	}
	var out bytes.Buffer
	name := ""
	for i := 0; i < len(document); {
		if document[i] != '"' {
			if c := document[i]; c == ',' || c == '{' || c == '[' || c == '}' || c == ']' {
				name = ""
			}
			out.WriteByte(document[i])
			i++
			continue
		}
		end := stringEnd(document, i)
		literal := document[i:end]
		i = end
		if isName(document[end:]) {
			_ = json.Unmarshal(literal, &name) // it is valid
			out.Write(literal)
			continue
		}
		out.Write(m.literal(literal, name))
	}
	return out.Bytes(), nil
}

// stringEnd returns where a string literal ends.
func stringEnd(document []byte, i int) int {
	for i++; document[i] != '"'; i++ {
		if document[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// isName reports whether a colon follows.
func isName(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// literal masks a string literal that stands under a name.
func (m *Masker) literal(raw []byte, name string) []byte {
	var text string
	_ = json.Unmarshal(raw, &text) // it is valid
	shown := m.Text(text)
	if !m.only && IsSecretName(name) && text != "" {
		shown = string(masked([]byte(text)))
	}
	if shown == text {
		return raw
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(shown) // texts can't fail
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
