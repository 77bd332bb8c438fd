package agent

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/agent-on-demand/aod/internal/terminal"
)

// mend makes JSON of what programs write in its place: a byte order mark, a terminal's colours and
// other control characters around values are left out, those in strings are escaped, as is a backslash
// that escapes nothing, NaN and Infinity become null, and bytes that aren't UTF-8 become U+FFFD. What else is
// wrong stays.
func mend(text []byte) []byte {
	text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	mended := make([]byte, 0, len(text))
	quoted := false
	for len(text) > 0 {
		n, as := oddity(text, quoted)
		if len(mended) == 0 && n == 0 && !bytes.ContainsAny(text[:1], "{[\" \t\r\n") {
			return nil // no object, array or text begins here
		}
		if n == 0 {
			n = 1
			for n < len(text) && isPlain(text[n-1]) && isPlain(text[n]) {
				n++
			}
			as = text[:n]
			if quoted && text[0] == '\\' && len(text) > 1 {
				n, as = escape(text)
			}
			quoted = quoted != (text[0] == '"')
		}
		mended, text = append(mended, as...), text[n:]
	}
	return mended
}

// isPlain reports whether a byte begins nothing that ends a text or may be odd.
func isPlain(c byte) bool {
	return c >= 0x20 && c < 0x80 && !bytes.ContainsRune([]byte(`"\NI-`), rune(c))
}

// escape returns how many bytes of a string, from a backslash on, belong together, and what stands for them.
func escape(text []byte) (n int, as []byte) {
	known := bytes.IndexByte([]byte(`"\/bfnrtu`), text[1]) >= 0
	if text[1] == 'u' {
		_, err := hex.DecodeString(string(text[2:min(6, len(text))]))
		known = err == nil && len(text) >= 6
	}
	if !known {
		return 1, []byte(`\\`)
	}
	return 2, text[:2]
}

// nonNumbers are what JSON has no number for.
var nonNumbers = [][]byte{[]byte("NaN"), []byte("Infinity"), []byte("-Infinity"), []byte("-NaN")}

// oddity returns how many bytes of a text aren't JSON, and what stands for them.
func oddity(text []byte, quoted bool) (n int, as []byte) {
	switch c := text[0]; {
	case quoted && c < 0x20:
		return 1, fmt.Appendf(nil, "\\u%04x", c)
	case quoted:
		return 0, nil
	case c == 0x1b:
		return terminal.Sequence(text), nil
	case c < 0x20 && c != '\t' && c != '\n' && c != '\r':
		return 1, nil
	case bytes.HasPrefix(text, []byte("\uFEFF")):
		return len("\uFEFF"), nil
	}
	for _, word := range nonNumbers {
		if bytes.HasPrefix(text, word) {
			return len(word), []byte("null")
		}
	}
	return 0, nil
}
