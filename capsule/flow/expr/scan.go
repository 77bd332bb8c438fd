package expr

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"

	"github.com/agent-on-demand/aod/api/fault"
)

const (
	opening = "${{"
	closing = "}}"
	// maxCode is how long an expression may be, in bytes.
	maxCode = 4 << 10
)

// place of a text in its file.
type place struct {
	file    string
	line    int // 0: not known
	pointer string
}

// parseText takes a text apart. `$${{` stands for `${{`.
func (s Source) parseText(t *Template, text string) []fault.Finding {
	if !strings.Contains(text, opening) {
		t.form.literal = text
		return nil
	}
	at := place{file: s.File, pointer: t.pointer, line: s.line(t.pointer)}
	parts, finding := split(text, at)
	if finding == nil && len(parts) == 1 && parts[0].code == nil {
		t.form.literal = parts[0].text
		return nil
	}
	if finding != nil {
		t.form.code = &code{at: at, broken: finding.Message}
		return []fault.Finding{*finding}
	}
	if len(parts) == 1 {
		t.form.code = parts[0].code
		return nil
	}
	t.form.parts = parts
	return nil
}

// split returns the parts of a text, at least one, no two literals beside each other.
func split(text string, at place) ([]part, *fault.Finding) {
	var parts []part
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, part{text: literal.String()})
			literal.Reset()
		}
	}
	rest := text
	for {
		before, after, found := strings.Cut(rest, opening)
		if !found {
			literal.WriteString(rest)
			break
		}
		if strings.HasSuffix(before, "$") {
			literal.WriteString(strings.TrimSuffix(before, "$") + opening)
			rest = after
			continue
		}
		literal.WriteString(before)
		flush()
		start := len(text) - len(after)
		source, length, finding := expression(after, text[:start], at)
		if finding != nil {
			return nil, finding
		}
		compiled, finding := compile(source, text[:start], at)
		if finding != nil {
			return nil, finding
		}
		parts = append(parts, part{code: compiled})
		rest = after[length:]
	}
	flush()
	return parts, nil
}

// expression returns the expression that text begins with, and how long it is with its end.
func expression(text, before string, at place) (source string, length int, finding *fault.Finding) {
	window := fault.Cut(text, maxCode+len(closing))
	end, err := closed(window)
	switch {
	case err != nil:
		var bad *file.Error
		if errors.As(err, &bad) {
			return "", 0, at.finding(before, window, bad.From, wordsOf(bad.Message),
				"an expression stands in ${{ }}, and texts in it in quotes")
		}
		return "", 0, at.finding(before, window, 0, err.Error(), "")
	case end < 0 && len(window) < len(text):
		return "", 0, at.finding(before, window, 0, fmt.Sprintf("an expression is longer than %d bytes", maxCode),
			"make two of it: set a part in the state first")
	case end < 0:
		return "", 0, at.finding(before, window, -len(opening), "a ${{ isn't closed by }}",
			"quote the whole value: without quotes, YAML ends a text at a # after a space, and takes a colon before "+
				"a space for a key's")
	case strings.TrimSpace(window[:end]) == "":
		return "", 0, at.finding(before, window, -len(opening), "an expression is empty",
			"write a value between ${{ and }}, or $${{ for the signs themselves")
	}
	return window[:end], end + len(closing), nil
}

// closed returns where the first }} stands in a text that belongs to no object and to no
// text in it: -1 is nowhere.
func closed(text string) (int, error) {
	l := lexer.New()
	l.Reset(file.NewSource(text))
	depth := 0
	for {
		token, err := l.Next()
		if err != nil {
			return unfinished(text, err)
		}
		switch {
		case token.Kind == lexer.EOF:
			return -1, nil
		case token.Is(lexer.Bracket, "{"):
			depth++
		case token.Is(lexer.Bracket, "}") && depth > 0:
			depth--
		case token.Is(lexer.Bracket, "}"):
			at := byteAt(text, token.From)
			if !strings.HasPrefix(text[at:], closing) {
				return 0, &file.Error{Location: token.Location, Message: "a } without its {"}
			}
			return at, nil
		}
	}
}

// unfinished decides on an error of the lexer: where no }} follows at all, it is that.
func unfinished(text string, err error) (int, error) {
	if !strings.Contains(text, closing) {
		return -1, nil
	}
	return 0, err
}

// byteAt returns where the nth rune begins.
func byteAt(text string, n int) int {
	for i := range text {
		if n <= 0 {
			return i
		}
		n--
	}
	return len(text)
}

// finding says what is wrong at a rune of an expression, before which some text stands.
func (p place) finding(before, source string, rune int, message, hint string) *fault.Finding {
	return &fault.Finding{File: p.file, Line: p.line, Pointer: p.pointer, Message: p.column(before, source, rune) +
		": " + message, Hint: hint}
}

// column names a rune of an expression as its place in the whole text: "column 8", or
// "line 2, column 8 of the text".
func (p place) column(before, source string, rune int) string {
	whole := before
	if rune >= 0 {
		whole += source[:byteAt(source, rune)]
	} else {
		whole = whole[:len(whole)+rune]
	}
	line := strings.Count(whole, "\n") + 1
	column := utf8.RuneCountInString(whole[strings.LastIndex(whole, "\n")+1:]) + 1
	if line == 1 {
		return fmt.Sprintf("column %d", column)
	}
	return fmt.Sprintf("line %d, column %d of the text", line, column)
}
