package contract

import (
	"fmt"
	"regexp"
	"slices"
)

// node is one schema within a contract, checked and with its references resolved. The
// walk over payloads follows it; the engine gets its form.
type node struct {
	id      int
	pointer string // where it stands in the author's document
	text    []byte // of a contract that is taken: as it stands there

	form   map[string]any // what the engine is given: draft-07, children as references
	also   []any          // further forms that have to hold, without nodes of their own
	always *bool          // a schema that is just true or false

	notes    notes
	types    kinds // 0 is any
	filePath bool

	one   map[string]*node            // by keyword: "$ref", "items", "not"…
	many  map[string][]*node          // "allOf", "anyOf", "oneOf", and "items" where it is a list
	named map[string]map[string]*node // "properties", and "dependencies" that are schemas

	patterns      []patternNode
	order         []string // of the properties
	required      []string
	dependentKeys map[string][]string

	regexpOps int  // instructions of "pattern"
	perStep   int  // bytes of a string that "format" checks in one step; 0: it checks none
	quoted    int  // bytes of the contract that one error message would hold
	compares  bool // whether it writes out the value to compare it: enum, const, uniqueItems

	expansion int // see measure
	height    int
}

// patternNode is one entry of patternProperties.
type patternNode struct {
	re     *regexp.Regexp
	ops    int
	schema *node
}

func newNode(id int, pointer string) *node {
	return &node{
		id: id, pointer: pointer, form: map[string]any{},
		one: map[string]*node{}, many: map[string][]*node{}, named: map[string]map[string]*node{},
	}
}

// never reports whether no value is allowed.
func (n *node) never() bool { return n.always != nil && !*n.always }

func (n *node) name() string { return fmt.Sprintf("n%d", n.id) }

// slot is what stands in a form for n: the engine says more of a bare false.
func (n *node) slot() any {
	if n.always != nil {
		return *n.always
	}
	return map[string]any{"$ref": "#/$defs/" + n.name()}
}

func slots(nodes []*node) []any {
	list := make([]any, len(nodes))
	for i, n := range nodes {
		list[i] = n.slot()
	}
	return list
}

func slotsByName(nodes map[string]*node) map[string]any {
	m := make(map[string]any, len(nodes))
	for name, n := range nodes {
		m[name] = n.slot()
	}
	return m
}

// depend notes that a field asks for others.
func (n *node) depend(field string, names []string) {
	if n.dependentKeys == nil {
		n.dependentKeys = map[string][]string{}
	}
	n.dependentKeys[field] = append(n.dependentKeys[field], names...)
}

// dependOn notes that a field asks for a schema to hold.
func (n *node) dependOn(field string, schema *node) {
	if n.named["dependencies"] == nil {
		n.named["dependencies"] = map[string]*node{}
	}
	n.named["dependencies"][field] = schema
}

// alternatives lists the schemas that say what the value of n is, or might be.
func (n *node) alternatives() []*node {
	var list []*node
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list = append(list, n.many[key]...)
	}
	for _, key := range []string{"$ref", "then", "else"} {
		if child := n.one[key]; child != nil {
			list = append(list, child)
		}
	}
	for _, key := range sorted(n.named["dependencies"]) {
		list = append(list, n.named["dependencies"][key])
	}
	return list
}

// inPlace lists the schemas that judge the very value that n judges.
func (n *node) inPlace() []*node {
	list := n.alternatives()
	for _, key := range []string{"not", "if"} {
		if child := n.one[key]; child != nil {
			list = append(list, child)
		}
	}
	return list
}

// parts lists the schemas right below n, and what it refers to.
func (n *node) parts() []*node {
	var list []*node
	for _, child := range n.one {
		list = append(list, child)
	}
	for _, children := range n.many {
		list = append(list, children...)
	}
	for _, children := range n.named {
		for _, child := range children {
			list = append(list, child)
		}
	}
	for _, p := range n.patterns {
		list = append(list, p.schema)
	}
	return list
}

// closure returns the nodes and all that next leads to from them, each once.
func closure(nodes []*node, next func(*node) []*node) []*node {
	var all []*node
	seen := map[*node]bool{}
	for waiting := slices.Clone(nodes); len(waiting) > 0; {
		n := waiting[0]
		waiting = waiting[1:]
		if !seen[n] {
			seen[n] = true
			all, waiting = append(all, n), append(waiting, next(n)...)
		}
	}
	return all
}

// item is the schema for the i-th element, nil for any.
func (n *node) item(i int) *node {
	tuple := n.many["items"]
	switch {
	case i < len(tuple):
		return tuple[i]
	case tuple != nil:
		return n.one["additionalItems"]
	}
	return n.one["items"]
}
