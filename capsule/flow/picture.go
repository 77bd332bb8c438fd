package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/capsule/flow/expr"
)

const (
	maxLabel = 60   // letters of a text in a picture
	ofItems  = "[]" // ends the key of the counts of a map's items
)

// picture is a flow as boxes, lines and areas, which the formats write.
type picture struct {
	root   area
	lines  []line
	boxes  int
	counts map[string]map[StepState]int // of steps, by NodePath; of items with ofItems
}

// area is what is drawn around the nodes of a scope, or around branches.
type area struct {
	id    int
	name  string
	boxes []box
	areas []area
}

// box is a node.
type box struct {
	id      int
	name    string
	does    string // "" where it only decides
	shape   shape
	stacked bool // it is done for each item of a list
	states  string
	state   StepState // that is the worst of its steps; "": it has none
}

type line struct {
	from, to int
	action   string
	dotted   bool // of a failure
}

type shape int

const (
	decides shape = iota
	runs
	nests
	asks
	waits
	ends
)

// newPicture draws a flow, with the states of its steps, which may be none.
func newPicture(f *Flow, steps []Step) *picture {
	p := &picture{counts: map[string]map[StepState]int{}}
	for _, step := range steps {
		if !step.Final() && step.State != Open || strings.HasSuffix(step.Address, patchMark) {
			continue
		}
		at := NodePath(step.Address)
		if strings.HasSuffix(step.Address, "]") {
			at += ofItems
		}
		if p.counts[at] == nil {
			p.counts[at] = map[StepState]int{}
		}
		p.counts[at][step.State]++
	}
	p.scope(&p.root, &f.Scope, "")
	return p
}

// scope draws a graph into an area, and returns the box where it starts.
func (p *picture) scope(in *area, g *Scope, prefix string) int {
	ids := map[string]int{}
	for _, name := range g.InOrder() {
		ids[name] = p.node(in, g.Nodes[name], prefix+name)
	}
	for _, name := range g.InOrder() {
		for _, e := range g.Nodes[name].Next.Edges() {
			if e.Target == End && ids[End] == 0 {
				ids[End] = p.box(in, box{name: End, shape: ends})
			}
			p.lines = append(p.lines,
				line{ids[name], ids[e.Target], e.Action, e.Action == Error || e.Action == TimedOut})
		}
	}
	return ids[g.Start]
}

func (p *picture) box(in *area, b box) int {
	p.boxes++
	b.id = p.boxes
	in.boxes = append(in.boxes, b)
	return b.id
}

// node draws a node, and what is in it.
func (p *picture) node(in *area, n *Node, path string) int {
	does, shape := n.does()
	states, state := p.states(path)
	b := box{name: n.Name, does: does, shape: shape, stacked: n.Map != nil, states: states, state: state}
	if n.Flow == nil && n.Branches == nil {
		return p.box(in, b)
	}
	inner := area{name: n.Name}
	id := p.box(&inner, b)
	inner.id = id
	if n.Flow != nil {
		p.lines = append(p.lines, line{from: id, to: p.scope(&inner, n.Flow, path+"/")})
	}
	for _, name := range slices.Sorted(maps.Keys(n.Branches)) {
		p.lines = append(p.lines, line{from: id, to: p.node(&inner, n.Branches[name], path+"/"+name)})
	}
	in.areas = append(in.areas, inner)
	return id
}

// states says how the steps of a node stand, or those of its items.
func (p *picture) states(path string) (text string, worst StepState) {
	counts := p.counts[path]
	if items := p.counts[path+ofItems]; items != nil {
		counts = items
	}
	var parts []string
	for _, state := range []StepState{Done, Skipped, Open, Failed} {
		n := counts[state]
		if n == 0 {
			continue
		}
		worst = state
		if n == 1 {
			parts = append(parts, string(state))
		} else {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", "), worst
}

// does says what a node does, in a few words.
func (n *Node) does() (string, shape) {
	what, shape := "", decides
	switch {
	case n.Run != nil:
		what, shape = "run "+asWritten(n.Run), runs
	case n.Flow != nil:
		what, shape = "flow", nests
	case n.Branches != nil:
		what, shape = "branches", nests
	case n.Ask != nil:
		what, shape = "ask "+asWritten(n.Ask.Question), asks
	case n.Wait != nil:
		what, shape = "wait "+asWritten(n.Wait), waits
	}
	if n.Map != nil {
		what += ", for each of " + asWritten(n.Map.Over)
	}
	return what, shape
}

// asWritten is a template as it stands in the file, or its beginning, on one line.
func asWritten(t *expr.Template) string {
	text, ok := t.Raw().(string)
	if !ok {
		return "a list"
	}
	letters := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " "))
	if len(letters) > maxLabel {
		return string(letters[:maxLabel-1]) + "…"
	}
	return string(letters)
}

// Edge leads from a node on.
type Edge struct {
	Action string // "": all that have no edge of their own
	Target string // End, or a node
}

// Edges are the edges of a node, by their actions. A node without any ends its scope.
func (n Next) Edges() []Edge {
	var out []Edge
	if n.Always != "" {
		out = append(out, Edge{"", n.Always})
	}
	for _, action := range slices.Sorted(maps.Keys(n.ByAction)) {
		out = append(out, Edge{action, n.ByAction[action]})
	}
	return out
}

// InOrder returns the nodes' names, each after one that leads to it where there is such a one.
func (g *Scope) InOrder() []string {
	seen := map[string]bool{"": true, End: true}
	var out []string
	for _, first := range append([]string{g.Start}, slices.Sorted(maps.Keys(g.Nodes))...) {
		for queue := []string{first}; len(queue) > 0; queue = queue[1:] {
			name := queue[0]
			if seen[name] {
				continue
			}
			seen[name] = true
			out = append(out, name)
			for _, e := range g.Nodes[name].Next.Edges() {
				queue = append(queue, e.Target)
			}
		}
	}
	return out
}

func (a area) mermaid(b *strings.Builder, indent string) {
	for _, box := range a.boxes {
		b.WriteString(indent + box.mermaid())
		if box.state != "" {
			b.WriteString(":::" + string(box.state))
		}
		b.WriteString("\n")
	}
	for _, inner := range a.areas {
		fmt.Fprintf(b, "%ssubgraph s%d [\"%s\"]\n", indent, inner.id, mermaidText(inner.name))
		inner.mermaid(b, indent+"  ")
		b.WriteString(indent + "end\n")
	}
}

func (p *picture) mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	p.root.mermaid(&b, "  ")
	for _, l := range p.lines {
		fmt.Fprintf(&b, "  n%d %s n%d\n", l.from, l.mermaid(), l.to)
	}
	return b.String()
}

// mermaidStates are how boxes with a state look.
const mermaidStates = "  classDef done fill:#d5f5d5,stroke:#2a7a2a\n  classDef failed fill:#f9d5d5,stroke:#a02020\n" +
	"  classDef open fill:#fff3c4,stroke:#9a7a00\n  classDef skipped fill:#eeeeee,stroke:#888888\n"

func (b box) mermaid() string {
	lines := []string{mermaidText(b.name)}
	for _, text := range []string{b.does, b.states} {
		if text != "" {
			lines = append(lines, mermaidText(text))
		}
	}
	label := strings.Join(lines, "<br/>")
	if b.stacked {
		return fmt.Sprintf(`n%d@{ shape: procs, label: "%s" }`, b.id, label)
	}
	form := map[shape]string{
		decides: `n%d{"%s"}`, runs: `n%d["%s"]`, nests: `n%d[["%s"]]`, asks: `n%d{{"%s"}}`, waits: `n%d(["%s"])`,
		ends: `n%d(("%s"))`,
	}[b.shape]
	return fmt.Sprintf(form, b.id, label)
}

func (l line) mermaid() string {
	arrow := "-->"
	if l.dotted {
		arrow = "-.->"
	}
	if l.action == "" {
		return arrow
	}
	return fmt.Sprintf(`%s|"%s"|`, arrow, mermaidText(l.action))
}

// mermaidText is a text that Mermaid shows, and doesn't read.
func mermaidText(text string) string {
	return strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "&", "#amp;", "\\",
		"#92;").Replace(text)
}

type tree struct {
	strings.Builder
	*picture
}

func (t *tree) scope(g *Scope, path, indent string) {
	names := g.InOrder()
	for i, name := range names {
		t.node(g.Nodes[name], path+name, indent, i == len(names)-1)
	}
}

func (t *tree) node(n *Node, path, indent string, last bool) {
	branch, below := "├─ ", "│  "
	if last {
		branch, below = "└─ ", "   "
	}
	t.WriteString(indent + branch + n.Name)
	does, _ := n.does()
	states, _ := t.states(path)
	for _, text := range []string{does, n.Next.text(), states} {
		if text != "" {
			t.WriteString("  " + text)
		}
	}
	t.WriteString("\n")
	if n.Flow != nil {
		t.scope(n.Flow, path+"/", indent+below)
	}
	names := slices.Sorted(maps.Keys(n.Branches))
	for i, name := range names {
		t.node(n.Branches[name], path+"/"+name, indent+below, i == len(names)-1)
	}
}

// text is where a node leads, in a few words.
func (n Next) text() string {
	var parts []string
	for _, e := range n.Edges() {
		if e.Action == "" {
			parts = append(parts, e.Target)
		} else {
			parts = append(parts, e.Action+": "+e.Target)
		}
	}
	if parts == nil {
		return ""
	}
	return "→ " + strings.Join(parts, ", ")
}
