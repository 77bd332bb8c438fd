package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Encode writes JSON values as YAML that Parse reads as the same values. The keys of objects
// stand in the order of first, the others after them in that of the alphabet.
func Encode(value any, first []string) ([]byte, error) {
	node, err := nodeOf(value, first)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(node), encoder.Close()); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return b.Bytes(), nil
}

func nodeOf(value any, first []string) (*yaml.Node, error) {
	switch v := value.(type) {
	case map[string]any:
		return mappingOf(v, first)
	case []any:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			node, err := nodeOf(item, first)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, node)
		}
		return list, nil
	}
	if text, ok := value.(string); ok && mistaken(text) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}, nil
	}
	node := &yaml.Node{}
	if err := node.Encode(value); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return node, nil
}

// mistaken reports whether the library writes a text in a style in which it is another one: a
// block that begins so loses the break of its line, or can't begin with a tab, and << is a merge. Or in one that not
// all readers take for the same.
func mistaken(text string) bool {
	return text == "<<" || strings.IndexAny(text, "\n\t") == 0 || doubts().MatchString(text) ||
		strings.HasPrefix(text, "\ufeff")
}

func mappingOf(object map[string]any, first []string) (*yaml.Node, error) {
	mapping := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	place := func(key string) int {
		if i := slices.Index(first, key); i >= 0 {
			return i
		}
		return len(first)
	}
	keys := slices.Sorted(maps.Keys(object))
	slices.SortStableFunc(keys, func(a, b string) int { return place(a) - place(b) })
	for _, key := range keys {
		name, err := nodeOf(key, first)
		if err != nil {
			return nil, err
		}
		node, err := nodeOf(object[key], first)
		if err != nil {
			return nil, err
		}
		mapping.Content = append(mapping.Content, name, node)
	}
	return mapping, nil
}
