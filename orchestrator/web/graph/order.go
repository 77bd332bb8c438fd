package graph

import (
	"cmp"
	"slices"
)

const (
	mostRounds = 20     // of untangle
	mostWork   = 60_000 // points of all its rounds
	staleAfter = 4      // rounds without a better order
)

// untangle orders the points of each layer so that few lines cross.
func (l *layout) untangle() {
	l.number()
	best, kept := l.crossings(), l.order()
	l.tangled = best
	rounds := min(mostRounds, mostWork/max(1, len(l.points)))
	for round, stale := 0, 0; round < rounds && stale < staleAfter && best > 0; round++ {
		l.sweep(round % 2)
		l.transpose()
		stale++
		if n := l.crossings(); n < best {
			best, kept, stale = n, l.order(), 0
		}
	}
	l.layers = kept
	l.number()
}

func (l *layout) order() [][]*point {
	kept := make([][]*point, len(l.layers))
	for i, layer := range l.layers {
		kept[i] = slices.Clone(layer)
	}
	return kept
}

func (l *layout) number() {
	for _, layer := range l.layers {
		for i, p := range layer {
			p.at = i
		}
	}
}

// end orders the ends of lines in a layer: one at the far side of a box is after the others.
func (k link) end() int { return 2*k.to.at + k.there }

// sweep orders each layer by the barycentres of its links to one side. Points without any keep
// their places.
func (l *layout) sweep(side int) {
	for i := range l.layers {
		if side == behind {
			i = len(l.layers) - 1 - i
		}
		var linked []*point
		for _, p := range l.layers[i] {
			sum, links := 0, p.links[side]
			for _, k := range links {
				sum += k.end()
			}
			if len(links) > 0 {
				p.mean, linked = float64(sum)/float64(len(links)), append(linked, p)
			}
		}
		slices.SortStableFunc(linked, func(a, b *point) int { return cmp.Compare(a.mean, b.mean) })
		for at, p := range l.layers[i] {
			if len(p.links[side]) > 0 {
				p, linked = linked[0], linked[1:]
			}
			l.layers[i][at], p.at = p, at
		}
	}
}

// transpose swaps neighbours as long as fewer lines cross so.
func (l *layout) transpose() {
	for better, pass := true, 0; better && pass < 4; pass++ {
		better = false
		for _, layer := range l.layers {
			for i := 1; i < len(layer); i++ {
				a, b := layer[i-1], layer[i]
				if inverted(a.links[before], b.links[before])+inverted(a.links[behind], b.links[behind]) > 0 {
					layer[i-1], layer[i], a.at, b.at = b, a, i, i-1
					better = true
				}
			}
		}
	}
}

// inverted counts the pairs of links that cross, less those that would cross after a swap.
func inverted(a, b []link) (n int) {
	for _, x := range a {
		for _, y := range b {
			n += cmp.Compare(x.end(), y.end())
		}
	}
	return n
}

// crossings counts the pairs of lines that cross between layers: by a tree of sums, as each end
// is behind those that began before it.
func (l *layout) crossings() (n int) {
	var lines [][2]int
	for i, layer := range l.layers[:max(0, len(l.layers)-1)] {
		lines = lines[:0]
		for _, p := range layer {
			for _, k := range p.links[behind] {
				lines = append(lines, [2]int{2*p.at + k.here, k.end()})
			}
		}
		slices.SortFunc(lines, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
		sums := make([]int, 2*len(l.layers[i+1])+1)
		for passed, line := range lines {
			n += passed
			for at := line[1] + 1; at > 0; at -= at & -at {
				n -= sums[at]
			}
			for at := line[1] + 1; at < len(sums); at += at & -at {
				sums[at]++
			}
		}
	}
	return n
}
