package workspace

import (
	"fmt"
	"strings"
)

// escapes are the characters that git writes with a letter in quoted names.
var escapes = map[byte]byte{
	'\a': 'a', '\b': 'b', '\t': 't', '\n': 'n', '\v': 'v', '\f': 'f', '\r': 'r', '"': '"',
	'\\': '\\',
}

// quoteName returns a name as git writes it in a patch: in quotes if a character in it needs
// that.
func quoteName(name string) string {
	var b strings.Builder
	quoted := false
	for i := range len(name) {
		c := name[i]
		letter, escaped := escapes[c]
		switch {
		case escaped:
			b.WriteByte('\\')
			b.WriteByte(letter)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
			continue
		}
		quoted = true
	}
	if quoted {
		return `"` + b.String() + `"`
	}
	return name
}
