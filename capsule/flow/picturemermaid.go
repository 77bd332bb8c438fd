package flow

import (
	"fmt"
	"strings"
)

// Mermaid writes the flow as a Mermaid flowchart, with the states of steps, which may be none.
func (f *Flow) Mermaid(steps []Step) string {
	p := f.draw(steps)
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	p.root.mermaid(&b, "  ")
	for _, l := range p.lines {
		fmt.Fprintf(&b, "  n%d %s n%d\n", l.from, l.mermaid(), l.to)
	}
	if len(steps) > 0 {
		b.WriteString("  classDef done fill:#d5f5d5,stroke:#2a7a2a\n  classDef failed fill:#f9d5d5,stroke:#a02020\n" +
			"  classDef open fill:#fff3c4,stroke:#9a7a00\n  classDef skipped fill:#eeeeee,stroke:#888888\n")
	}
	return b.String()
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
