package contract

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/agent-on-demand/aod/strictjson"
)

func (c *compiler) pattern(n *node, key string, v any, at string) {
	text, ok := wants[string](c, v, at, "a regular expression in a string", `"^[a-z]+$"`)
	if !ok {
		return
	}
	if _, ops, ok := c.regexp(text, at); ok {
		n.regexpOps, n.quoted = ops, n.quoted+len(text)
		n.form[key] = text
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
		c.fail(at, "make the repetitions smaller", "the regular expression is too large: %d instructions, the limit is %d", ops, maxPatternOps)
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
