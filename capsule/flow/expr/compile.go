package expr

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	lang "github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// maxNodes is how many syntax nodes an expression may have.
const maxNodes = 1000

// meterName is the variable with the meter; nobody can write it.
const meterName = " meter"

// code is a compiled expression.
type code struct {
	at      place
	before  string // what stands before it in its text
	source  string
	tree    ast.Node // as written
	program *vm.Program
	broken  string // why it can't be evaluated
}

// compile reads an expression twice: as it is written, for its types and references, and with
// the calls of the meter put in, for evaluation.
func compile(source, before string, at place) (c *code, finding *fault.Finding) {
	defer func() { // a mistake of the library's parser isn't the end of the program
		if problem := recover(); problem != nil {
			c, finding = nil, at.finding(before, source, 0, "it isn't an expression", "")
		}
	}()
	c = &code{at: at, before: before, source: source}
	wrong := func(err error) (*code, *fault.Finding) {
		message, hint, rune := explain(err)
		return nil, at.finding(before, source, rune, message, hint)
	}
	tree, err := parser.ParseWithConfig(source, config())
	if err != nil {
		return wrong(err)
	}
	c.tree = tree.Node
	if err := allowed(tree.Node); err != nil {
		return wrong(err)
	}
	if _, err := lang.Compile(source, options()...); err != nil {
		return wrong(err)
	}
	metered := append([]lang.Option{lang.Patch(&metering{})}, options()...)
	if c.program, err = lang.Compile(source, metered...); err != nil {
		return wrong(err)
	}
	return c, nil
}

func (c *code) eval(ctx context.Context, vars Vars) (any, error) {
	if c.program == nil {
		return nil, fault.New(fault.Capsule, "%s: %s", c.at, c.broken)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := newMeter(ctx)
	env := make(map[string]any, len(vars)+1)
	for name, value := range vars {
		env[name] = value
	}
	env[meterName] = m
	result, err := vm.Run(c.program, env)
	if err == nil {
		result, err = m.normal(result, 0)
	}
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	var bad *file.Error
	if errors.As(err, &bad) {
		return nil, c.failed(err, bad.From)
	}
	return nil, c.failed(err, 0)
}

// failed makes a fault of what an evaluation ended with, at a rune of the expression.
func (c *code) failed(err error, rune int) error {
	var bad *file.Error
	if errors.As(err, &bad) {
		bad.Message = sealed(bad.Message, c.source)
	}
	message, hint, _ := explain(err)
	return fault.New(fault.Capsule, "%s, %s: %s", c.at, c.at.column(c.before, c.source, rune), fault.Foreign(message)).
		WithHint("%s", hint)
}

func (p place) String() string {
	return fault.Finding{File: p.file, Line: p.line, Pointer: p.pointer}.Where()
}

// options are what every expression is compiled with. Nothing is computed ahead of time: the
// optimizer would do so without a meter.
var options = sync.OnceValue(makeOptions)

func makeOptions() []lang.Option {
	all := []lang.Option{
		lang.Env(map[string]any{}), lang.AllowUndefinedVariables(), lang.AsAny(),
		lang.MaxNodes(maxNodes), lang.DisableAllBuiltins(),
		lang.Optimize(false), //nolint:misspell // a name of the library's
	}
	for _, name := range upstream {
		all = append(all, lang.EnableBuiltin(name))
	}
	for name, f := range functions {
		all = append(all, lang.Function(name, f.metered))
	}
	return all
}

// config is for the parser alone, what options are for the compiler.
func config() *conf.Config {
	c := conf.CreateNew()
	for _, option := range options() {
		option(c)
	}
	for name := range c.Disabled {
		delete(c.Builtins, name)
	}
	return c
}

// misuse is what this language refuses and expr-lang wouldn't.
type misuse struct {
	node          ast.Node
	message, hint string
}

func (m *misuse) Error() string { return m.message }

// allowed finds what an expression must not do: call what isn't a function of ours, or look at
// the variables as a whole.
func allowed(tree ast.Node) error {
	v := &allowing{callees: map[ast.Node]bool{}}
	ast.Walk(&tree, v)
	if v.found != nil {
		return v.found
	}
	return nil
}

type allowing struct {
	callees map[ast.Node]bool
	found   *misuse
}

// Visit implements ast.Visitor. It comes to a call after its callee.
func (v *allowing) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.CallNode:
		name, ok := n.Callee.(*ast.IdentifierNode)
		if !ok {
			v.report(n, "only functions can be called, not values", "")
			return
		}
		f, known := functions[name.Value]
		switch {
		case !known:
			v.report(n, "there is no function "+fault.Quote(name.Value), fault.Suggest(name.Value, names(), ""))
		case len(n.Arguments) < f.least || len(n.Arguments) > f.most:
			v.report(n, fmt.Sprintf("%s takes %s, not %d", name.Value, f.count(), len(n.Arguments)), f.usage)
		}
	case *ast.IdentifierNode:
		switch n.Value {
		case "$env":
			v.report(n, "$env isn't there", "name the variable itself")
		case "null":
			v.report(n, "there is no null", "write nil")
		}
	case *ast.BytesNode:
		v.report(n, "there are no bytes in JSON", "write a text, without b before the quotes")
	}
}

func (v *allowing) report(n ast.Node, message, hint string) {
	if v.found == nil {
		v.found = &misuse{node: n, message: message, hint: hint}
	}
}

// metering puts the calls of the meter into an expression.
type metering struct{}

// Visit implements ast.Visitor: children come first.
func (*metering) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.PredicateNode:
		n.Node = call("tick", n.Node, n.Node)
	case *ast.BuiltinNode:
		meterBuiltin(node, n)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok && !strings.HasPrefix(name.Value, " ") {
			n.Arguments = append([]ast.Node{&ast.IdentifierNode{Value: meterName}}, n.Arguments...)
		}
	case *ast.BinaryNode:
		meterOperator(node, n)
	}
}

func meterBuiltin(node *ast.Node, n *ast.BuiltinNode) {
	if n.Name == "sum" { // texts could be summed up, too, each time as a new one
		if len(n.Arguments) == 1 {
			n.Arguments = append(n.Arguments, &ast.PredicateNode{Node: &ast.PointerNode{}})
		}
		if p, ok := n.Arguments[1].(*ast.PredicateNode); ok {
			p.Node = call("number", p.Node, p.Node)
		}
	}
	if n.Name == "findLast" || n.Name == "findLastIndex" {
		findLast(n)
	}
	ast.Patch(node, call("tick", n, n))
}

// findLast takes the last of all that is found: the library's loop from the end leaves values on
// the stack, where a function takes them for its arguments.
func findLast(n *ast.BuiltinNode) {
	found := &ast.BuiltinNode{Name: "filter", Arguments: n.Arguments}
	if n.Name == "findLastIndex" {
		found.Map = &ast.PointerNode{Name: "index"}
	}
	n.Name, n.Arguments = "last", []ast.Node{found}
}

func meterOperator(node *ast.Node, n *ast.BinaryNode) {
	switch n.Operator {
	case "+", "-", "*":
		ast.Patch(node, call("arithmetic", n, &ast.StringNode{Value: n.Operator}, n.Left, n.Right))
	case "==":
		if !scalar(n.Left) && !scalar(n.Right) {
			ast.Patch(node, call("equal", n, n.Left, n.Right))
		}
	case "!=":
		if !scalar(n.Left) && !scalar(n.Right) {
			not := &ast.UnaryNode{Operator: "not", Node: call("equal", n, n.Left, n.Right)}
			ast.Patch(node, not)
		}
	case "in":
		ast.Patch(node, call("in", n, n.Left, n.Right))
	case "matches":
		ast.Patch(node, call("matches", n, n.Left, n.Right))
	}
}

// scalar reports whether a node is a literal that is compared in a moment.
func scalar(n ast.Node) bool {
	switch n.(type) {
	case *ast.NilNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		return true
	}
	return false
}

// call makes a call of one of our functions that have no name which can be written.
func call(name string, at ast.Node, args ...ast.Node) ast.Node {
	n := &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: " " + name},
		Arguments: append([]ast.Node{&ast.IdentifierNode{Value: meterName}}, args...),
	}
	n.SetLocation(at.Location())
	n.Callee.SetLocation(at.Location())
	return n
}

var (
	conversion = lazyregexp.New(`^interface conversion: interface \{\} is ([^,]+), not (\S+)$`)
	ofType     = lazyregexp.New(`\b(int64|float64)\b|map\[string\](interface \{\}|any)|\[\](interface \{\}|any)|` +
		`interface \{\}|<nil>`)
)

// explain says what an error of the library means, what to do, and at which rune it is.
func explain(err error) (message, hint string, rune int) {
	var bad *file.Error
	var ours *misuse
	switch {
	case errors.As(err, &ours):
		return ours.message, ours.hint, ours.node.Location().From
	case errors.Is(err, errTime):
		return errTime.Error(), "look at fewer values, or let a capsule do it", 0
	case errors.Is(err, errMemory):
		return errMemory.Error(), "let a capsule do it, and give files", 0
	case !errors.As(err, &bad):
		return wordsOf(err.Error()), "", 0
	}
	rune = bad.From
	switch {
	case bad.Message == "memory budget exceeded":
		return errMemory.Error(), "let a capsule do it, and give files", rune
	case strings.HasPrefix(bad.Message, "compilation failed: expression exceeds"):
		return fmt.Sprintf("an expression has more than %d parts",
			maxNodes), "make two of it: set a part in the state first", rune
	case strings.HasPrefix(bad.Message, "cannot fetch "), strings.HasPrefix(bad.Message, "cannot get "):
		hint = "write ?. where a value may be missing"
	}
	return wordsOf(bad.Message), hint, rune
}

// wordsOf has JSON's words for Go's types.
func wordsOf(message string) string {
	if m := conversion().FindStringSubmatch(message); m != nil {
		message = "expected " + word(m[2]) + ", got " + word(m[1])
	}
	return fault.Clip(fault.OneLine(ofType().ReplaceAllStringFunc(message, word)), 300)
}

func word(goType string) string {
	switch strings.ReplaceAll(goType, "interface {}", "any") {
	case "map[string]any":
		return "an object"
	case "[]any", "[]string", "[]int":
		return "a list"
	case "string":
		return "a text"
	case "bool":
		return "a truth value"
	case "int", "int64", "float64":
		return "a number"
	case "<nil>", "nil":
		return "nothing"
	case "any":
		return "a value"
	}
	return goType
}

// What the library says of a failure may quote values: a text that isn't a number, the name of a
// member that an expression made, the whole of what has no members.
var (
	noNumber = lazyregexp.New(`(?s)^invalid operation: (int|float)\(.*\)$`)
	noMember = lazyregexp.New(`(?s)^cannot (fetch|get) (.*) from (.*)$`)
	goTypes  = lazyregexp.New(`^(<nil>|\*?[a-z0-9]+|\*?[a-z]+\.[A-Za-z]+|\[\].*|map\[.*)$`)
)

// sealed leaves the values out of a message of the library's. What stands in the expression
// itself may be said: it is its author's.
func sealed(message, source string) string {
	if m := noNumber().FindStringSubmatch(message); m != nil {
		return m[1] + " expects a number, or a text that is one"
	}
	if strings.HasPrefix(message, "cannot slice ") {
		return "only a list or a text has parts from one place to another"
	}
	m := noMember().FindStringSubmatch(message)
	if m == nil {
		return message
	}
	member, from := m[2], m[3]
	if !strings.Contains(source, member) {
		member = "a member"
	}
	if m[1] == "get" || !goTypes().MatchString(from) {
		from = "what has none"
	}
	return "cannot " + m[1] + " " + member + " from " + from
}
