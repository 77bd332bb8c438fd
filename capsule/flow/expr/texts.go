package expr

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// maxSteps bounds a match: the pattern's size times the text's.
const maxSteps = 20_000_000

// maxPattern is how long a pattern may be, in bytes, and maxCutset the characters of trim.
const (
	maxPattern = 4 << 10
	maxCutset  = 256
)

func splitText(m *meter, args []any) (any, error) {
	s, err := textArgument("split", args[0])
	if err != nil {
		return nil, err
	}
	separator, err := textArgument("split", args[1])
	if err != nil {
		return nil, err
	}
	n := strings.Count(s, separator) + 1
	if err := m.grow(n); err != nil {
		return nil, err
	}
	list := make([]any, 0, n)
	for _, part := range strings.Split(s, separator) {
		list = append(list, part)
	}
	return list, nil
}

func joinTexts(m *meter, args []any) (any, error) {
	list, err := listOf(m, "join", args[0])
	if err != nil {
		return nil, err
	}
	separator := ""
	if len(args) == 2 {
		if separator, err = textArgument("join", args[1]); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	for i, item := range list {
		s, err := textArgument("join", item)
		if err != nil {
			return nil, err
		}
		if b.Len()+len(s)+len(separator) > maxText {
			return nil, errMemory
		}
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(s)
	}
	return b.String(), m.text(b.Len())
}

func replace(m *meter, args []any) (any, error) {
	var texts [3]string
	for i := range texts {
		var err error
		if texts[i], err = textArgument("replace", args[i]); err != nil {
			return nil, err
		}
	}
	s, old, fresh := texts[0], texts[1], texts[2]
	if err := m.text(len(s) + strings.Count(s, old)*max(len(fresh)-len(old), 0)); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(s, old, fresh), nil
}

func repeat(m *meter, args []any) (any, error) {
	s, err := textArgument("repeat", args[0])
	if err != nil {
		return nil, err
	}
	n, ok := integer(args[1])
	switch {
	case !ok || n < 0:
		return nil, fmt.Errorf("repeat expects a whole number from 0, got %s", typeOf(args[1]))
	case len(s) > 0 && n > int64(maxText/len(s)), n > maxText:
		return nil, errMemory
	}
	return strings.Repeat(s, int(n)), m.text(len(s) * int(n))
}

func trim(_ *meter, args []any) (any, error) {
	s, err := textArgument("trim", args[0])
	if err != nil || len(args) == 1 {
		return strings.TrimSpace(s), err
	}
	characters, err := textArgument("trim", args[1])
	if err != nil {
		return nil, err
	}
	if len(characters) > maxCutset {
		return nil, fmt.Errorf("trim expects at most %d bytes of characters, got %d", maxCutset, len(characters))
	}
	return strings.Trim(s, characters), nil
}

func text(m *meter, args []any) (any, error) {
	value, err := m.normal(args[0], 0)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return "nil", nil
	}
	return textOf(value, maxText)
}

func toJSON(m *meter, args []any) (any, error) {
	value, err := m.normal(args[0], 0)
	if err != nil {
		return nil, err
	}
	return jsonOf(value, maxText)
}

func fromJSON(m *meter, args []any) (any, error) {
	s, err := textArgument("fromJSON", args[0])
	if err != nil {
		return nil, err
	}
	if err := m.text(len(s)); err != nil {
		return nil, err
	}
	value, err := strictjson.Decode([]byte(s))
	if err != nil {
		return nil, errors.New("fromJSON expects JSON, and this text is none") // what is wrong with it would quote it
	}
	return m.normal(value, 0)
}

// notPattern is the error of a pattern that is none. It doesn't quote it: it may be a value.
func notPattern(err error) error {
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return fmt.Errorf("matches expects a regular expression: %s", wrong.Code)
	}
	return errors.New("matches expects a regular expression")
}

// matches is the operator: its costs are the product of the pattern's size and the text's.
func matches(m *meter, args []any) (any, error) {
	if args[0] == nil || args[1] == nil {
		return false, nil
	}
	s, err := textArgument("matches", args[0])
	if err != nil {
		return nil, err
	}
	pattern, err := textArgument("matches", args[1])
	if err != nil {
		return nil, err
	}
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("matches expects a pattern of at most %d bytes, got %d", maxPattern, len(pattern))
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, notPattern(err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, notPattern(err)
	}
	if len(program.Inst)*len(s) > maxSteps {
		return nil, errTime
	}
	if err := m.grow(len(program.Inst)); err != nil {
		return nil, err
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("matches expects a regular expression: %w", err)
	}
	return compiled.MatchString(s), nil
}
