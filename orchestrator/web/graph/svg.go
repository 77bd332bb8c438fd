package graph

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
)

const (
	svgHead = `<svg width="%.0f" height="%.0f" viewBox="-2 -2 %[1]g %[2]g" role="group" aria-label="%[3]s"><defs>` +
		`<marker id="m" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">` +
		`<path d="M0 .5 8 4 0 7.5z"/></marker>` +
		`<marker id="mn" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">` +
		`<path class="far" d="M0 .5 8 4 0 7.5z"/></marker></defs>`
	svgText  = `<text x="%.0f" y="%.0f"%s>%s`
	svgLabel = `<g class="lab"><rect x="%.0f" y="%.0f" width="%.0f" height="16"/>`
	svgTitle = `<g class="lab"><rect class="body" x="4" y="4" width="%.0f" height="24" rx="4"/></g>`
	svgBox   = `<rect%s x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="%.0f"/>`
	svgMark  = `<svg class="%s" x="10" y="%d" width="16" height="16"><use href="#i-%s"/></svg>`
	svgShift = `<g transform="translate(%.0f %.0f)"`
)

// drawing is a picture on its way to its text.
type drawing struct{ strings.Builder }

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.Builder, format, args...) }

func (l *layout) svg(label string) template.HTML {
	var d drawing
	w, h := l.turned(l.across+4, l.along+4)
	d.add(svgHead, w, h, escape(label))
	d.layout(l)
	d.add("</svg>\n")
	return template.HTML(d.String()) //nolint:gosec // every text in it went through escape
}

func (l *layout) turned(across, along float64) (x, y float64) {
	if l.right {
		return along, across
	}
	return across, along
}

// layout draws all: the lines first, which boxes may hide.
func (d *drawing) layout(l *layout) {
	d.add(`<g aria-hidden="true">`)
	d.lines(l)
	for _, e := range l.lines {
		if e.label >= 0 {
			x, y := l.turned(e.bends[0].x, l.tops[e.label]+l.deeps[e.label]/2)
			d.label(e.edge.Label, x, y)
		}
	}
	d.add("</g>")
	for _, layer := range l.layers {
		for _, p := range layer {
			if p.box == nil || p.box.w == 0 {
				continue
			}
			x, y := l.turned(p.x-p.near, l.tops[p.layer])
			switch p {
			case l.start:
				d.pill(p.box, "start", x, y)
			case l.end:
				d.pill(p.box, "end", x, y)
			default:
				d.node(p.box, x, y)
			}
		}
	}
}

// lines draws all lines. What was taken is above, and whole.
func (d *drawing) lines(l *layout) {
	l.ports()
	for _, taken := range []bool{false, true} {
		for _, e := range l.lines {
			_, pinned := e.to.box.pinned(true)
			if taken == (e.edge.Way == Taken) {
				d.line(e.edge.Way, l.path(e, taken), (taken || e.joins == nil) && (!pinned || e.back))
			}
		}
	}
	for _, p := range l.points {
		if p.box != nil && p.box.loop != nil {
			path, across, along := l.loop(p)
			d.line(p.box.loop.Way, path, true)
			x, y := l.turned(across, along)
			d.label(p.box.loop.Label, x, y)
		}
	}
}

func (d *drawing) line(way Way, path string, marked bool) {
	class, marker := "e", "mn"
	switch way {
	case Taken:
		class, marker = "e done", "m"
	case Untaken:
		class = "e no"
	}
	d.add(`<path class="%s" d="%s"`, class, path)
	if marked {
		d.add(` marker-end="url(#%s)"`, marker)
	}
	d.add("/>")
}

// label draws the label of a line around its middle.
func (d *drawing) label(text string, x, y float64) {
	if w := labelWidth(text); text != "" {
		d.add(svgLabel, x-w/2, y-8, w)
		d.text(text, ` text-anchor="middle"`, x, y+4, w, small)
		d.add("</g>")
	}
}

// text draws a text, or as much as there is room for.
func (d *drawing) text(text, attributes string, x, y, room float64, f font) {
	if text == "" {
		return
	}
	shown, isCut := cut(text, room, f)
	d.add(svgText, x, y, attributes, escape(shown))
	if isCut {
		d.add("<title>%s</title>", escape(text))
	}
	d.add("</text>")
}

// pill draws where the whole begins, or ends.
func (d *drawing) pill(b *box, name string, x, y float64) {
	d.add(`<g class="nd">`+svgBox, ` class="body"`, x, y, b.w, b.h, b.h/2)
	d.text(name, ` class="nm" text-anchor="middle"`, x+b.w/2, y+b.h/2+5, b.w, bold)
	d.add("</g>")
}

// node draws a node, which is a link if it leads somewhere.
func (d *drawing) node(b *box, x, y float64) {
	open, end := `<g role="img"`, "</g>"
	if href := b.node.href(); href != "" {
		open, end = fmt.Sprintf(`<a href="%s"`, escape(href)), "</a>"
	}
	d.add(svgShift+` data-key="%s">`, x, y, escape(b.node.ID))
	if b.inside != nil {
		d.add(svgBox, ` class="grp"`, 0.0, 0.0, b.w, b.h, 8.0)
	}
	d.add(`%s aria-label="%s">`, open, escape(b.node.says()))
	if b.inside == nil {
		d.body(b)
		d.add("%s</g>", end)
		return
	}
	d.title(b)
	d.add("%s"+svgShift+">", end, b.dx, b.dy)
	d.layout(b.inside)
	d.add("</g></g>")
}

// textIn is where the text of a node begins: behind its mark.
func textIn(n *Node) float64 {
	if looks[n.State].mark != "" {
		return 34
	}
	return 12
}

func (d *drawing) mark(s State, y int) {
	if mark := looks[s].mark; mark != "" {
		d.add(svgMark, s, y, mark)
	}
}

// title draws the name of a frame, beside the line that comes into it.
func (d *drawing) title(b *box) {
	in, room := textIn(b.node), b.w-20
	if b.pins[0] != nil && !b.inside.right {
		room = b.w/2 + *b.pins[0] - 8
	}
	d.add(svgTitle, min(room, in+textWidth(b.node.Name, small)+8))
	d.mark(b.node.State, 8)
	d.text(b.node.Name, ` class="nm"`, in, 20, room-in, small)
}

// body draws a node that is no frame.
func (d *drawing) body(b *box) {
	n, in, class, nameY := b.node, textIn(b.node), "", 22.0
	if looks[n.State].mark != "" {
		class = " " + string(n.State)
	}
	d.add(`<g class="nd%s">`, class)
	if n.stacked() {
		d.add(svgBox+svgBox, "", 8.0, 8.0, b.w, b.h, 6.0, "", 4.0, 4.0, b.w, b.h, 6.0)
	}
	d.add(svgBox, ` class="body"`, 0.0, 0.0, b.w, b.h, 6.0)
	if n.Line == "" && n.Progress == nil {
		nameY = b.h/2 + 5
	}
	d.mark(n.State, int(nameY)-13)
	d.text(n.Name, ` class="nm"`, in, nameY, b.w-in-18-textWidth(n.Aside, small), bold)
	d.text(n.Aside, ` text-anchor="end"`, b.w-10, nameY, b.w/2, small)
	d.text(n.Line, fmt.Sprintf(` class="%s"`, strings.TrimSpace(class)), in, 40, b.w-in-10, small)
	if n.Progress != nil {
		d.progress(n.Progress, in, b.w-in-10)
	}
	d.add("</g>")
}

// progress draws how far the items of a node are: a bar with what succeeded and what failed.
func (d *drawing) progress(p *Progress, x, w float64) {
	share := func(n int) float64 {
		if n <= 0 || p.Total <= 0 {
			return 0
		}
		return max(2, w*min(1, float64(n)/float64(p.Total)))
	}
	failed := share(p.Failed)
	done := min(share(p.Succeeded), w-failed)
	d.add(svgBox, ` class="mt"`, x, 50.0, w, 4.0, 2.0)
	d.add(svgBox, ` class="mv"`, x, 50.0, done, 4.0, 2.0)
	d.add(svgBox, ` class="mb"`, x+done, 50.0, failed, 4.0, 0.0)
	d.text(p.String(), ` class="nm"`, x, 74, w, bold)
}

// String is the progress in words, such as 37/1000, 2 failed.
func (p *Progress) String() string {
	text := fmt.Sprint(p.Succeeded + p.Failed)
	if p.Total > 0 {
		text += fmt.Sprintf("/%d", p.Total)
	}
	if p.Failed > 0 {
		text += fmt.Sprintf(", %d failed", p.Failed)
	}
	return text
}

// says is a node in words.
func (n *Node) says() string {
	text, sign := clean(n.Name), ": "
	parts := []string{looks[n.State].word, n.Aside, n.Line, ""}
	if n.Progress != nil {
		parts[3] = n.Progress.String()
	}
	for _, part := range parts {
		if part != "" {
			text, sign = text+sign+part, ", "
		}
	}
	if n.Hint != "" {
		text += "; " + n.Hint
	}
	return text
}

// href is where a node leads: nowhere with a scheme or a host.
func (n *Node) href() string {
	to, err := url.Parse(n.Href)
	if err != nil || to.Scheme != "" || to.Host != "" || to.User != nil {
		return ""
	}
	return to.String()
}
