package strictyaml

import (
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// A YAML file may be no larger, deeper or longer than these, counted after aliases
// are followed: nine lines of aliases can stand for a billion values.
const (
	maxDepth = 32
	maxNodes = 10_000
	maxKey   = 128 // bytes
)

// Document is a YAML file as JSON values, which still knows where each one stood.
type Document struct {
	File string
	// Value is made of map[string]any, []any, string, int64, uint64, float64, bool, nil; of a JSON text, whole numbers
	// beyond those are json.Number.
	Value any
	root  *yaml.Node // nil when there is nothing in the file
}

// Parse reads one YAML document of a file, whose name stands in the findings. Where it can't be read as JSON values the
// findings say why, and the document is nil only when its syntax is broken.
func Parse(file string, raw []byte) (*Document, []fault.Finding) {
	root, finding := ParseNode(file, raw)
	if finding != nil {
		return nil, []fault.Finding{*finding}
	}
	if root == nil {
		return &Document{File: file}, nil
	}
	return FromNode(file, root)
}

// FromNode makes a document of a node of a file that ParseNode has read. Pointers into it
// begin at the node. Its findings are those of Parse.
func FromNode(file string, root *yaml.Node) (*Document, []fault.Finding) {
	c := converter{file: file}
	value := c.value(root, 0)
	return &Document{File: file, Value: value, root: root}, c.findings
}

// LineAt returns the line of what a JSON pointer names, or of the nearest thing around
// it that is there. Zero stands for an empty file.
func (d *Document) LineAt(pointer string) int {
	if d.root == nil {
		return 0
	}
	node, line := d.root, d.root.Line
	for _, token := range strictjson.Path(pointer) {
		next, at := child(node, token)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return line
}

func child(n *yaml.Node, token string) (*yaml.Node, int) {
	for hops := 0; n.Kind == yaml.AliasNode && hops < maxDepth; hops++ {
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
