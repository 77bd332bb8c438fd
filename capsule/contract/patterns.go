package contract

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/agent-on-demand/aod/strictjson"
)

func (c *compiler) pattern(n *node, v any, pointer string) {
	text, ok := wants[string](c, v, pointer, "a regular expression in a string", `"^[a-z]+$"`)
	if !ok {
		return
	}
	if _, ops, ok := c.regexp(text, pointer); ok {
		n.regexpOps, n.quoted = ops, n.quoted+len(text)
		n.assert(pointer, text)
	}
}

func (c *compiler) regexp(text, pointer string) (*regexp.Regexp, int, bool) {
	re, err := regexp.Compile(text)
	if err != nil {
		hint := "patterns are RE2, see https://github.com/google/re2/wiki/Syntax"
		if strings.Contains(text, "(?=") || strings.Contains(text, "(?!") || strings.Contains(text, "(?<") {
			hint = "lookaheads and lookbehinds are not supported: " + hint
		}
		c.fail(pointer, hint, "%s is no regular expression that can be used: %s", quote(text), show(reason(err)))
		return nil, 0, false
	}
	ops := instructions(text)
	if ops > maxPatternOps {
		c.fail(pointer, "make the repetitions smaller", "the regular expression is too large: %d instructions, the limit is %d", ops, maxPatternOps)
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

func (c *compiler) patternProperties(n *node, v any, pointer string) {
	nodes := c.schemas(v, pointer)
	for _, key := range sorted(nodes) {
		if re, ops, ok := c.regexp(key, pointer+"/"+strictjson.Escape(key)); ok {
			n.patterns = append(n.patterns, patternNode{re: re, ops: ops, schema: nodes[key]})
		}
	}
}
