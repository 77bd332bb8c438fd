package flow

import (
	"fmt"
	"strings"
)

// DOT writes the flow for Graphviz, with the states of steps, which may be none.
func (f *Flow) DOT(steps []Step) string {
	p := f.draw(steps)
	var b strings.Builder
	b.WriteString("digraph flow {\n  node [fontname=\"sans-serif\", shape=box];\n  edge [fontname=\"sans-serif\"];\n")
	p.root.dot(&b, "  ")
	for _, l := range p.lines {
		style := ""
		if l.dotted {
			style = ", style=dotted"
		}
		fmt.Fprintf(&b, "  n%d -> n%d [label=%s%s];\n", l.from, l.to, dotText(l.action), style)
	}
	b.WriteString("}\n")
	return b.String()
}

func (a area) dot(b *strings.Builder, indent string) {
	for _, box := range a.boxes {
		b.WriteString(indent + box.dot() + "\n")
	}
	for _, inner := range a.areas {
		fmt.Fprintf(b, "%ssubgraph cluster_%d {\n%s  label=%s;\n", indent, inner.id, indent, dotText(inner.name))
		inner.dot(b, indent+"  ")
		b.WriteString(indent + "}\n")
	}
}

func (b box) dot() string {
	var lines []string
	for _, text := range []string{b.name, b.does, b.states} {
		if text != "" {
			lines = append(lines, text)
		}
	}
	form := map[shape]string{decides: "diamond", runs: "box", nests: "component", asks: "hexagon", waits: "oval", ends: "doublecircle"}[b.shape]
	if b.stacked {
		form = "box3d"
	}
	colour := map[StepState]string{Done: "#d5f5d5", Failed: "#f9d5d5", Open: "#fff3c4", Skipped: "#eeeeee"}[b.state]
	if colour != "" {
		colour = fmt.Sprintf(`, style=filled, fillcolor="%s"`, colour)
	}
	return fmt.Sprintf("n%d [label=%s, shape=%s%s];", b.id, dotText(strings.Join(lines, "\n")), form, colour)
}

// dotText is a quoted text, whose line breaks are those of a label.
func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
