package strictyaml

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// isBlock reports whether an object or a list is written in lines, without brackets.
func isBlock(n *yaml.Node) bool {
	return n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle == 0 && n.Content != nil
}

// start is where a node begins: the library counts lines, and characters in them.
func (e *Edit) start(n *yaml.Node) int {
	at := e.lines[min(n.Line, len(e.lines))-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(e.Raw[at:])
		at += size
	}
	return at
}

// end is where a node ends, which the library doesn't tell. It may be wrong, as behind an anchor or a tag; the change
// is refused then.
func (e *Edit) end(n *yaml.Node) int {
	at := e.start(n)
	switch {
	case n.Kind == yaml.ScalarNode:
		return at + lengthOf(n, e.Raw[at:])
	case len(n.Content) == 0:
		at++
	default:
		at = e.end(n.Content[len(n.Content)-1])
	}
	if isBlock(n) {
		return at
	}
	for ; at < len(e.Raw); at++ {
		switch e.Raw[at] {
		case '}', ']':
			return at + 1
		case '#':
			at = e.lineEnd(at)
		}
	}
	return len(e.Raw)
}

// lineEnd is where the line ends that has a byte.
func (e *Edit) lineEnd(at int) int {
	if i := bytes.IndexByte(e.Raw[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(e.Raw)
}

var (
	inQuotes   = lazyregexp.New(`\A(?:"(?:[^"\\]|\\[\s\S])*"|'(?:[^']|'')*')`)
	firstLine  = lazyregexp.New(`\A[^\n]*\n(?:[ \t\r]*\n)*( +)[^ \r\n]`)
	laterLines = `\A[^\r\n]*(?:(?:[ \t\r]*\n)+ {%d}[^\n]*[^ \t\r\n])*`
)

// lengthOf is how long a plain value is with which a text begins.
func lengthOf(n *yaml.Node, raw []byte) int {
	switch {
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return len(inQuotes().Find(raw))
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		const mostIndent = 1000 // that a regular expression can count
		if first := firstLine().FindSubmatch(raw); first != nil && len(first[1]) <= mostIndent {
			return len(regexp.MustCompile(fmt.Sprintf(laterLines, len(first[1]))).Find(raw))
		}
		return len(bytes.TrimRight(bytes.SplitN(raw, []byte("\n"), 2)[0], " \t\r"))
	}
	at := 0
	for word := range strings.FieldsSeq(n.Value) { // over several lines only its spaces are others
		at += len(raw[at:]) - len(bytes.TrimLeft(raw[at:], " \t\r\n"))
		at = min(at+len(word), len(raw))
	}
	return at
}

// wholeLines are the lines of a cut, with what is behind it in its last one.
func (e *Edit) wholeLines(c cut) cut {
	c.from = bytes.LastIndexByte(e.Raw[:c.from], '\n') + 1
	if c.to = e.lineEnd(c.to); c.to < len(e.Raw) {
		c.to++
	}
	return c
}

// ways are the places and shapes for the source of a value, the best first.
func (e *Edit) ways(p place, key, source string) (ways []cut) {
	in := p.in.Column - 1
	if p.value != nil {
		from, to := e.start(p.value), e.end(p.value)
		for _, text := range []string{source, indented(source, in), indented(source, p.value.Column-1), " " + source} {
			ways = append(ways, cut{from, to, text})
		}
		return ways
	}
	entry := written(key, 0) + ": " + source
	switch {
	case isBlock(p.in):
		line := e.lineEnd(e.end(p.in))
		at := len(bytes.TrimRight(e.Raw[:line], "\r"))
		return []cut{{at, at, indented("\n"+entry, in)}}
	case len(p.in.Content) > 0:
		at := e.end(p.in.Content[len(p.in.Content)-1])
		return []cut{{at, at, ", " + entry}}
	}
	at := e.start(p.in) + 1
	return []cut{{at, at, entry}}
}

// indented moves all lines but the first to the right.
func indented(text string, by int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" {
			lines[i] = strings.Repeat(" ", by) + line
		}
	}
	return strings.Join(lines, "\n")
}

// written is a text as a scalar that can stand anywhere, but for one in lines.
func written(text string, style yaml.Style) string {
	of := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: style},
	}}
	if style == yaml.LiteralStyle {
		of.Kind, of.Style = yaml.MappingNode, 0
		of.Content = append([]*yaml.Node{{Kind: yaml.ScalarNode, Value: "k"}}, of.Content...)
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if encoder.Encode(of) != nil || encoder.Close() != nil {
		return "" // which is another text, and refused
	}
	text = strings.TrimSuffix(b.String(), "\n")
	if style == yaml.LiteralStyle {
		return strings.TrimPrefix(text, "k: ")
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
}
