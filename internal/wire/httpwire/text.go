package httpwire

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// toText replaces what is not UTF-8 as the UTF-8 decoder of the Encoding Standard does:
// one U+FFFD for each longest beginning of a character that breaks off. Where there is
// nothing to replace it returns what it was given.
func toText(raw []byte) []byte {
	if utf8.Valid(raw) {
		return raw
	}
	text := make([]byte, 0, len(raw)+8)
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError && size == 1 {
			size = brokenPrefix(raw)
		}
		text = utf8.AppendRune(text, r)
		raw = raw[size:]
	}
	return text
}

// brokenPrefix returns how many bytes at the start of raw, which isn't a character, could
// have become one.
func brokenPrefix(raw []byte) int {
	low, high, length := byte(0x80), byte(0xbf), 1
	switch c := raw[0]; {
	case c >= 0xc2 && c <= 0xdf:
		length = 2
	case c >= 0xe0 && c <= 0xef:
		length = 3
	case c >= 0xf0 && c <= 0xf4:
		length = 4
	}
	switch raw[0] { // no overlong forms, no surrogates, nothing above U+10FFFF
	case 0xe0:
		low = 0xa0
	case 0xed:
		high = 0x9f
	case 0xf0:
		low = 0x90
	case 0xf4:
		high = 0x8f
	}
	n := 1
	for n < min(length, len(raw)) && raw[n] >= low && raw[n] <= high {
		low, high = 0x80, 0xbf
		n++
	}
	return n
}

// EscapePath is a name with slashes as a part of an address's path.
func EscapePath(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}
