package config

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api/fault"
)

// follow resolves an alias.
func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// fits reports whether YAML gave a scalar the type of a value.
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
	case cores, money:
		return tag == "!!int" || tag == "!!float"
	case size, duration: // a number without a unit is bytes, or refused with a better message
		return tag == "!!str" || tag == "!!int"
	case several, mapping:
		return false
	}
	return tag == "!!str"
}

// describe names a node's type, for a message that something else was expected.
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
