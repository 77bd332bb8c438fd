package strictyaml

import (
	"fmt"
	"math"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api/fault"
)

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
	case depth > maxDepth:
		return c.stop(n, fmt.Sprintf("it is nested more than %d deep", maxDepth))
	case c.nodes > maxNodes:
		return c.stop(n, fmt.Sprintf("it holds more than %d values", maxNodes))
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
			c.report(key, fmt.Sprintf("the key %s stands twice, first in line %d", fault.Quote(key.Value), line),
				"keep one of them")
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
	case len(key.Value) > maxKey:
		c.report(key, fmt.Sprintf("a key is longer than %d bytes", maxKey), "")
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
