package secrets

import (
	"html"
	"strconv"
)

const (
	maxBackslashes = 16 // of one escape: a string of JSON in four others has so many
	maxEntity      = 12 // bytes of an escape of HTML
	maxEscape      = maxBackslashes + len("U00000000")
)

// unescaped returns what a text stands for, without backslashes.
func unescaped(text []byte) (read []byte) {
	for len(text) > 0 {
		c, size := symbol(text, true)
		text = text[size:]
		if c != '\\' {
			read = append(read, c)
		}
	}
	return read
}

// symbol reads the character that a text begins with, which may be escaped, and the bytes that it
// takes. size is 0 where it needs more of the text to tell; last says that there is no more.
func symbol(text []byte, last bool) (c byte, size int) {
	switch text[0] {
	case '\\':
		c, size = backslashed(text)
	case '%':
		c, size = byHex(text, 1, 2)
	case '&':
		c, size = entity(text)
	default:
		return text[0], 1
	}
	if size == 0 && last {
		return text[0], 1
	}
	return c, size
}

// backslashed reads \c, \u0063, \x63 and \U00000063. Within a string in a string there are more
// backslashes, which all belong to the one character.
func backslashed(text []byte) (c byte, size int) {
	n := 1
	for n < len(text) && n <= maxBackslashes && text[n] == '\\' {
		n++
	}
	switch {
	case n > maxBackslashes:
		return 0, 1
	case n == len(text):
		return 0, 0
	}
	switch text[n] {
	case 'u':
		return byHex(text, n+1, 4)
	case 'x':
		return byHex(text, n+1, 2)
	case 'U':
		return byHex(text, n+1, 8)
	}
	return text[n], n + 1
}

// byHex reads a character by its number, behind the first bytes of an escape. Where no such
// number follows, the last of those bytes is meant as it is.
func byHex(text []byte, before, digits int) (c byte, size int) {
	for i := before; i < before+digits; i++ {
		if i == len(text) {
			return 0, 0
		}
		if !isHex(text[i]) {
			return text[before-1], before
		}
	}
	n, err := strconv.ParseUint(string(text[before:before+digits]), 16, 7)
	if err != nil {
		return 0, before + digits // it isn't a character of a key
	}
	return byte(n), before + digits
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// entity reads &#45;, &#x2d; and &amp;.
func entity(text []byte) (c byte, size int) {
	for i := 1; i < maxEntity; i++ {
		switch {
		case i == len(text):
			return 0, 0
		case text[i] == ';':
			if read := html.UnescapeString(string(text[:i+1])); len(read) == 1 {
				return read[0], i + 1
			}
			return text[0], 1
		case text[i] != '#' && !isAlphanumeric(text[i]):
			return text[0], 1
		}
	}
	return text[0], 1
}

func isAlphanumeric(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }
