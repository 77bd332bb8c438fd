package expr

import (
	"strings"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// What the library says of a failure may quote values: a text that is no number, the name of a
// member that an expression made, the whole of what has no members.
var (
	noNumber = lazyregexp.New(`(?s)^invalid operation: (int|float)\(.*\)$`)
	noMember = lazyregexp.New(`(?s)^cannot (fetch|get) (.*) from (.*)$`)
	goTypes  = lazyregexp.New(`^(<nil>|\*?[a-z0-9]+|\*?[a-z]+\.[A-Za-z]+|\[\].*|map\[.*)$`)
)

// sealed leaves the values out of a message of the library's. What stands in the expression
// itself may be said: it is its author's.
func sealed(message, source string) string {
	if m := noNumber().FindStringSubmatch(message); m != nil {
		return m[1] + " expects a number, or a text that is one"
	}
	if strings.HasPrefix(message, "cannot slice ") {
		return "only a list or a text has parts from one place to another"
	}
	m := noMember().FindStringSubmatch(message)
	if m == nil {
		return message
	}
	member, from := m[2], m[3]
	if !strings.Contains(source, member) {
		member = "a member"
	}
	if m[1] == "get" || !goTypes().MatchString(from) {
		from = "what has none"
	}
	return "cannot " + m[1] + " " + member + " from " + from
}
