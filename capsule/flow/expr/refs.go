package expr

import (
	"maps"
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// Reference is a variable that an expression looks at, with the members that it names.
type Reference struct {
	Path     []string // of `state.pages[0].url`: state, pages, 0, url
	Guarded  bool     // what isn't there is provided for: by ??, ?. or a comparison with nil
	Position string   // "column 8"
	Pointer  string
}

// References returns what a template looks at, in the order in which it is written.
func (t *Template) References() []Reference {
	var found []Reference
	t.each(func(c *code) { found = append(found, c.references()...) })
	return found
}

// each visits the expressions of a template.
func (t *Template) each(visit func(*code)) {
	if t == nil {
		return
	}
	if t.form.code != nil && t.form.code.tree != nil {
		visit(t.form.code)
	}
	for _, p := range t.form.parts {
		if p.code != nil {
			visit(p.code)
		}
	}
	for _, item := range t.form.list {
		item.each(visit)
	}
	for _, key := range slices.Sorted(maps.Keys(t.form.object)) {
		t.form.object[key].each(visit)
	}
}

func (c *code) references() []Reference {
	v := &referring{inner: map[ast.Node]bool{}, guarded: map[ast.Node]bool{}, local: map[string]bool{}}
	tree := c.tree
	ast.Walk(&tree, v)
	var found []Reference
	for _, n := range v.nodes {
		path := pathOf(n)
		if v.inner[n] || path == nil || v.local[path[0]] {
			continue
		}
		found = append(found, Reference{
			Path: path, Guarded: v.guarded[n], Position: c.at.column(c.before, c.source, rootOf(n).Location().From),
			Pointer: c.at.pointer,
		})
	}
	return found
}

// referring gathers identifiers and members of them. A node comes after its children.
type referring struct {
	nodes          []ast.Node
	inner, guarded map[ast.Node]bool
	local          map[string]bool // names that `let` declares
}

// Visit implements ast.Visitor.
func (v *referring) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		v.nodes = append(v.nodes, n)
	case *ast.MemberNode:
		v.nodes = append(v.nodes, n)
		if pathOf(n) != nil {
			v.inner[n.Node] = true
		}
		v.guarded[n] = n.Optional || v.guarded[n.Node]
	case *ast.CallNode:
		v.inner[n.Callee] = true
	case *ast.VariableDeclaratorNode:
		v.local[n.Name] = true
	case *ast.BinaryNode:
		v.guard(n)
	}
}

func (v *referring) guard(n *ast.BinaryNode) {
	_, leftNil := n.Left.(*ast.NilNode)
	_, rightNil := n.Right.(*ast.NilNode)
	comparison := n.Operator == "==" || n.Operator == "!="
	if n.Operator == "??" || comparison && rightNil {
		v.guarded[unchained(n.Left)] = true
	}
	if comparison && leftNil {
		v.guarded[unchained(n.Right)] = true
	}
}

func unchained(n ast.Node) ast.Node {
	if chain, ok := n.(*ast.ChainNode); ok {
		return chain.Node
	}
	return n
}

func rootOf(n ast.Node) ast.Node {
	for {
		member, ok := unchained(n).(*ast.MemberNode)
		if !ok {
			return unchained(n)
		}
		n = member.Node
	}
}

// pathOf returns a variable and its members as far as they are written; nil is none.
func pathOf(n ast.Node) []string {
	switch n := unchained(n).(type) {
	case *ast.IdentifierNode:
		return []string{n.Value}
	case *ast.MemberNode:
		path := pathOf(n.Node)
		if path == nil {
			return nil
		}
		switch property := n.Property.(type) {
		case *ast.StringNode:
			return append(path, property.Value)
		case *ast.IntegerNode:
			return append(path, strconv.Itoa(property.Value))
		}
	}
	return nil
}

// Outcomes returns what a template can give, as far as it is written: a literal, or those on
// both sides of `?:`. All is false where it can give something else, too.
func (t *Template) Outcomes() (values []any, all bool) {
	if value, ok := t.Literal(); ok {
		return []any{value}, true
	}
	if t.form.code == nil || t.form.code.tree == nil {
		return nil, false
	}
	return outcomes(t.form.code.tree)
}

func outcomes(n ast.Node) (values []any, all bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return []any{n.Value}, true
	case *ast.BoolNode:
		return []any{n.Value}, true
	case *ast.IntegerNode:
		return []any{int64(n.Value)}, true
	case *ast.FloatNode:
		return []any{n.Value}, true
	case *ast.NilNode:
		return []any{nil}, true
	case *ast.ConditionalNode:
		left, all1 := outcomes(n.Exp1)
		right, all2 := outcomes(n.Exp2)
		return append(left, right...), all1 && all2
	case *ast.VariableDeclaratorNode:
		return outcomes(n.Expr)
	}
	return nil, false
}
