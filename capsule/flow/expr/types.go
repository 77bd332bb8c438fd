package expr

import (
	"maps"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// Kind is a set of the types that a value may have.
type Kind uint8

// The kinds. A file is a value of a type that isn't JSON's.
const (
	Null Kind = 1 << iota
	Bool
	Number
	Text
	List
	Object
	File
)

var kindNames = []string{"nothing", "true or false", "a number", "a text", "a list", "an object", "a file"}

func (k Kind) String() string {
	var names []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// Type is what is known of a value before it is there. Nil, and one without Kinds, is any.
type Type struct {
	Kinds  Kind
	Fields map[string]*Type // of an object; one that isn't here may be there unless Closed
	Closed bool
	Item   *Type // of a list
}

// Any reports whether nothing is known.
func (t *Type) Any() bool { return t == nil || t.Kinds == 0 }

// Join is the type of a value that has one of two.
func Join(a, b *Type) *Type { return join(a, b, 8) }

func join(a, b *Type, depth int) *Type {
	switch {
	case a == b:
		return a
	case a.Any() || b.Any() || depth == 0:
		return nil
	}
	t := &Type{Kinds: a.Kinds | b.Kinds}
	switch {
	case b.Kinds&Object == 0:
		t.Fields, t.Closed = a.Fields, a.Closed
	case a.Kinds&Object == 0:
		t.Fields, t.Closed = b.Fields, b.Closed
	default:
		t.Fields, t.Closed = joinFields(a.Fields, b.Fields, depth), a.Closed && b.Closed
	}
	switch {
	case b.Kinds&List == 0:
		t.Item = a.Item
	case a.Kinds&List == 0:
		t.Item = b.Item
	default:
		t.Item = join(a.Item, b.Item, depth-1)
	}
	return t
}

func joinFields(a, b map[string]*Type, depth int) map[string]*Type {
	fields := maps.Clone(a)
	if fields == nil {
		fields = make(map[string]*Type, len(b))
	}
	for name, field := range b {
		if mine, ok := a[name]; ok {
			field = join(mine, field, depth-1)
		}
		fields[name] = field
	}
	return fields
}

// TypeOf is the type of a literal.
func TypeOf(value any) *Type {
	switch v := value.(type) {
	case nil:
		return &Type{Kinds: Null}
	case bool:
		return &Type{Kinds: Bool}
	case string:
		return &Type{Kinds: Text}
	case []any:
		return &Type{Kinds: List}
	case map[string]any:
		t := &Type{Kinds: Object, Closed: true, Fields: make(map[string]*Type, len(v))}
		for name, member := range v {
			t.Fields[name] = TypeOf(member)
		}
		return t
	}
	return &Type{Kinds: Number}
}

// Type infers what a template gives from the types of the variables.
func (t *Template) Type(vars map[string]*Type) *Type {
	f := t.form
	switch {
	case f.code != nil:
		if f.code.tree == nil {
			return nil
		}
		return inferring(vars).of(f.code.tree)
	case f.parts != nil:
		return &Type{Kinds: Text}
	case f.list != nil:
		return listType(f.list, func(item *Template) *Type { return item.Type(vars) })
	case f.object != nil:
		object := &Type{Kinds: Object, Closed: true, Fields: make(map[string]*Type, len(f.object))}
		for name, member := range f.object {
			object.Fields[name] = member.Type(vars)
		}
		return object
	}
	return TypeOf(f.literal)
}

// inferring are the types of what an expression sees: variables, names of `let`, and # and
// #index within a predicate.
type inferring map[string]*Type

func (vars inferring) with(name string, t *Type) inferring {
	more := maps.Clone(vars)
	if more == nil {
		more = inferring{}
	}
	more[name] = t
	return more
}

func (vars inferring) of(n ast.Node) *Type {
	switch n := n.(type) {
	case *ast.NilNode:
		return &Type{Kinds: Null}
	case *ast.BoolNode:
		return &Type{Kinds: Bool}
	case *ast.IntegerNode, *ast.FloatNode:
		return &Type{Kinds: Number}
	case *ast.StringNode:
		return &Type{Kinds: Text}
	case *ast.IdentifierNode:
		return vars[n.Value]
	case *ast.PointerNode:
		return vars["#"+n.Name]
	case *ast.ChainNode:
		return orNull(vars.of(n.Node))
	case *ast.MemberNode:
		return vars.member(n)
	case *ast.SliceNode:
		return vars.of(n.Node)
	case *ast.UnaryNode:
		return vars.unary(n)
	case *ast.BinaryNode:
		return vars.binary(n)
	case *ast.ConditionalNode:
		return Join(vars.of(n.Exp1), vars.of(n.Exp2))
	case *ast.VariableDeclaratorNode:
		return vars.with(n.Name, vars.of(n.Value)).of(n.Expr)
	case *ast.SequenceNode:
		return vars.of(n.Nodes[len(n.Nodes)-1])
	case *ast.ArrayNode:
		return listType(n.Nodes, vars.of)
	case *ast.MapNode:
		return vars.object(n)
	case *ast.BuiltinNode:
		return vars.builtin(n.Name, n.Arguments)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			return vars.builtin(name.Value, n.Arguments)
		}
	}
	return nil
}

func orNull(t *Type) *Type {
	if t.Any() {
		return nil
	}
	maybe := *t
	maybe.Kinds |= Null
	return &maybe
}

func notNull(t *Type) *Type {
	if t.Any() || t.Kinds == Null {
		return t
	}
	sure := *t
	sure.Kinds &^= Null
	return &sure
}

// FileFields are what expressions see of a file.
var FileFields = map[string]*Type{"name": {Kinds: Text}, "size_bytes": {Kinds: Number}, "sha256": {Kinds: Text}}

func (vars inferring) member(n *ast.MemberNode) *Type {
	base := vars.of(n.Node)
	if base.Any() {
		return nil
	}
	switch property := n.Property.(type) {
	case *ast.StringNode:
		return base.Field(property.Value)
	case *ast.IntegerNode:
		if base.Kinds&^Null == List {
			return base.Item
		}
	}
	return nil
}

// Field is the type of a member of an object; any where that isn't known.
func (t *Type) Field(name string) *Type {
	if t.Any() {
		return nil
	}
	switch t.Kinds &^ Null {
	case Object:
		return t.Fields[name]
	case File:
		return FileFields[name]
	}
	return nil
}

func (vars inferring) unary(n *ast.UnaryNode) *Type {
	switch n.Operator {
	case "not", "!":
		return &Type{Kinds: Bool}
	}
	return &Type{Kinds: Number}
}

func (vars inferring) binary(n *ast.BinaryNode) *Type {
	switch n.Operator {
	case "-", "*", "/", "%", "**", "^":
		return &Type{Kinds: Number}
	case "..":
		return &Type{Kinds: List, Item: &Type{Kinds: Number}}
	case "??":
		return Join(notNull(vars.of(n.Left)), vars.of(n.Right))
	case "+":
		for _, side := range []ast.Node{n.Left, n.Right} {
			if t := vars.of(side); !t.Any() && (t.Kinds == Number || t.Kinds == Text) {
				return &Type{Kinds: t.Kinds}
			}
		}
		return &Type{Kinds: Number | Text}
	}
	return &Type{Kinds: Bool}
}

// listType is the type of a list with these items.
func listType[T any](items []T, of func(T) *Type) *Type {
	list := &Type{Kinds: List}
	for i, item := range items {
		if i == 0 {
			list.Item = of(item)
			continue
		}
		list.Item = Join(list.Item, of(item))
	}
	return list
}

func (vars inferring) object(n *ast.MapNode) *Type {
	object := &Type{Kinds: Object, Closed: true, Fields: map[string]*Type{}}
	for _, node := range n.Pairs {
		pair, ok := node.(*ast.PairNode)
		if !ok {
			return &Type{Kinds: Object}
		}
		name, ok := pair.Key.(*ast.StringNode)
		if !ok {
			return &Type{Kinds: Object}
		}
		object.Fields[name.Value] = vars.of(pair.Value)
	}
	return object
}

// results are the kinds that functions give, where those don't depend on their arguments.
var results = map[string]Kind{
	"all": Bool, "any": Bool, "none": Bool, "one": Bool, "hasPrefix": Bool, "hasSuffix": Bool,
	"len": Number, "count": Number, "sum": Number, "abs": Number, "ceil": Number, "floor": Number, "round": Number,
	"int": Number, "float": Number,
	"indexOf": Number, "lastIndexOf": Number, "findIndex": Number | Null, "findLastIndex": Number | Null,
	"min": Number | Null, "max": Number | Null, "mean": Number | Null, "median": Number | Null,
	"type": Text, "upper": Text, "lower": Text, "trim": Text, "trimPrefix": Text, "trimSuffix": Text, "repeat": Text,
	"replace": Text,
	"join":    Text, "string": Text, "toJSON": Text, "toBase64": Text, "fromBase64": Text,
	"values": List, "toPairs": List, "flatten": List, "concat": List,
	"groupBy": Object, "fromPairs": Object,
}

func (vars inferring) builtin(name string, args []ast.Node) *Type {
	if kinds, ok := results[name]; ok {
		return &Type{Kinds: kinds}
	}
	switch name {
	case "keys", "split":
		return &Type{Kinds: List, Item: &Type{Kinds: Text}}
	}
	if len(args) == 0 {
		return nil
	}
	list := vars.of(args[0])
	item := (*Type)(nil)
	if !list.Any() && list.Kinds&^Null == List {
		item = list.Item
	}
	switch name {
	case "filter", "sortBy", "sort", "reverse", "take", "uniq":
		return &Type{Kinds: List, Item: item}
	case "chunk":
		return &Type{Kinds: List, Item: &Type{Kinds: List, Item: item}}
	case "find", "findLast", "first", "last":
		return orNull(item)
	case "map":
		if body, ok := args[len(args)-1].(*ast.PredicateNode); ok {
			inside := vars.with("#", item).with("#index", &Type{Kinds: Number})
			return &Type{Kinds: List, Item: inside.of(body.Node)}
		}
	}
	return nil
}
