package flow

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

const (
	maxWait  = 720 * time.Hour // of a timeout, a pause and a wait
	maxCache = 365 * 24 * time.Hour
	maxItems = 100_000 // that max can allow
	maxTries = 100
	maxText  = 4 << 10 // bytes of a description
)

// doing are the keys of which a node has at most one.
var doing = []string{"run", "flow", "branches", "ask", "wait"}

// nodeKeys are the keys of a node, and of which one they are a part: without that they mean
// nothing. "" belongs to every node.
var nodeKeys = map[string][]string{
	"description": nil, "set": nil, "action": nil, "next": nil, "when": nil, "max_visits": nil,
	"run": nil, "flow": nil, "branches": nil, "ask": nil, "wait": nil,
	"map":      {"run", "flow"},
	"with":     {"run", "flow"},
	"units":    {"run"},
	"cache":    {"run"},
	"scope":    {"flow"},
	"timeout":  {"run", "flow", "branches", "ask"},
	"retry":    {"run"},
	"fallback": {"run", "flow", "branches", "ask"},
	"show":     {"ask"}, "form": {"ask"}, "answers": {"ask"}, "approvers": {"ask"},
	"as": {"map"}, "parallel": {"map"}, "max": {"map"}, "tolerate": {"map"}, "collect": {"map"},
}

// usualAnswers are those of a question that names none.
var usualAnswers = []string{"approve", "reject"}

// branchKeys can't stand in a branch: it ends with its work, and writes nothing outside.
var branchKeys = []string{"set", "action", "next", "max_visits"}

func (r *reader) node(name, pointer string, value any, vars seen, depth int) *Node {
	n := &Node{Name: name, Line: r.doc.LineAt(pointer), pointer: pointer}
	if r.nodes++; r.nodes > MaxNodes {
		if r.nodes == MaxNodes+1 {
			r.report(pointer, fmt.Sprintf("the flow has more than %d nodes", MaxNodes),
				"make a unit of a part: a flow can run flows")
		}
		return n
	}
	object, ok := value.(map[string]any)
	if !ok && value != nil {
		r.report(pointer, "a node must be an object, not "+kindOf(value), "write it as {run: UNIT}")
		return n
	}
	at := r.fields(pointer, object, slices.Sorted(maps.Keys(nodeKeys)))
	r.together(at)
	n.Description = at.text("description")
	if len(n.Description) > maxText {
		r.report(at.at("description"), fmt.Sprintf("description is longer than %d bytes", maxText), "")
	}
	before := vars.with("visits")
	inside := r.readMap(n, at, before)
	r.readRun(n, at, inside)
	r.readFlow(n, at, inside, depth)
	r.readBranches(n, at, before, depth)
	r.readAsk(n, at, before)
	r.readWait(n, at, before)
	r.readEnds(n, at, before, inside)
	return n
}

// together reports keys that can't stand beside each other, and those that lack theirs.
func (r *reader) together(at fields) {
	var found []string
	for _, key := range doing {
		if at.has(key) {
			found = append(found, key)
		}
	}
	if len(found) > 1 {
		r.report(at.at(found[1]), "a node does one thing, and this one has "+strings.Join(found, " and "),
			"make a node of each, or branches")
	}
	for _, key := range slices.Sorted(maps.Keys(at.values)) {
		needs := nodeKeys[key]
		if len(needs) > 0 && !slices.ContainsFunc(needs, at.has) {
			r.report(at.at(key), key+" has no meaning without "+strings.Join(needs, " or "), "")
		}
	}
}

func (r *reader) readMap(n *Node, at fields, vars seen) (inside seen) {
	if !at.has("map") {
		return vars
	}
	m := &Map{
		Over:     at.shaped("map", "a list", isList),
		As:       "item",
		Parallel: at.whole("parallel", MaxParallel, DefaultParallel),
		Max:      at.whole("max", maxItems, DefaultItems),
		Tolerate: at.tolerance("tolerate"),
		Collect:  at.template("collect"),
	}
	if at.has("as") {
		m.As = at.text("as")
		r.checkItem(at.at("as"), m.As)
	}
	inside = vars.with(m.As, "index")
	r.variables(m.Over, vars.names)
	r.variables(m.Collect, inside.with("out", "errors", "run", "error").names)
	n.Map = m
	return inside
}

func (f fields) tolerance(key string) Tolerance {
	if !f.has(key) {
		return Tolerance{}
	}
	if text, ok := f.values[key].(string); ok {
		number, percent := strings.CutSuffix(text, "%")
		if p, err := strconv.ParseFloat(number, 64); percent && err == nil && p >= 0 && p <= 100 {
			return Tolerance{Percent: p}
		}
	}
	if n, ok := f.values[key].(int64); ok && n >= 0 && n <= maxItems {
		return Tolerance{Items: int(n)}
	}
	f.r.report(f.at(key), "tolerate must be a number of items, or a share of them", "write 3 or 5%")
	return Tolerance{}
}

func (r *reader) readRun(n *Node, at fields, vars seen) {
	if !at.has("run") {
		return
	}
	n.Run = at.shaped("run", "the name of a unit", isText)
	r.variables(n.Run, vars.names)
	n.Units = at.texts("units")
	for _, name := range n.Units {
		r.checkUnit(at.at("units"), name)
	}
	n.Cache = at.duration("cache", time.Second, maxCache)
	literal, fixed := n.Run.Literal()
	switch name, _ := literal.(string); {
	case fixed && name != "":
		r.checkUnit(at.at("run"), name)
		if n.Units != nil {
			r.report(at.at("units"), "units has no meaning where run isn't an expression", "leave it out")
		}
	case fixed && at.values["run"] == "":
		r.report(at.at("run"), "run is empty", "name a unit")
	case !fixed && !at.has("units"):
		r.report(at.at("run"), "run is an expression, and nothing says which units it may name", "add units: [NAME, …]")
	}
}

func (r *reader) checkUnit(pointer, name string) {
	if err := api.CheckUnitName(name); err != nil {
		public := fault.Public(err)
		r.report(pointer, public.Msg, public.Hint)
	}
}

func (r *reader) readFlow(n *Node, at fields, vars seen, depth int) {
	if !at.has("flow") {
		return
	}
	n.Scoping = Inherit
	if at.has("scope") {
		n.Scoping = Scoping(at.text("scope"))
		known := []string{string(Inherit), string(Shared), string(Isolated)}
		if !slices.Contains(known, string(n.Scoping)) {
			r.report(at.at("scope"), "scope can't be "+fault.Quote(string(n.Scoping)), oneOf(string(n.Scoping), known))
		}
		if n.Scoping == Shared && at.has("map") {
			r.report(at.at("scope"), "the items of a map can't share the state: nothing in them writes outside",
				"collect what they give, and set it")
		}
	}
	object, ok := at.object("flow")
	if !ok {
		return
	}
	if n.Scoping == Isolated {
		vars = seen{names: []string{"input", "state"}}
	}
	n.Flow = r.scope(r.fields(at.at("flow"), object, scopeKeys), vars, depth+1)
}

func (r *reader) readBranches(n *Node, at fields, vars seen, depth int) {
	branches, ok := at.object("branches")
	if !ok {
		return
	}
	pointer := at.at("branches")
	if len(branches) == 0 {
		r.report(pointer, "branches is empty", "branches: {NAME: {run: UNIT}}")
	}
	if depth >= MaxDepth {
		r.report(pointer, fmt.Sprintf("scopes are nested more than %d deep", MaxDepth),
			"make a unit of a part: a flow can run flows")
		return
	}
	n.Branches = make(map[string]*Node, len(branches))
	for _, name := range slices.Sorted(maps.Keys(branches)) {
		below := pointer + "/" + strictjson.Escape(name)
		r.checkName(below, name)
		object, _ := branches[name].(map[string]any)
		for _, key := range branchKeys {
			if _, there := object[key]; there {
				r.report(below+"/"+key, key+" has no meaning in a branch",
					"the node around the branches has it; what a branch gives is out."+name+" there")
			}
		}
		n.Branches[name] = r.node(name, below, branches[name], vars, depth+1)
	}
}

func (r *reader) readAsk(n *Node, at fields, vars seen) {
	if !at.has("ask") {
		return
	}
	n.Ask = &Ask{
		Question:  at.shaped("ask", "a text", isText),
		Show:      at.shaped("show", "an object", isObject),
		Answers:   at.texts("answers"),
		Approvers: at.texts("approvers"),
	}
	if err := api.CheckApprovers(n.Ask.Approvers); err != nil {
		told := fault.Public(err)
		r.report(at.at("approvers"), told.Msg, told.Hint)
	}
	r.variables(n.Ask.Question, vars.names)
	r.variables(n.Ask.Show, vars.names)
	for _, answer := range n.Ask.Answers {
		if !namePattern().MatchString(answer) || slices.Contains(reserved, answer) {
			r.report(at.at("answers"), fault.Quote(answer)+" can't be an answer",
				nameHint+"; error, timeout and exhausted have a meaning of their own")
		}
	}
	if n.Ask.Answers == nil {
		n.Ask.Answers = slices.Clone(usualAnswers)
	}
	if form, ok := at.object("form"); ok {
		n.Ask.Form = form
		r.schema(at.at("form"), form, "")
	}
}

func (r *reader) readWait(n *Node, at fields, vars seen) {
	if !at.has("wait") {
		return
	}
	n.Wait = at.shaped("wait", "a duration or a time", isText)
	r.variables(n.Wait, vars.names)
	literal, fixed := n.Wait.Literal()
	text, isText := literal.(string)
	if !fixed || !isText {
		return
	}
	_, notDuration := quantity.ParseDuration(text, 0, maxWait)
	_, notTime := time.Parse(time.RFC3339, text)
	if notDuration != nil && notTime != nil {
		r.report(at.at("wait"), fault.Quote(text)+" is not a duration of at most "+quantity.DurationText(maxWait)+
			", and no time", "write 30s, 2h or 2030-01-31T12:00:00Z")
	}
}

// readEnds reads what every node may have around its work.
func (r *reader) readEnds(n *Node, at fields, before, inside seen) {
	n.When = at.shaped("when", "true or false", isBool)
	n.With = at.shaped("with", "an object", isObject)
	n.Set = at.shaped("set", "an object", isObject)
	n.Action = at.shaped("action", "a text", isText)
	n.Fallback = at.template("fallback")
	n.Timeout = at.duration("timeout", time.Millisecond, maxWait)
	n.Visits = at.whole("max_visits", MaxSteps, 0)
	n.Retry = r.retry(at)
	n.Next = r.next(at)
	after := before.with("out", "errors", "run", "error")
	r.variables(n.When, before.names)
	r.variables(n.With, inside.names)
	r.variables(n.Fallback, inside.with("error").names)
	r.variables(n.Set, after.names)
	r.variables(n.Action, after.names)
}

func (r *reader) retry(at fields) Retry {
	if !at.has("retry") {
		return Retry{}
	}
	object, long := at.values["retry"].(map[string]any)
	if !long {
		return Retry{Tries: at.whole("retry", maxTries, 0)}
	}
	f := r.fields(at.at("retry"), object, []string{"tries", "wait", "factor", "max_wait", "on"})
	if !f.has("tries") {
		r.report(f.pointer, "retry doesn't say how many tries there are in all", "add tries: 3")
	}
	return Retry{
		Tries:   f.whole("tries", maxTries, 0),
		Wait:    f.duration("wait", 0, maxWait),
		Factor:  f.number("factor", 1, 100),
		MaxWait: f.duration("max_wait", 0, maxWait),
		On:      f.texts("on"),
	}
}

func (r *reader) next(at fields) Next {
	if !at.has("next") {
		return Next{}
	}
	switch v := at.values["next"].(type) {
	case string:
		if v == "" {
			r.report(at.at("next"), "next is empty", "name a node, or end")
		}
		return Next{Always: v}
	case map[string]any:
		return r.byAction(at, v)
	}
	at.wrong("next", "the name of a node, or an object of actions and nodes")
	return Next{}
}

func (r *reader) byAction(at fields, object map[string]any) Next {
	edges := make(map[string]string, len(object))
	for _, action := range slices.Sorted(maps.Keys(object)) {
		pointer := at.at("next") + "/" + strictjson.Escape(action)
		target, ok := object[action].(string)
		if !ok || target == "" {
			r.report(pointer, "an edge must be the name of a node, or end", "")
			continue
		}
		if action == "" {
			r.report(pointer, "an action is empty", "the action of a node that says none is default")
		}
		edges[action] = target
	}
	return Next{ByAction: edges}
}

// reserved are the actions that a node can't choose itself.
var reserved = []string{Error, TimedOut, Exhausted}
