package flow

import (
	"maps"
	"slices"
	"strings"
)

// Tree writes the flow as lines for a terminal, with the states of steps, which may be none.
func (f *Flow) Tree(steps []Step) string {
	t := &tree{picture: f.draw(steps)}
	t.scope(&f.Scope, "", "")
	return t.String()
}

type tree struct {
	strings.Builder
	*picture
}

func (t *tree) scope(g *Scope, path, indent string) {
	names := g.inOrder()
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
	for _, e := range n.edges() {
		if e.action == "" {
			parts = append(parts, e.target)
		} else {
			parts = append(parts, e.action+": "+e.target)
		}
	}
	if parts == nil {
		return ""
	}
	return "→ " + strings.Join(parts, ", ")
}
