package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	portsApart = 14 // of lines that end at the same side of a box
	bow        = 8  // of a line that goes around a box
	loopOut    = 26
)

// ports finds where lines end at the boxes above and below: straight above or below where they
// come from, if they can.
func (l *layout) ports() {
	above, below := map[*point][]*line{}, map[*point][]*line{}
	for _, e := range l.lines {
		if e.back {
			continue
		}
		below[e.from] = append(below[e.from], e)
		if e.joins == nil {
			above[e.to] = append(above[e.to], e)
		}
	}
	for _, layer := range l.layers {
		for _, p := range layer {
			p.spread(above[p], true)
			p.spread(below[p], false)
		}
	}
}

// spread finds the ports of lines that come to a box, or go from it.
func (p *point) spread(lines []*line, come bool) {
	slices.SortStableFunc(lines, func(a, b *line) int { return cmp.Compare(a.want(come), b.want(come)) })
	reach := p.near - min(16, p.near*0.4)
	gap := min(portsApart, 2*reach/float64(max(1, len(lines)-1)))
	wishes, rooms := make([]wish, len(lines)), make([]float64, len(lines))
	for i, e := range lines {
		wishes[i] = wish{min(max(e.want(come), p.x-reach), p.x+reach), 1}
		rooms[i] = gap
	}
	for i, x := range nearest(wishes, rooms) {
		x = min(max(x, p.x-reach+gap*float64(i)), p.x+reach-gap*float64(len(lines)-1-i))
		if at, ok := p.box.pinned(come); ok {
			x = p.x + at
		}
		if come {
			lines[i].b = x
		} else {
			lines[i].a = x
		}
	}
}

// want is where a line should end so that it is straight there.
func (e *line) want(come bool) float64 {
	n := len(e.bends)
	at, pinned := e.to.box.pinned(true)
	switch {
	case come && n > 0:
		return e.bends[n-1].x
	case come:
		return e.a
	case n > 0:
		return e.bends[0].x
	case pinned:
		return e.to.x + at
	}
	return (e.from.x + e.to.x) / 2
}

// pen writes the path of a line.
type pen struct {
	strings.Builder
	right bool
	x, y  float64
}

// put writes a command with its points, which are across and along, unless it leads nowhere.
func (p *pen) put(command string, at ...float64) {
	x, y := at[len(at)-2], at[len(at)-1]
	if x == p.x && y == p.y {
		return
	}
	p.x, p.y = x, y
	p.WriteString(command)
	for ; len(at) > 0; at = at[2:] {
		x, y := at[0], at[1]
		if p.right {
			x, y = y, x
		}
		fmt.Fprintf(&p.Builder, " %.0f %.0f", x, y)
	}
}

// bend writes an S between two places along. A straight line is left to what comes next.
func (p *pen) bend(x, from, to float64) {
	if mid := (from + to) / 2; x != p.x {
		p.put("L", p.x, from)
		p.put("C", p.x, mid, x, mid, x, to)
	}
}

// last is the line as which a line comes to its end.
func (e *line) last() *line {
	for e.joins != nil {
		e = e.joins
	}
	return e
}

// path is the way of a line: the whole, or as far as it is alone.
func (l *layout) path(e *line, whole bool) string {
	p, along, bends := &pen{right: l.right, x: -1}, l.tops[e.from.layer], e.bends
	if e.back {
		at := l.beside(e.from, e.from.box.comes, 0.25)
		x := e.from.x + e.shift(e.from)
		p.put("M", e.from.x+e.from.box.side, at)
		p.put("L", x-bow, at)
		p.put("Q", x, at, x, at-bow)
		along = min(at-bow, along)
	} else {
		p.put("M", e.a, along+e.from.deep)
		along += l.deeps[e.from.layer]
	}
	if !whole {
		bends = bends[:e.own]
	}
	var begin float64 // of the last layer
	for _, bend := range bends {
		begin = l.tops[bend.layer]
		end := begin + l.deeps[bend.layer]
		if e.back {
			begin, end = end, begin
		}
		p.bend(bend.x, along, begin)
		along = end
	}
	switch {
	case !whole && e.joins != nil:
		p.put("L", p.x, begin)
	case e.back:
		l.arrive(p, e.to, along)
	default:
		p.bend(e.last().b, along, l.tops[e.to.layer])
		p.put("L", p.x, l.tops[e.to.layer])
	}
	return p.String()
}

// arrive ends a line at the far side of a box.
func (l *layout) arrive(p *pen, to *point, along float64) {
	at, x := l.beside(to, to.box.goes, 0.75), to.x+to.box.side+around
	p.bend(x, along, max(at+bow, l.tops[to.layer]+l.deeps[to.layer]))
	p.put("L", x, at+bow)
	p.put("Q", x, at, x-bow, at)
	p.put("L", to.x+to.box.side, at)
}

// beside is where a line ends at the far side of a box, along: in the middle if it is alone.
func (l *layout) beside(p *point, both bool, part float64) float64 {
	if !both && p.box.loop == nil {
		part = 0.5
	}
	if l.right {
		return l.tops[p.layer] + p.box.w*part
	}
	return l.tops[p.layer] + p.box.h*part
}

// loop is the way of the loop of a box, and the middle of its label.
func (l *layout) loop(p *point) (path string, across, along float64) {
	mid := l.beside(p, true, 0.5)
	from, out := p.x+p.box.side, p.x+p.box.side+loopOut
	pen := &pen{right: l.right, x: -1}
	pen.put("M", from, mid-6)
	pen.put("C", out, mid-15, out, mid+15, from, mid+6)
	return pen.String(), out + (p.box.loopReach(l.right)-loopOut)/2, mid
}

// loopReach is how far the loop of a box reaches from its far side, with its label.
func (b *box) loopReach(right bool) float64 {
	switch {
	case b.loop.Label == "":
		return loopOut
	case right:
		return loopOut + labelLow
	}
	return loopOut + labelWidth(b.loop.Label)
}
