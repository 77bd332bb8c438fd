package live

import (
	"encoding/json"
	"strings"
)

// Field is some of a text that is a field at the top of an object.
type Field struct{ Name, Text string }

// maxName is how long the name of a field may be, in bytes.
const maxName = 256

// Fields reads a JSON object that comes in pieces, and gives the texts at its top as they come. The zero one has read
// nothing. It isn't for several at once, and checks nothing: of what is no object nothing is to be relied on.
type Fields struct {
	depth  int
	inText bool
	isName bool // the text is a name; else it is a value
	names  bool // a name is to come
	escape []byte
	name   string
	text   strings.Builder // of a name, or of what the piece has of a value
}

// Next returns what a piece adds.
func (f *Fields) Next(piece string) (said []Field) {
	for i := range len(piece) {
		switch {
		case !f.inText:
			f.take(piece[i])
		case !f.takeText(piece[i]):
		case f.isName:
			f.name = f.text.String()
			f.text.Reset()
		default:
			said = f.flush(said)
		}
	}
	if f.inText && !f.isName {
		said = f.flush(said)
	}
	return said
}

// flush gives what there is of a value.
func (f *Fields) flush(said []Field) []Field {
	if f.text.Len() > 0 && f.depth == 1 {
		said = append(said, Field{f.name, f.text.String()})
	}
	f.text.Reset()
	return said
}

// take takes a byte outside of a text.
func (f *Fields) take(c byte) {
	switch c {
	case '"':
		f.inText, f.isName = true, f.depth == 1 && f.names
	case '{', '[':
		f.depth++
		f.names = f.depth == 1 && c == '{'
	case '}', ']':
		f.depth--
	case ',':
		f.names = f.depth == 1
	case ':':
		f.names = f.names && f.depth != 1
	}
}

// takeText takes a byte of a text, and reports whether it ends that.
func (f *Fields) takeText(c byte) (ended bool) {
	switch {
	case len(f.escape) == 6 && c != '\\': // half a character
		f.unescape()
		return f.takeText(c)
	case len(f.escape) > 0:
		if f.escape = append(f.escape, c); isWhole(f.escape) {
			f.unescape()
		}
	case c == '\\':
		f.escape = append(f.escape, c)
	case c == '"':
		f.inText = false
		return true
	case f.depth == 1 && (!f.isName || f.text.Len() < maxName):
		f.text.WriteByte(c)
	}
	return false
}

// isWhole reports whether an escape can be read: \n, \u00fc, or both halves of a character.
func isWhole(escape []byte) bool {
	switch len(escape) {
	case 2:
		return escape[1] != 'u'
	case 6:
		return !strings.ContainsRune("dD", rune(escape[2])) || !strings.ContainsRune("89abAB", rune(escape[3]))
	case 8:
		return escape[7] != 'u'
	case 12:
		return true
	}
	return false
}

func (f *Fields) unescape() {
	var text string
	_ = json.Unmarshal([]byte(`"`+string(f.escape)+`"`), &text) // what isn't one says nothing
	f.escape = f.escape[:0]
	if f.depth == 1 {
		f.text.WriteString(text)
	}
}
