package contract

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

func (c *compiler) pattern(n *node, key string, v any, at string) {
	text, ok := wants[string](c, v, at, "a regular expression in a string", `"^[a-z]+$"`)
	if !ok {
		return
	}
	excluded, rest := notAhead(text)
	for _, text := range append(excluded, rest) {
		_, ops, ok := c.regexp(text, at)
		if !ok {
			return
		}
		n.regexpOps, n.quoted = n.regexpOps+ops, n.quoted+len(text)
	}
	n.form[key] = rest
	for _, text := range excluded {
		n.also = append(n.also, map[string]any{"not": map[string]any{"type": "string", "pattern": text}})
	}
}

// notAhead takes negative lookaheads off the start of an anchored expression, each as an
// expression that must not match: generators write them for numbers in strings and for
// addresses. RE2 has none. An expression with other ones comes back as it is.
func notAhead(text string) (excluded []string, rest string) {
	rest, anchored := strings.CutPrefix(text, "^")
	for anchored && strings.HasPrefix(rest, "(?!") {
		end := closing(rest)
		if end < 0 {
			return nil, text
		}
		excluded = append(excluded, "^(?:"+rest[len("(?!"):end]+")")
		rest = rest[end+1:]
	}
	if len(excluded) == 0 || alternates(rest) {
		return nil, text
	}
	return excluded, "^" + rest
}

// closing returns where the group that starts an expression ends, -1 where it doesn't.
func closing(text string) int {
	end := -1
	outside(text, func(i, depth int) bool {
		if text[i] == ')' && depth == 0 {
			end = i
		}
		return end < 0
	})
	return end
}

// alternates reports whether an expression is a choice as a whole, so that what stands
// before it belongs to a part of it alone.
func alternates(text string) bool {
	found := false
	outside(text, func(i, depth int) bool {
		found = found || text[i] == '|' && depth == 0
		return !found
	})
	return found
}

// outside calls visit for each byte of an expression that is neither escaped nor in a
// class, with how many groups are open after it, until visit says no.
func outside(text string, visit func(i, depth int) bool) {
	depth, class := 0, -1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
			continue
		case class >= 0:
			if c == ']' && i > class+1 {
				class = -1
			}
			continue
		case c == '[':
			class = i
			if strings.HasPrefix(text[i:], "[^") {
				class++
			}
			continue
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if !visit(i, depth) {
			return
		}
	}
}

func (c *compiler) regexp(text, at string) (*regexp.Regexp, int, bool) {
	re, err := regexp.Compile(text)
	if err != nil {
		hint := "patterns are RE2, see https://github.com/google/re2/wiki/Syntax"
		if strings.Contains(text, "(?=") || strings.Contains(text, "(?!") || strings.Contains(text, "(?<") {
			hint = "lookaheads and lookbehinds are not supported: " + hint
		}
		c.fail(at, hint, "%s is no regular expression that can be used: %s", quote(text), show(reason(err)))
		return nil, 0, false
	}
	ops := instructions(text)
	if ops > maxPatternOps {
		c.fail(at, "make the repetitions smaller",
			"the regular expression is too large: %d instructions, the limit is %d", ops, maxPatternOps)
		return nil, 0, false
	}
	return re, ops, true
}

func reason(err error) string {
	if e := (*syntax.Error)(nil); errors.As(err, &e) {
		return e.Code.String()
	}
	return err.Error()
}

func instructions(text string) int {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(prog.Inst)
}

func (c *compiler) patternProperties(n *node, key string, v any, at string) {
	nodes := c.schemas(v, at)
	for _, name := range sorted(nodes) {
		if re, ops, ok := c.regexp(name, at+"/"+strictjson.Escape(name)); ok {
			n.patterns = append(n.patterns, patternNode{re: re, ops: ops, schema: nodes[name]})
		}
	}
	if len(nodes) > 0 {
		n.form[key] = slotsByName(nodes)
	}
}
