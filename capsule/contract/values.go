package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/xeipuuv/gojsonschema"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// FilePath is the format of a string that names a file.
const FilePath = "file_path"

func (k keyword) types() {
	list, ok := k.v.([]any)
	if !ok {
		list = []any{k.v}
	}
	if len(list) == 0 {
		k.fail("name a type, or remove the keyword", "the list of types is empty")
	}
	for _, e := range list {
		name, ok := wants[string](keyword{k.c, k.n, k.key, e, k.at}, "the name of a type", `"string"`)
		if !ok {
			continue
		}
		kind, ok := kindNamed(name)
		if !ok {
			k.fail(typeHint(name), "%s isn't a type; there are %s, and for short int, float, bool, dict, list",
				quote(name), strings.Join(kindNames, ", "))
		}
		k.n.types |= kind
	}
	k.n.form[k.key] = anys(k.n.types.names())
}

// strangers are names of types that are none, and what is meant.
var strangers = map[string]string{
	"file":   `a file is "type": "string", "format": "file_path"`,
	"path":   `a file is "type": "string", "format": "file_path"`,
	FilePath: `a file is "type": "string", "format": "file_path"`,
	"str":    `write "string"`, "text": `write "string"`,
	"None": `write "null"`, "none": `write "null"`, "nil": `write "null"`,
}

func typeHint(name string) string {
	if hint, ok := strangers[name]; ok {
		return hint
	}
	if near := nearest(name, append(sorted(aliases), kindNames...)); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "use one of them"
}

func (k keyword) format() {
	name, ok := wants[string](k, "the name of a format", `"date"`)
	switch {
	case !ok:
	case name == FilePath:
		k.n.filePath = true
	case gojsonschema.FormatCheckers.Has(name):
		k.n.form[k.key] = name
		k.n.perStep = formatBytes(name)
	case nearest(strings.NewReplacer("-", "_", " ", "_").Replace(name), []string{FilePath, "file"}) != "":
		k.warn(`did you mean "file_path"?`, "the format %s is not known and is not checked", quote(name))
	default:
		k.warn(`the formats that are checked are file_path, date, time, date-time, duration, email, hostname, ipv4, `+
			`ipv6, uri, uuid, regex, json-pointer`, "the format %s is not known and is not checked", quote(name))
	}
}

func (k keyword) enum() {
	list, ok := wants[[]any](k, "a list of the allowed values", `["small", "large"]`)
	if !ok {
		return
	}
	if len(list) == 0 {
		k.fail("list the allowed values, or remove the keyword",
			"the list is empty, so that nothing would be allowed")
	}
	seen := map[string]bool{}
	for i, e := range list {
		text := canonical(e)
		if seen[text] {
			k.item(i, nil).fail("remove it", "the value stands in the list twice")
		}
		seen[text] = true
		k.n.quoted += len(text)
	}
	k.n.compares = true
	k.n.form[k.key] = list
}

func (k keyword) constant() {
	k.n.compares = true
	k.n.quoted += len(canonical(k.v))
	k.n.form[k.key] = k.v
}

// canonical writes a value so that equal ones look equal: 1.0 is 1.
func canonical(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	var plain any
	if json.Unmarshal(text, &plain) != nil {
		return string(text)
	}
	text, _ = json.Marshal(plain) // it was just read
	return string(text)
}

func (k keyword) number() {
	if number, ok := wants[json.Number](k, "a number", "1"); ok {
		k.n.form[k.key] = number
	}
}

func (k keyword) multipleOf() {
	number, ok := wants[json.Number](k, "a number", "0.01")
	if !ok {
		return
	}
	if rat := rational(number); rat == nil || rat.Sign() <= 0 {
		k.fail("for example 0.01", "must be greater than 0")
		return
	}
	k.n.form[k.key] = number
}

// exclusive reads draft-06's numbers, and draft-04's booleans where it is declared.
func (k keyword) exclusive() {
	if _, ok := k.v.(bool); ok && slices.Contains(slices.Collect(maps.Values(k.c.document.drafts)), draft4) {
		k.n.form[k.key] = k.v
		return
	}
	if _, ok := k.v.(bool); ok {
		k.fail(`write the number here, and leave the "minimum" or "maximum" out`,
			"expected a number, got boolean, which is how draft-04 had it")
		return
	}
	k.number()
}

// count reads a whole number from 0, such as maxLength, into draft-07's plainest form.
func (k keyword) count() {
	number, ok := wants[json.Number](k, "a whole number", "10")
	if !ok {
		return
	}
	rat := rational(number)
	if rat == nil || !rat.IsInt() || rat.Sign() < 0 || rat.Num().BitLen() > 53 {
		k.fail("for example 10", "must be a whole number from 0")
		return
	}
	k.n.form[k.key] = json.Number(rat.Num().String())
}

func rational(n json.Number) *big.Rat {
	rat, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return nil
	}
	return rat
}

func (k keyword) pattern() {
	text, ok := wants[string](k, "a regular expression in a string", `"^[a-z]+$"`)
	if !ok {
		return
	}
	excluded, rest := notAhead(inRE2(text))
	for _, text := range append(excluded, rest) {
		_, ops, ok := k.regexp(text)
		if !ok {
			return
		}
		k.n.regexpOps, k.n.quoted = k.n.regexpOps+ops, k.n.quoted+len(text)
	}
	k.n.form[k.key] = rest
	for _, text := range excluded {
		k.n.also = append(k.n.also, map[string]any{"not": map[string]any{"type": "string", "pattern": text}})
	}
}

// escapes are what an expression has from a backslash on: a text that is quoted, a letter of ECMA 262, or
// anything else.
var escapes = lazyregexp.New(`(?s)\\Q.*?(?:\\E|$)|\\u\{[0-9A-Fa-f]{1,6}\}|` +
	`\\u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\c[A-Za-z]|\\.`)

// inRE2 writes letters that an expression names as ECMA 262 does, such as \u00e9, as RE2 has them.
func inRE2(text string) string {
	return escapes().ReplaceAllStringFunc(text, func(escape string) string {
		code := strings.Trim(escape[2:], "{}")
		switch {
		case escape[1] == 'c' && len(code) == 1:
			return fmt.Sprintf(`\x{%x}`, code[0]%32)
		case escape[1] != 'u' || code == "":
			return escape
		case len(code) > 6: // two halves of a letter
			high, _ := strconv.ParseUint(code[:4], 16, 16)
			low, _ := strconv.ParseUint(code[6:], 16, 16)
			return fmt.Sprintf(`\x{%x}`, utf16.DecodeRune(rune(high), rune(low)))
		}
		return `\x{` + code + `}`
	})
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

func (k keyword) regexp(text string) (*regexp.Regexp, int, bool) {
	if k.c.regexpOps > maxAllPatternOps {
		return nil, 0, false // it was said
	}
	ops := instructions(text)
	if ops > maxPatternOps {
		k.fail("make the repetitions smaller",
			"the regular expression is too large: %d instructions, the limit is %d", ops, maxPatternOps)
		return nil, 0, false
	}
	if k.c.regexpOps += ops; k.c.regexpOps > maxAllPatternOps {
		k.fail("use fewer of them, or make the repetitions smaller",
			"the regular expressions up to this one are too large together: the limit is %d instructions",
			maxAllPatternOps)
		return nil, 0, false
	}
	re, err := regexp.Compile(text)
	if err != nil {
		hint := "patterns are RE2, see https://github.com/google/re2/wiki/Syntax"
		if strings.Contains(text, "(?=") || strings.Contains(text, "(?!") || strings.Contains(text, "(?<") {
			hint = "lookaheads and lookbehinds are not supported: " + hint
		}
		k.fail(hint, "%s isn't a regular expression that can be used: %s", quote(text), show(reason(err)))
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

func (k keyword) patternProperties() {
	nodes := k.schemas()
	translated := make(map[string]*node, len(nodes))
	for _, name := range sorted(nodes) {
		part, text := k.part(name, nil), inRE2(name)
		if translated[text] != nil {
			part.fail(`join the two with "allOf"`, "another name has the same expression")
		}
		translated[text] = nodes[name]
		if re, ops, ok := part.regexp(text); ok {
			k.n.patterns = append(k.n.patterns, patternNode{re: re, ops: ops, schema: nodes[name]})
		}
	}
	if len(nodes) > 0 {
		k.n.form[k.key] = slotsByName(translated)
	}
}
