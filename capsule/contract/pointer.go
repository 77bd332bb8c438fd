package contract

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/agent-on-demand/aod/api/fault"
)

// quote shows a name: bounded, and with nothing in it that a terminal would obey.
func quote(s string) string { return strconv.Quote(fault.Clip(s, maxShownBytes)) }

// show is quote without the quotes, for lists and expressions.
func show(s string) string {
	var b strings.Builder
	for _, c := range fault.Clip(s, maxShownBytes) {
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

func (p *place) path() []string {
	if p == nil {
		return nil
	}
	return append(p.parent.path(), p.key)
}
