package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/fault"
)

// parseYAML reads the only document of a file; nil when the file holds none.
func parseYAML(name string, raw []byte) (root *yaml.Node, finding *fault.Finding) {
	// The parser panics on some broken input instead of returning an error.
	defer func() {
		if recover() != nil {
			root, finding = nil, &fault.Finding{File: name, Line: 1, Message: "it isn't YAML", Hint: "check the syntax"}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var first, second yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxFinding(name, err)
	}
	err := decoder.Decode(&second)
	if err == nil {
		return nil, &fault.Finding{File: name, Line: second.Line, Message: "it holds more than one document", Hint: "keep one, without --- between"}
	}
	if !errors.Is(err, io.EOF) {
		return nil, syntaxFinding(name, err)
	}
	return first.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

func syntaxFinding(name string, err error) *fault.Finding {
	text := err.Error()
	m := yamlLine.FindStringSubmatch(text)
	line, _ := strconv.Atoi(m[1]) // 0 where the parser knows none
	message := "it isn't YAML: " + fault.Clip(strings.TrimPrefix(text, m[0]), 200)
	return &fault.Finding{File: name, Line: max(line, 1), Message: message, Hint: "check the indentation (spaces, no tabs), the colons and the quotes"}
}

// follow returns what an alias stands for.
func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// fits reports whether YAML read a scalar as the type that a value is written in.
func fits(v value, n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	tag := n.ShortTag()
	switch v.(type) {
	case boolean:
		return tag == "!!bool"
	case integer:
		return tag == "!!int"
	case size, duration: // a number without a unit is bytes, or refused with a better word
		return tag == "!!str" || tag == "!!int"
	case several, mapping:
		return false
	}
	return tag == "!!str"
}

// describe says what a node is, for somebody who expected another thing.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map of keys"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "empty"
	case n.ShortTag() == "!!str":
		return "the text " + fault.Quote(n.Value)
	}
	return fault.Quote(n.Value) + " with the YAML type " + fault.Quote(strings.TrimLeft(n.ShortTag(), "!"))
}
