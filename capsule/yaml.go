package capsule

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/fault"
)

// A YAML file may be no larger, deeper or longer than these, counted after aliases
// are followed: nine lines of aliases can stand for a billion values.
const (
	maxYAMLDepth = 32
	maxYAMLNodes = 10_000
	maxYAMLKey   = 128 // bytes
)

// document is a YAML file as JSON values, which still knows where each one stood.
type document struct {
	file string
	root *yaml.Node // nil when there is nothing in the file
	// value is made of map[string]any, []any, string, int64, uint64, float64, bool, nil.
	value any
}

// parseYAML reads one YAML document. Where it can't be read as JSON values the findings
// say why, and the document is nil only when its syntax is broken.
func parseYAML(file string, raw []byte) (*document, []fault.Finding) {
	root, finding := parseNode(file, raw)
	if finding != nil {
		return nil, []fault.Finding{*finding}
	}
	if root == nil {
		return &document{file: file}, nil
	}
	c := converter{file: file}
	value := c.value(root, 0)
	return &document{file: file, root: root, value: value}, c.findings
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// parseNode reads the only document of a file; nil when the file holds none.
func parseNode(file string, raw []byte) (root *yaml.Node, finding *fault.Finding) {
	// The parser panics on some broken input instead of returning an error.
	defer func() {
		if recover() != nil {
			root, finding = nil, &fault.Finding{File: file, Line: 1, Message: "it isn't YAML", Hint: "check the syntax"}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var first, second yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxFinding(file, err)
	}
	err := decoder.Decode(&second)
	if err == nil {
		return nil, &fault.Finding{File: file, Line: second.Line, Message: "it holds more than one document", Hint: "keep one, without --- between"}
	}
	if !errors.Is(err, io.EOF) {
		return nil, syntaxFinding(file, err)
	}
	return first.Content[0], nil
}

func syntaxFinding(file string, err error) *fault.Finding {
	text := err.Error()
	m := yamlLine.FindStringSubmatch(text)
	line, _ := strconv.Atoi(m[1]) // 0 where the parser knows none
	message := "it isn't YAML: " + fault.Clip(strings.TrimPrefix(text, m[0]), 200)
	return &fault.Finding{File: file, Line: max(line, 1), Message: message, Hint: "check the indentation (spaces, no tabs), the colons and the quotes"}
}

// converter turns nodes into JSON values and gathers what can't become one.
type converter struct {
	file     string
	nodes    int
	stopped  bool
	findings []fault.Finding
}

func (c *converter) report(n *yaml.Node, message, hint string) {
	c.findings = append(c.findings, fault.Finding{File: c.file, Line: n.Line, Message: message, Hint: hint})
}

func (c *converter) stop(n *yaml.Node, message string) any {
	c.stopped = true
	c.report(n, message, "write it shorter, and without aliases")
	return nil
}

func (c *converter) value(n *yaml.Node, depth int) any {
	c.nodes++
	switch {
	case c.stopped:
		return nil
	case depth > maxYAMLDepth:
		return c.stop(n, fmt.Sprintf("it is nested more than %d deep", maxYAMLDepth))
	case c.nodes > maxYAMLNodes:
		return c.stop(n, fmt.Sprintf("it holds more than %d values", maxYAMLNodes))
	}
	switch n.Kind {
	case yaml.AliasNode:
		return c.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return c.mapping(n, depth)
	case yaml.SequenceNode:
		return c.sequence(n, depth)
	}
	return c.scalar(n)
}

func (c *converter) sequence(n *yaml.Node, depth int) any {
	list := make([]any, 0, len(n.Content))
	for _, item := range n.Content {
		list = append(list, c.value(item, depth+1))
	}
	return list
}

func (c *converter) mapping(n *yaml.Node, depth int) any {
	object := make(map[string]any, len(n.Content)/2)
	firstAt := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !c.stopped; i += 2 {
		key := n.Content[i]
		if !c.goodKey(key) {
			continue
		}
		if line, taken := firstAt[key.Value]; taken {
			c.report(key, fmt.Sprintf("the key %s stands twice, first in line %d", fault.Quote(key.Value), line), "keep one of them")
			continue
		}
		firstAt[key.Value] = key.Line
		object[key.Value] = c.value(n.Content[i+1], depth+1)
	}
	return object
}

func (c *converter) goodKey(key *yaml.Node) bool {
	switch {
	case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
		c.report(key, "merge keys (<<) are not supported", "write the keys out")
	case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
		c.report(key, "a key must be a text", "put it in quotes")
	case len(key.Value) > maxYAMLKey:
		c.report(key, fmt.Sprintf("a key is longer than %d bytes", maxYAMLKey), "")
	default:
		return true
	}
	return false
}

func (c *converter) scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return n.Value
	case "!!null":
		return nil
	case "!!bool", "!!int", "!!float":
		return c.literal(n)
	}
	c.report(n, "the tag "+fault.Quote(n.Tag)+" is not supported", "write a plain value")
	return nil
}

// literal decodes a number or a truth value, if JSON can hold it.
func (c *converter) literal(n *yaml.Node) any {
	var v any
	err := n.Decode(&v)
	switch v := v.(type) {
	case int:
		return int64(v)
	case bool, int64, uint64:
		return v
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v
		}
	}
	message := fault.Quote(n.Value) + " is not a number that JSON can hold"
	if err != nil {
		message = fault.Quote(n.Value) + " is not a " + strings.TrimPrefix(n.ShortTag(), "!!")
	}
	c.report(n, message, "write a finite number, or put it in quotes")
	return nil
}

// lineAt returns the line of what a JSON pointer names, or of the nearest thing around
// it that is there. Zero stands for an empty file.
func (d *document) lineAt(pointer string) int {
	if d.root == nil {
		return 0
	}
	node, line := d.root, d.root.Line
	for _, token := range pointerTokens(pointer) {
		next, at := child(node, token)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return line
}

// pointerTokens splits a JSON pointer (RFC 6901) into its unescaped parts.
func pointerTokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	return tokens
}

// escapeToken makes a key fit to stand in a JSON pointer.
func escapeToken(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

func child(n *yaml.Node, token string) (*yaml.Node, int) {
	for hops := 0; n.Kind == yaml.AliasNode && hops < maxYAMLDepth; hops++ {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == token {
				return n.Content[i+1], n.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i].Line
		}
	}
	return nil, 0
}
