package preview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/internal/terminal"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	maxIndented = 1 << 20
	maxLine     = 10_000 // characters
)

// document is the preview of JSON, or of its text where it can't be read.
func document(text, named string) Preview {
	p := Preview{Kind: Text, Text: text}
	switch raw := []byte(text); {
	case !json.Valid(raw) && named != httpwire.TypeJSON: // a text that begins with a bracket
	case !json.Valid(raw):
		p.Note = "it isn't valid JSON"
	case indentedSize(raw) > maxIndented:
		p.Kind, p.Note = JSON, "not indented: it would be too long"
	default:
		p.Kind, p.Text = JSON, Indent(bytes.TrimSpace(raw))
	}
	return p
}

// Indent returns JSON with its lines: as it is where they would take more than 1 MiB, and "" of what isn't JSON.
func Indent(raw []byte) string {
	switch {
	case !json.Valid(raw):
		return ""
	case indentedSize(raw) > maxIndented:
		return string(raw)
	}
	var text bytes.Buffer
	if json.Indent(&text, raw, "", "  ") != nil {
		return ""
	}
	return text.String()
}

// indentedSize is at least as many bytes as valid JSON takes when it is indented: by its depth, each byte can become
// thousands.
func indentedSize(raw []byte) int {
	size, depth, quoted := len(raw), 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			depth++
			size += 1 + 2*depth
		case c == ',':
			size += 1 + 2*depth
		case c == '}', c == ']':
			depth--
			size += 1 + 2*depth
		case c == ':':
			size++
		}
	}
	return size
}

// Clean returns what is shown of a line of a log: without escape sequences, other control characters than tabs and
// those that change the direction of text, and with its end alone where its writer went back to its start. Of a long
// line its beginning is shown, and how much is left out.
func Clean(line string) string {
	line = terminal.Settled(line)
	var shown strings.Builder
	for characters := 0; line != ""; {
		if n := terminal.Sequence(line); n > 0 {
			line = line[n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(line)
		if r == '\t' || !terminal.Obeys(r) {
			if characters++; characters > maxLine {
				fmt.Fprintf(&shown, "… (and %d bytes more)", len(line))
				break
			}
			shown.WriteRune(r)
		}
		line = line[n:]
	}
	return shown.String()
}
