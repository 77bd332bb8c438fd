package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

var namePattern = lazyregexp.New(`^[a-z][a-z0-9_-]{0,39}$`)

const nameHint = "write small letters, digits, _ and -, at most 40, a letter first"

// Parse reads flow.yaml, or the same as JSON. The findings have the file, the line and what
// mends them; the flow is usable only where none of them is an error. It is nil where nothing
// could be read.
func Parse(raw []byte) (*Flow, []fault.Finding) {
	if len(raw) > MaxBytes {
		return nil, []fault.Finding{{
			File: FileName, Line: 1, Message: fmt.Sprintf("it has %d bytes, the limit is %d", len(raw), MaxBytes),
			Hint: "make a unit of a part: a flow can run flows",
		}}
	}
	doc, findings := strictyaml.Parse(FileName, raw)
	if doc == nil || len(findings) > 0 {
		return nil, findings
	}
	object, ok := doc.Value.(map[string]any)
	if !ok {
		return nil, []fault.Finding{{
			File: FileName, Line: max(doc.LineAt(""), 1), Message: "it must hold nodes",
			Hint: "nodes: {NAME: {run: UNIT}}",
		}}
	}
	r := &reader{doc: doc, source: expr.Source{File: FileName, LineAt: doc.LineAt}}
	r.exact("", object)
	f := r.flow(object)
	f.lineAt = doc.LineAt
	slices.SortStableFunc(r.findings, func(a, b fault.Finding) int { return cmp.Compare(a.Line, b.Line) })
	return f, r.findings
}

// reader makes a flow of the values of a file, and gathers what is wrong with them.
type reader struct {
	doc      *strictyaml.Document
	source   expr.Source
	nodes    int // of all scopes
	findings []fault.Finding
}

func (r *reader) report(pointer, message, hint string) {
	r.findings = append(r.findings, fault.Finding{
		File: FileName, Line: r.doc.LineAt(pointer), Pointer: pointer,
		Message: message, Hint: hint,
	})
}

// exact reports the numbers of a document that a flow would change: it calculates with whole ones of 64 bits.
func (r *reader) exact(pointer string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			r.exact(strictyaml.Under(pointer, name), member)
		}
	case []any:
		for i, item := range v {
			r.exact(strictyaml.Under(pointer, strconv.Itoa(i)), item)
		}
	case uint64, json.Number:
		r.report(pointer, fault.Quote(fmt.Sprint(v))+" is beyond what a flow holds exactly, -2^63 to 2^63-1",
			"put it in quotes")
	}
}

var (
	flowKeys  = []string{"state", "output"}
	scopeKeys = []string{"start", "nodes", "max_steps"}
)

func (r *reader) flow(object map[string]any) *Flow {
	at := r.fields("", object, append(slices.Clone(scopeKeys), flowKeys...))
	f := &Flow{Scope: *r.scope(at, seen{names: []string{"input", "state"}}, 1)}
	if types, ok := at.object("state"); ok {
		f.State = types
		r.schema("/state", map[string]any{"type": "object", "properties": types}, "/properties")
	}
	output, _ := at.object("output")
	f.Output = make(map[string]*expr.Template, len(output))
	for _, name := range slices.Sorted(maps.Keys(output)) {
		f.Output[name] = r.template("/output/"+strictjson.Escape(name), output[name])
		r.variables(f.Output[name], []string{"input", "state"})
	}
	return f
}

// scope reads a graph. What its expressions see is handed down.
func (r *reader) scope(at fields, vars seen, depth int) *Scope {
	s := &Scope{pointer: at.pointer, Nodes: map[string]*Node{}, MaxSteps: at.whole("max_steps", MaxSteps, DefaultSteps)}
	if depth > MaxDepth {
		r.report(at.pointer, fmt.Sprintf("scopes are nested more than %d deep", MaxDepth),
			"make a unit of a part: a flow can run flows")
		return s
	}
	nodes, ok := at.object("nodes")
	if !at.has("nodes") || ok && len(nodes) == 0 {
		r.report(at.pointer, "it has no nodes", "nodes: {NAME: {run: UNIT}}")
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		pointer := at.pointer + "/nodes/" + strictjson.Escape(name)
		r.checkName(pointer, name)
		s.Nodes[name] = r.node(name, pointer, nodes[name], vars, depth)
	}
	if r.targets(at.pointer, s) {
		s.Start = r.start(at, s)
	}
	return s
}

func (r *reader) checkName(pointer, name string) {
	switch {
	case name == End:
		r.report(pointer, "a node can't be named end", "end as a target ends the scope; give it another name")
	case !namePattern().MatchString(name):
		r.report(pointer, fault.Quote(name)+" is not a valid node name", nameHint)
	}
}

// targets holds the edges of a scope against its nodes, and reports whether all lead to one.
func (r *reader) targets(pointer string, s *Scope) bool {
	before := len(r.findings)
	names := slices.Sorted(maps.Keys(s.Nodes))
	check := func(at, target string) {
		if _, ok := s.Nodes[target]; !ok && target != End && target != "" {
			r.report(at, "there is no node "+fault.Quote(target)+" in this scope", oneOf(target, append(names, End)))
		}
	}
	for _, name := range names {
		at := pointer + "/nodes/" + strictjson.Escape(name) + "/next"
		next := s.Nodes[name].Next
		check(at, next.Always)
		for _, action := range slices.Sorted(maps.Keys(next.ByAction)) {
			check(at+"/"+strictjson.Escape(action), next.ByAction[action])
		}
	}
	return len(r.findings) == before
}

// oneOf is the hint for a word that isn't among the known ones.
func oneOf(word string, known []string) string {
	some := known
	if len(known) > 12 {
		some = append(slices.Clone(known[:12]), "…")
	}
	return fault.Suggest(word, known, "there are "+strings.Join(some, ", "))
}

func (r *reader) start(at fields, s *Scope) string {
	if at.has("start") {
		start := at.text("start")
		if _, ok := s.Nodes[start]; !ok && start != "" && len(s.Nodes) > 0 {
			r.report(at.pointer+"/start", "there is no node "+fault.Quote(start)+" in this scope",
				oneOf(start, slices.Sorted(maps.Keys(s.Nodes))))
		}
		return start
	}
	entered := map[string]bool{}
	for name, n := range s.Nodes {
		for _, target := range n.Next.Targets() {
			entered[target] = entered[target] || target != name
		}
	}
	var first []string
	for _, name := range slices.Sorted(maps.Keys(s.Nodes)) {
		if !entered[name] {
			first = append(first, name)
		}
	}
	switch {
	case len(first) == 1:
		return first[0]
	case len(first) > 1:
		r.report(at.pointer, "it isn't clear where it starts: no edge leads to "+
			strings.Join(first[:min(len(first), 5)], ", "), "add start: NODE")
	case len(s.Nodes) > 0:
		r.report(at.pointer, "it isn't clear where it starts: an edge leads to every node", "add start: NODE")
	}
	return ""
}

// Targets returns where an edge may lead, sorted, each once, without End.
func (n Next) Targets() []string {
	targets := slices.Collect(maps.Values(n.ByAction))
	if n.Always != "" {
		targets = append(targets, n.Always)
	}
	targets = slices.DeleteFunc(targets, func(t string) bool { return t == End })
	slices.Sort(targets)
	return slices.Compact(targets)
}

// seen are the variables that expressions see at a place.
type seen struct{ names []string }

func (s seen) with(names ...string) seen {
	return seen{slices.Concat(s.names, names)}
}

// taken can't be the name of a map's item.
var taken = []string{
	"input", "state", "index", "visits", "error", "out", "errors", "run",
	"nil", "null", "true", "false", "let", "in", "not", "and", "or", "if", "else", "matches", "contains",
}

var variable = lazyregexp.New(`^[a-z][a-z0-9_]{0,39}$`)

func (r *reader) checkItem(pointer, name string) {
	switch {
	case slices.Contains(taken, name):
		r.report(pointer, "as can't be "+fault.Quote(name)+": it has a meaning in expressions",
			"give the item another name")
	case !variable().MatchString(name):
		r.report(pointer, fault.Quote(name)+" is not a valid variable name",
			"write small letters, digits and _, at most 40, a letter first")
	}
}

// variables reports those that a template names and that aren't there.
func (r *reader) variables(t *expr.Template, known []string) {
	for _, ref := range t.References() {
		if slices.Contains(known, ref.Path[0]) {
			continue
		}
		r.report(ref.Pointer, ref.Position+": there is no variable "+fault.Quote(ref.Path[0])+" here",
			missing(ref.Path[0], known))
	}
}

func missing(name string, known []string) string {
	switch name {
	case "out", "run", "errors":
		return name + " is there after the run: in set, action and collect"
	case "error":
		return "error is there in set, action and fallback; after an error edge it is state.error"
	case "item", "index":
		return "an item and its index are there inside a map"
	}
	if near := fault.Nearest(name, known); near != "" {
		return "did you mean " + near + "? a text in an expression stands in quotes"
	}
	return "there are " + strings.Join(known, ", ") + "; a text in an expression stands in quotes"
}
