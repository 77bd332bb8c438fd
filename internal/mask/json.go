package mask

import (
	"bytes"
	"encoding/json"
	"errors"
)

// JSON returns a document with its strings masked, also those that are names; values whose name
// says that they are secret wholly. All else of it stays byte for byte. Of several names in an
// object that would be the same each gets a number. What isn't JSON is an error.
func (m *Masker) JSON(document []byte) ([]byte, error) {
	if !json.Valid(document) {
		return nil, errors.New("mask: the document isn't JSON")
	}
	var out bytes.Buffer
	names, name := m.names(document), ""
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
		shown, isKey := names[i]
		i = end
		switch {
		case isKey:
			name = unquoted(literal)
			out.Write(quoted(shown))
		case isName(document[end:]):
			name = unquoted(literal)
			out.Write(literal)
		default:
			out.Write(m.literal(literal, name))
		}
	}
	return out.Bytes(), nil
}

// names returns what is shown for the names that are masked, by where they begin.
func (m *Masker) names(document []byte) map[int]string {
	shown := map[int]string{}
	var open []object // and lists, which have no names
	for i := 0; i < len(document); i++ {
		switch document[i] {
		case '{', '[':
			open = append(open, object{})
		case '}', ']':
			open[len(open)-1].number(shown)
			open = open[:len(open)-1]
		case '"':
			end := stringEnd(document, i)
			if isName(document[end:]) {
				open[len(open)-1].add(m, i, unquoted(document[i:end]), shown)
			}
			i = end - 1
		}
	}
	return shown
}

// object has the names of an object: those that stay, and where those are that are masked.
type object struct {
	kept   []string
	masked []int
}

func (o *object) add(m *Masker, at int, name string, shown map[int]string) {
	masked := m.Text(name)
	if masked == name {
		o.kept = append(o.kept, name)
		return
	}
	shown[at] = masked
	o.masked = append(o.masked, at)
}

// number makes the names of the object that are masked different from all others.
func (o *object) number(shown map[int]string) {
	if len(o.masked) == 0 {
		return
	}
	var names Names
	for _, name := range o.kept {
		names.Keep(name)
	}
	for _, at := range o.masked {
		shown[at] = names.New(shown[at])
	}
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
	text := unquoted(raw)
	shown := m.Text(text)
	if !m.only && IsSecretName(name) && text != "" {
		shown = string(masked([]byte(text)))
	}
	if shown == text {
		return raw
	}
	return quoted(shown)
}

// unquoted is the text of a literal of a valid document.
func unquoted(literal []byte) (text string) {
	_ = json.Unmarshal(literal, &text) // it is valid
	return text
}

func quoted(text string) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // texts can't fail
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
