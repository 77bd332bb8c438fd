// Package terminal knows what of a text a terminal obeys instead of showing it: control characters, escape sequences
// (ECMA-48), and characters that change the direction of text.
//
// It must not know whose text it is, or who shows it.
package terminal

import (
	"strings"
	"unicode"
)

const (
	bell   = 0x07
	escape = 0x1b
)

// Obeys reports whether a terminal, or whoever sets a text, obeys a character instead of showing it.
func Obeys(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// Visible is U+FFFD for what a terminal obeys, apart from line ends and tabs.
func Visible(r rune) rune {
	if r != '\n' && r != '\t' && Obeys(r) {
		return unicode.ReplacementChar
	}
	return r
}

// Plain has U+FFFD for what a terminal obeys, apart from line ends and tabs: a foreign text must not move the
// reader's cursor.
func Plain(text string) string { return strings.Map(Visible, text) }

// Settled returns the final text of a line whose writer went back to its start, as progress
// bars do.
func Settled(line string) string {
	line = strings.TrimRight(line, "\r")
	return line[strings.LastIndexByte(line, '\r')+1:]
}

// Sequence returns the length of the escape sequence at which a text begins, 0 if it begins at none. One that doesn't
// end is no longer than what can only be part of it: text behind it stays.
func Sequence[T ~string | ~[]byte](text T) int {
	if len(text) == 0 || text[0] != escape {
		return 0
	}
	if len(text) == 1 {
		return 1
	}
	switch c := text[1]; {
	case c == '[': // parameters, and a letter
		n := 2 + leading(text[2:], ' ', '?')
		return n + min(1, leading(text[n:], '@', '~'))
	case c == ']', c == 'P', c == 'X', c == '^', c == '_': // a title, a link or a picture
		return max(2, throughEnd(text))
	case c >= ' ' && c <= '/': // a set of characters
		n := 1 + leading(text[1:], ' ', '/')
		return n + min(1, leading(text[n:], '0', '~'))
	case c >= '0' && c <= '~':
		return 2
	}
	return 1
}

// leading returns how many bytes at the beginning of a text lie between two.
func leading[T ~string | ~[]byte](text T, least, most byte) int {
	n := 0
	for n < len(text) && text[n] >= least && text[n] <= most {
		n++
	}
	return n
}

// throughEnd returns the length of a sequence that BEL, ESC \ or the next ESC ends; 0 if none does.
func throughEnd[T ~string | ~[]byte](text T) int {
	for n := 2; n < len(text); n++ {
		switch {
		case text[n] == bell:
			return n + 1
		case text[n] == escape && n+1 < len(text) && text[n+1] == '\\':
			return n + 2
		case text[n] == escape:
			return n
		}
	}
	return 0
}
