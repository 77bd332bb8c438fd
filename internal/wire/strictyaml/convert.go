package strictyaml

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
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
		if n.Style == 0 && yamlNumber().MatchString(n.Value) { // one that the library can't hold
			return c.number(n)
		}
		return n.Value
	case "!!null":
		return nil
	case "!!bool":
		return c.literal(n)
	case "!!int", "!!float":
		return c.number(n)
	}
	c.report(n, "the tag "+fault.Quote(n.Tag)+" is not supported", "write a plain value")
	return nil
}

var (
	// yamlNumber are the numbers of YAML 1.2.
	yamlNumber = lazyregexp.New(`^[-+]?(0x[0-9a-fA-F]+|0o[0-7]+|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)$`)
	// jsonNumber are those that all readers, of either version and of JSON, take for the same.
	jsonNumber = lazyregexp.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

// number reads a number that is written as in JSON. Others are refused: 01234 is 668 to some readers, and a text to
// whoever wrote it.
func (c *converter) number(n *yaml.Node) any {
	asJSON := jsonNumber().MatchString(n.Value)
	if asJSON && !strings.ContainsAny(n.Value, ".eE") && !held(n.Value) {
		if n.ShortTag() == "!!int" && n.Style == 0 { // of a JSON text: the library doesn't call such a number so
			return json.Number(n.Value)
		}
		c.report(n, fault.Quote(n.Value)+" is beyond what is read exactly, -2^63 to 2^64-1", "put it in quotes")
		return nil
	}
	before := len(c.findings)
	value := c.literal(n)
	if !asJSON && len(c.findings) == before {
		c.report(n, fault.Quote(n.Value)+" isn't a number as JSON writes it",
			"put it in quotes if it is a text; else write it such as 1000, -0.5 or 1e3")
		return nil
	}
	return value
}

// held reports whether a whole number is one of Go's.
func held(text string) bool {
	_, signed := strconv.ParseInt(text, 10, 64)
	_, unsigned := strconv.ParseUint(text, 10, 64)
	return signed == nil || unsigned == nil
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
