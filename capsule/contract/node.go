package contract

import "regexp"

// node is one schema within a contract, checked and with its references resolved.
// The walk over payloads follows it, and gojsonschema gets its rendering.
type node struct {
	id      int
	pointer string // where it stands in the document

	always   *bool // a schema that is just true or false
	ref      *node
	target   bool  // of a reference
	types    kinds // 0 is any
	filePath bool

	// asserts are the keywords without subschemas, in draft-07's form.
	asserts  map[string]any
	required []string

	properties           map[string]*node
	patterns             []patternNode
	additionalProperties *node
	propertyNames        *node
	dependencies         map[string]*node
	dependentKeys        map[string][]string

	items           *node
	tuple           []*node
	additionalItems *node
	contains        *node

	allOf, anyOf, oneOf       []*node
	not, condition, then, els *node

	regexpOps int  // instructions of "pattern"
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

// inPlace lists the schemas that judge the very value that n judges.
func (n *node) inPlace() []*node {
	var list []*node
	for _, single := range []*node{n.ref, n.not, n.condition, n.then, n.els} {
		if single != nil {
			list = append(list, single)
		}
	}
	list = append(append(append(list, n.allOf...), n.anyOf...), n.oneOf...)
	for _, key := range sorted(n.dependencies) {
		list = append(list, n.dependencies[key])
	}
	return list
}
