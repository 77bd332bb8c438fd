package web

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"

	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/orchestrator/web/graph"
)

// picture is how a flow is drawn: its definition with what is known of its nodes and edges.
type picture struct {
	looking
	// whole has everything unfolded, and nothing to fold it by: its nodes lead to where node says.
	whole bool
	// node says how a node stands: the node has its name, and what it does as its line.
	node func(n *flow.Node, path string, as *graph.Node)
	// took says how often a node went on by an action, "" being those without an edge of their own.
	took func(path, action string) int
	// begun says whether a node, or a branch, has begun in the run that is drawn; nil: none is.
	begun func(path string) bool
}

// drawing is a picture for a template, or why there is none.
type drawing struct {
	SVG    template.HTML
	Why    string // it isn't drawn
	Unfold string // the query that unfolds all that can be; "": there is nothing
	Fold   string // likewise
}

// draw draws a flow.
func (p *picture) draw(of *flow.Flow, label string) (drawing, error) {
	svg, err := graph.Draw(p.scope(&of.Scope, ""), graph.Options{Label: label})
	if errors.Is(err, graph.ErrTooLarge) {
		return drawing{Why: fmt.Sprintf("The flow has more than %d nodes, which is too much for a picture. "+
			"Fold its sub-flows, or read the table.", graph.MaxNodes)}, nil
	}
	open := p.looking
	open.fold, open.open = nil, nested(&of.Scope, "", func(n *flow.Node) bool { return n.Map != nil && n.Flow != nil })
	shut := p.looking
	shut.open, shut.fold = nil, nested(&of.Scope, "", func(n *flow.Node) bool { return n.Map == nil })
	d := drawing{SVG: svg}
	if len(p.fold) > 0 || len(open.open) > len(p.open) {
		d.Unfold = open.query("")
	}
	if len(p.open) > 0 || len(shut.fold) > len(p.fold) {
		d.Fold = shut.query("")
	}
	return d, err
}

// nested are the paths of the nodes with nodes inside, that are so.
func nested(s *flow.Scope, prefix string, wanted func(*flow.Node) bool) (paths []string) {
	if s == nil {
		return nil
	}
	for _, name := range s.InOrder() {
		paths = append(paths, nestedIn(s.Nodes[name], prefix+name, wanted)...)
	}
	return paths
}

func nestedIn(n *flow.Node, path string, wanted func(*flow.Node) bool) (paths []string) {
	if (n.Flow != nil || n.Branches != nil) && wanted(n) {
		paths = []string{path}
	}
	paths = append(paths, nested(n.Flow, path+"/", wanted)...)
	for _, name := range slices.Sorted(maps.Keys(n.Branches)) {
		paths = append(paths, nestedIn(n.Branches[name], path+"/"+name, wanted)...)
	}
	return paths
}

func (p *picture) scope(s *flow.Scope, prefix string) *graph.Graph {
	g := &graph.Graph{Edges: []graph.Edge{{
		From: graph.Outside, To: prefix + s.Start, Way: p.way(p.begun != nil && p.begun(prefix+s.Start)),
	}}}
	for _, name := range s.InOrder() {
		g.Nodes = append(g.Nodes, p.box(s.Nodes[name], prefix+name))
		g.Edges = append(g.Edges, p.edges(s.Nodes[name], prefix, name)...)
	}
	return g
}

// way is whether a line was taken, of which nothing is said without a run.
func (p *picture) way(taken bool) graph.Way {
	switch {
	case p.begun == nil:
		return graph.Unknown
	case taken:
		return graph.Taken
	}
	return graph.Untaken
}

func (p *picture) edges(n *flow.Node, prefix, name string) (all []graph.Edge) {
	leads := n.Next.Edges()
	if leads == nil {
		leads = []flow.Edge{{Target: flow.End}}
	}
	for _, e := range leads {
		times := p.took(prefix+name, e.Action)
		to := graph.Outside
		if e.Target != flow.End {
			to = prefix + e.Target
		}
		line := graph.Edge{From: prefix + name, To: to, Label: timesOf(e.Action, times), Way: p.way(times > 0)}
		all = append(all, line)
	}
	return all
}

// timesOf is the label of a line: its action, and how often it was taken where that isn't once.
func timesOf(action string, times int) string {
	if times < 2 {
		return action
	}
	if action != "" {
		action += " "
	}
	return action + "×" + num(int64(times))
}

// box is a node, with what is inside where that is unfolded.
func (p *picture) box(n *flow.Node, path string) graph.Node {
	b := graph.Node{ID: path, Name: n.Name, Line: does(n), Stack: n.Map != nil}
	b.Href, b.Hint = p.toSteps(path), "show its steps"
	p.node(n, path, &b)
	if n.Flow == nil && n.Branches == nil {
		return b
	}
	unfolded := !slices.Contains(p.fold, path)
	if n.Map != nil {
		unfolded = slices.Contains(p.open, path)
	}
	if !p.whole {
		b.Href, b.Hint = p.toggled(path, n.Map != nil), "unfold"
		if !unfolded {
			return b
		}
		b.Hint = "fold"
	}
	if b.Progress != nil {
		b.Name, b.Progress = b.Name+": "+b.Progress.String(), nil
	}
	if n.Flow != nil {
		b.Inside = p.scope(n.Flow, path+"/")
	} else {
		b.Inside = p.branches(n, path+"/")
	}
	return b
}

func (p *picture) branches(n *flow.Node, prefix string) *graph.Graph {
	g := &graph.Graph{}
	for _, name := range slices.Sorted(maps.Keys(n.Branches)) {
		at := prefix + name
		ended := p.took(at, "")
		g.Nodes = append(g.Nodes, p.box(n.Branches[name], at))
		g.Edges = append(g.Edges, graph.Edge{From: graph.Outside, To: at, Way: p.way(p.begun != nil && p.begun(at))},
			graph.Edge{From: at, To: graph.Outside, Way: p.way(ended > 0)})
	}
	return g
}

// does says what a node does, in a few words.
func does(n *flow.Node) string {
	what := "decides"
	switch {
	case n.Run != nil:
		what = asWritten(n.Run)
	case n.Flow != nil:
		what = "sub-flow"
	case n.Branches != nil:
		what = plural(int64(len(n.Branches)), "branch", "branches at once")
	case n.Ask != nil:
		what = "asks a person"
	case n.Wait != nil:
		what = "waits " + asWritten(n.Wait)
	case n.Set != nil:
		what = "sets values"
	}
	if n.Map != nil {
		what += fmt.Sprintf(", for each %s, %d at once", n.Map.As, cmp.Or(n.Map.Parallel, flow.DefaultParallel))
	}
	return what
}

func asWritten(t *expr.Template) string {
	if text, ok := t.Raw().(string); ok {
		return text
	}
	return "something"
}

// looking is what of a flow is shown, as the page's address says it.
type looking struct {
	fold, open []string // paths of sub-flows that are folded, and of maps that are unfolded
	Node       string   // whose steps are shown; "": all
	From       string   // the step from which it would be run again; "": the one that failed
	page       int64
}

// mostFolds is how many sub-flows an address can fold or unfold.
const mostFolds = 200

func lookingOf(r *request) looking {
	q := r.URL.Query()
	few := func(all []string) []string { return all[:min(len(all), mostFolds)] }
	return looking{few(q["fold"]), few(q["open"]), q.Get("node"), q.Get("from"), numberOf(r, "page")}
}

// query is an address of the same page.
func (l looking) query(fragment string) string {
	q := url.Values{"fold": l.fold, "open": l.open}
	if l.Node != "" {
		q.Set("node", l.Node)
	}
	if l.From != "" {
		q.Set("from", l.From)
	}
	if l.page > 0 {
		q.Set("page", fmt.Sprint(l.page))
	}
	return "?" + q.Encode() + fragment
}

func (l looking) toSteps(path string) string {
	l.Node, l.page = path, 0
	return l.query("#steps")
}

// toggled is the address where a node is folded if it is unfolded, and the other way around.
func (l looking) toggled(path string, isMap bool) string {
	list := &l.fold
	if isMap {
		list = &l.open
	}
	if i := slices.Index(*list, path); i >= 0 {
		*list = slices.Delete(slices.Clone(*list), i, i+1)
	} else {
		*list = append(slices.Clip(*list), path)
	}
	return l.query("")
}
