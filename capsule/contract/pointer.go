package contract

import (
	"strconv"
	"strings"
	"unicode"
)

var (
	escapeToken   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")
)

// maxPointerBytes bounds what a finding shows of a hostile payload's field names.
const maxPointerBytes = 2048

// pointerTo writes the RFC 6901 pointer of a path. One that is too long to be of
// use is cut.
func pointerTo(path ...string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteByte('/')
		b.WriteString(escapeToken.Replace(token))
		if b.Len() > maxPointerBytes {
			return clip(b.String(), maxPointerBytes)
		}
	}
	return b.String()
}

// clip cuts s to at most n bytes, at the border of a character, and shows that it did.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// quote shows a name: bounded, and with nothing in it that a terminal would obey.
func quote(s string) string { return strconv.Quote(clip(s, maxShownBytes)) }

// show is quote without the quotes, for lists and expressions.
func show(s string) string {
	var b strings.Builder
	for _, c := range clip(s, maxShownBytes) {
		if unicode.IsPrint(c) {
			b.WriteRune(c)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		}
	}
	return b.String()
}

// place is where a walk stands in a payload; nil is the root.
type place struct {
	parent *place
	key    string
	bytes  int // of the path so far
}

func (p *place) child(key string) *place {
	bytes := len(key) + 1
	if p != nil {
		bytes += p.bytes
	}
	return &place{parent: p, key: key, bytes: bytes}
}

func (p *place) pointer() string { return pointerTo(p.path()...) }

func (p *place) path() []string {
	if p == nil {
		return nil
	}
	return append(p.parent.path(), p.key)
}
