package graph

import (
	"cmp"
	"slices"
)

// rank gives each box its layer. Lines that would close a loop go back.
func (l *layout) rank() {
	order := l.turn()
	up, down := map[*point]int{}, map[*point][]*point{}
	for _, e := range l.lines {
		upper, lower := e.from, e.to
		if e.back {
			upper, lower = lower, upper
		}
		down[upper] = append(down[upper], lower)
		up[lower]++
	}
	deepest := 0
	for _, p := range order {
		if l.start != nil && p != l.start {
			p.layer = max(p.layer, 1)
		}
		for _, below := range down[p] {
			below.layer = max(below.layer, p.layer+1)
		}
		if p != l.end {
			deepest = max(deepest, p.layer)
		}
	}
	if l.end != nil {
		l.end.layer = deepest + 1
	}
	for _, p := range slices.Backward(order) { // down, where that makes lines shorter
		if len(down[p]) > up[p] && p != l.start {
			p.layer = slices.MinFunc(down[p], func(a, b *point) int { return cmp.Compare(a.layer, b.layer) }).layer - 1
		}
	}
}

// turn finds the lines that go back, and returns the boxes in an order in which no other line does.
func (l *layout) turn() (order []*point) {
	out, in := map[*point][]*line{}, map[*point]int{}
	for _, e := range l.lines {
		out[e.from] = append(out[e.from], e)
		in[e.to]++
	}
	const open, done = 1, 2
	seen := map[*point]int{}
	var visit func(p *point)
	visit = func(p *point) {
		if seen[p] != 0 {
			return
		}
		p.at, seen[p] = len(seen), open
		for _, e := range out[p] {
			visit(e.to)
			e.back = seen[e.to] == open
		}
		seen[p] = done
		order = append(order, p)
	}
	for i, p := range l.points {
		if i == 0 || in[p] == 0 {
			visit(p)
		}
	}
	for _, p := range l.points {
		visit(p)
	}
	slices.Reverse(order)
	return order
}

// layer puts the boxes into layers, with layers for labels between them.
func (l *layout) layer() {
	labelled := make([]bool, len(l.points)+1) // by the layer above the label
	for _, e := range l.lines {
		if e.edge.Label != "" {
			e.label = min(e.from.layer, e.next(e.from.layer)) // labels stand where lines begin
			labelled[e.label] = true
		}
	}
	moved, more := make([]int, len(labelled)), 0
	for layer := range moved {
		moved[layer] = layer + more
		if labelled[layer] {
			more++
		}
	}
	for _, e := range l.lines {
		if e.label >= 0 {
			e.label = moved[e.label] + 1
		}
	}
	slices.SortFunc(l.points, func(a, b *point) int { return cmp.Compare(a.at, b.at) }) // as turn met them
	for _, p := range l.points {
		p.layer = moved[p.layer]
		for p.layer >= len(l.layers) {
			l.layers = append(l.layers, nil)
		}
		l.layers[p.layer] = append(l.layers[p.layer], p)
	}
}

// next is the layer where a line goes from a layer.
func (e *line) next(layer int) int {
	if e.back {
		return layer - 1
	}
	return layer + 1
}

// bend makes the points where lines go through layers. Lines to the same box share them, except
// for those with labels. It reports false for too many of them.
func (l *layout) bend() bool {
	type place struct {
		to    *point
		layer int
	}
	known := map[place]*line{} // the first line that goes through
	for _, e := range l.lines {
		for layer := e.next(e.from.layer); layer != e.to.layer && e.joins == nil; layer = e.next(layer) {
			at := place{e.to, layer}
			e.own++
			if first := known[at]; first != nil && layer != e.label {
				e.joins = first
				e.bends = append(e.bends, first.bends[max(layer-first.from.layer, first.from.layer-layer)-1:]...)
				continue
			}
			e.bends = append(e.bends, l.through(e, layer))
			if layer != e.label {
				known[at] = e
			}
			if len(l.points) > maxPoints {
				return false
			}
		}
	}
	return true
}

// through makes the point where a line goes through a layer.
func (l *layout) through(e *line, layer int) *point {
	p := &point{layer: layer}
	if layer == e.label {
		half := labelWidth(e.edge.Label) / 2
		p.near, p.far, p.deep = half, half, labelLow
		if l.right {
			p.near, p.far, p.deep = labelLow/2, labelLow/2, 2*half
		}
	}
	l.points = append(l.points, p)
	l.layers[layer] = append(l.layers[layer], p)
	return p
}

// connect links the points of all lines, and makes room beside boxes for what goes around them.
func (l *layout) connect() {
	for _, e := range l.lines {
		last := e.from
		for _, p := range e.bends[:e.own] {
			e.link(last, p)
			last = p
		}
		if e.joins == nil {
			e.link(last, e.to)
		}
		if e.back {
			e.from.box.goes, e.to.box.comes = true, true
		}
	}
	for _, p := range l.points {
		if b := p.box; b != nil && (b.goes || b.comes) {
			p.far = b.side + around
		}
		if b := p.box; b != nil && b.loop != nil {
			p.far = b.side + b.loopReach(l.right)
		}
	}
}

// link links two points of neighbouring layers.
func (e *line) link(from, to *point) {
	here := link{to: to, weight: 2}
	if from.box == nil && to.box == nil {
		here.weight = 6
	}
	there, side := link{to: from, weight: here.weight}, behind
	if e.back {
		side = before
	}
	if e.back && from.box != nil {
		here.here, here.weight = 1, 0.1 // a box isn't moved by what goes around it
	}
	if e.back && to.box != nil {
		there.here, there.weight = 1, 0.1
	}
	here.there, there.there = there.here, here.here
	here.shift = e.shift(to) - e.shift(from)
	there.shift = -here.shift
	from.links[side], to.links[1-side] = append(from.links[side], here), append(to.links[1-side], there)
}

// shift is where a line goes through a point, from its middle.
func (e *line) shift(p *point) float64 {
	switch {
	case p.box == nil:
		return 0
	case e.back:
		return p.box.side + around
	}
	at, _ := p.box.pinned(p == e.to)
	return at
}

// pinned is the one point where lines come to a box, or go from it, from its middle.
func (b *box) pinned(come bool) (at float64, ok bool) {
	pin := b.pins[1]
	if come {
		pin = b.pins[0]
	}
	if pin == nil {
		return 0, false
	}
	return *pin, true
}
