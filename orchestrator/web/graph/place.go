package graph

import (
	"cmp"
	"math"
	"slices"
)

const (
	apart, beside     = 28, 14 // across: between boxes, and where there is a bend
	gapLeast, gapMost = 28, 60 // along, between layers
	rounds            = 8
)

// place gives each point its place: across such that lines are straight where they can be.
func (l *layout) place() {
	for _, layer := range l.layers {
		for i, p := range layer {
			if p.x = p.near; i > 0 {
				p.x = layer[i-1].x + room(layer[i-1], p)
			}
		}
	}
	var links []link
	for round := range 2*rounds + 1 {
		for i := range l.layers {
			if round%2 == 1 {
				i = len(l.layers) - 1 - i
			}
			settle(l.layers[i], func(p *point) wish {
				links = append(links[:0], p.links[round%2]...)
				for i := range links {
					links[i].weight *= 1.01 // so that it decides where the layers disagree
				}
				if round >= rounds {
					links = append(links, p.links[1-round%2]...)
				}
				return median(p, links)
			})
		}
	}
	for _, layer := range l.layers {
		settle(layer, straight)
	}
	l.measure()
}

// room is how far two neighbours of a layer are from each other at least.
func room(a, b *point) float64 {
	if a.box != nil && b.box != nil {
		return a.far + b.near + apart
	}
	return a.far + b.near + beside
}

// wish is where a point should be, and how much it matters.
type wish struct{ x, weight float64 }

// median wishes a point at the median of what it is linked to.
func median(p *point, links []link) wish {
	if len(links) == 0 {
		return wish{p.x, 0.1}
	}
	at := func(k link) float64 { return k.to.x + k.shift }
	slices.SortStableFunc(links, func(a, b link) int { return cmp.Compare(at(a), at(b)) })
	all, sum := 0.0, 0.0
	for _, k := range links {
		all += k.weight
	}
	for i, k := range links[:len(links)-1] {
		if sum += k.weight; sum > all/2+0.001 {
			return wish{at(k), all}
		} else if sum > all/2-0.001 {
			return wish{(at(k) + at(links[i+1])) / 2, all}
		}
	}
	return wish{at(links[len(links)-1]), all}
}

// straight wishes a bend below the one before. Boxes stay.
func straight(p *point) wish {
	if up := p.links[before]; p.box == nil && len(up) == 1 && up[0].to.box == nil {
		return wish{up[0].to.x, 1}
	}
	return wish{p.x, 100}
}

// settle places a layer so that each point is as near as can be to its wish.
func settle(layer []*point, wished func(*point) wish) {
	wishes, rooms := make([]wish, len(layer)), make([]float64, len(layer))
	for i, p := range layer {
		if wishes[i] = wished(p); i > 0 {
			rooms[i] = room(layer[i-1], p)
		}
	}
	for i, x := range nearest(wishes, rooms) {
		layer[i].x = math.Round(x)
	}
}

// nearest finds the places that are nearest to wishes with at least so much room before each:
// the least sum of squares, by joining neighbours that want each other's place.
func nearest(wishes []wish, rooms []float64) []float64 {
	type group struct {
		wish
		n int
	}
	groups, offset := make([]group, 0, len(wishes)), 0.0
	for i, w := range wishes {
		offset += rooms[i]
		g := group{wish{w.x - offset, w.weight}, 1}
		for n := len(groups); n > 0 && groups[n-1].x > g.x; n-- {
			last := groups[n-1]
			weight := last.weight + g.weight
			g = group{wish{(last.x*last.weight + g.x*g.weight) / weight, weight}, last.n + g.n}
			groups = groups[:n-1]
		}
		groups = append(groups, g)
	}
	out, offset := make([]float64, 0, len(wishes)), 0.0
	for _, g := range groups {
		for range g.n {
			offset += rooms[len(out)]
			out = append(out, g.x+offset)
		}
	}
	return out
}

// measure finds the size of all, and where the layers are.
func (l *layout) measure() {
	first, last := math.Inf(1), math.Inf(-1)
	for _, p := range l.points {
		first, last = min(first, p.x-p.near), max(last, p.x+p.far)
	}
	l.across = max(0, even(last-first))
	for _, p := range l.points {
		p.x -= first
	}
	for i, layer := range l.layers {
		deep, bent := 0.0, 0.0
		for _, p := range layer {
			deep = max(deep, p.deep)
			for _, k := range p.links[before] {
				bent = max(bent, math.Abs(k.to.x+k.shift-p.x))
			}
		}
		if i > 0 {
			l.along += even(min(gapLeast+bent/10, gapMost))
		}
		if i == 1 && l.start != nil && l.framed && !l.right {
			l.along += 8 // for the name of the frame
		}
		l.tops, l.deeps = append(l.tops, l.along), append(l.deeps, deep)
		l.along += deep
	}
}

// even rounds up, so that halves are whole.
func even(x float64) float64 { return 2 * math.Ceil(x/2) }
