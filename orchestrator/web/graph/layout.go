package graph

// Lengths. Halves of them are whole.
const (
	narrow, step, wide = 192, 24, 240 // widths of nodes: in steps, so that a text that changes seldom moves them
	low, high          = 52, 88       // heights of nodes, without and with progress
	stack              = 8            // by which the nodes of a stack stand out
	frame, frameTop    = 16, 28       // between a frame and what is in it, and where its name is
	around             = 18           // from a box to a line that goes around it
	labelLow           = 16
	labelMost          = 144
)

// before and behind are the two sides of a layer.
const before, behind = 0, 1

// layout is a graph on its way to a picture. Its directions are `along` the layers, from top to
// bottom, and `across`; right turns the whole.
type layout struct {
	right, framed bool
	points        []*point // boxes, then bends
	lines         []*line
	start, end    *point // of Outside; nil: no edge has it
	layers        [][]*point
	tops, deeps   []float64 // along, by layer
	across, along float64   // the size of all
	tangled       int       // crossings before untangle
}

// point is a box, or where a line goes through a layer.
type point struct {
	box       *box    // nil: a bend
	layer, at int     // at is its place in the layer
	mean      float64 // of the places that it is linked to
	x         float64
	near, far float64   // by which it reaches across, before and after x
	deep      float64   // along
	links     [2][]link // to points of the layers before and behind
}

// box is a node, or Outside.
type box struct {
	node        *Node // nil: Outside
	w, h        float64
	side        float64 // half of it across, with its stack
	inside      *layout
	dx, dy      float64     // to what is inside
	pins        [2]*float64 // the one point where lines come, and go, from its middle; nil: many
	comes, goes bool        // a line goes around to it, and from it
	loop        *Edge       // all edges to itself
}

// link is a part of a line, as one of its two points sees it.
type link struct {
	to          *point
	here, there int     // 1: at the far side of the box
	shift       float64 // the other's x for which it is straight, from that of this one
	weight      float64
}

// line is an edge between two boxes.
type line struct {
	edge     *Edge
	from, to *point
	back     bool // it goes against the layers
	label    int  // the layer of its label; -1: it has none
	bends    []*point
	own      int   // bends that are its own, with that where it joins another line
	joins    *line // the one to the same box as which it goes on; nil: none
	a, b     float64
}

func newLayout(g *Graph, right, framed bool) (*layout, error) {
	l := &layout{right: right, framed: framed}
	if err := l.boxes(g); err != nil {
		return nil, err
	}
	l.rank()
	l.layer()
	if !l.bend() {
		return nil, ErrTooLarge
	}
	l.connect()
	l.untangle()
	l.place()
	return l, nil
}

// boxes makes the boxes of a graph, and the lines between them.
func (l *layout) boxes(g *Graph) error {
	var from, to bool
	for _, e := range g.Edges {
		from, to = from || e.From == Outside, to || e.To == Outside
	}
	if from {
		l.start = l.box(nil, nil)
	}
	sources, targets := map[string]*point{Outside: l.start}, map[string]*point{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if _, known := sources[n.ID]; known {
			continue
		}
		var inside *layout
		if n.Inside != nil {
			var err error
			if inside, err = newLayout(n.Inside, l.right, true); err != nil {
				return err
			}
		}
		p := l.box(n, inside)
		sources[n.ID], targets[n.ID] = p, p
	}
	if to {
		l.end = l.box(nil, nil)
		targets[Outside] = l.end
	}
	l.join(g, sources, targets)
	return nil
}

// join makes the lines between boxes. Edges of unknown ones are left out.
func (l *layout) join(g *Graph, sources, targets map[string]*point) {
	for i := range g.Edges {
		e := &g.Edges[i]
		switch from, to := sources[e.From], targets[e.To]; {
		case from == nil || to == nil:
		case from == to:
			from.box.addLoop(*e)
		default:
			l.lines = append(l.lines, &line{edge: e, from: from, to: to, label: -1})
		}
	}
}

// addLoop adds an edge to those of a box to itself.
func (b *box) addLoop(e Edge) {
	if old := b.loop; old != nil {
		if old.Label != "" && e.Label != "" {
			e.Label = ", " + e.Label
		}
		e.Label = old.Label + e.Label
		if old.Way == Taken {
			e.Way = Taken
		}
	}
	b.loop = &e
}

// box makes the box of a node, or of Outside.
func (l *layout) box(n *Node, inside *layout) *point {
	b, out := &box{node: n, inside: inside}, 0.0
	switch {
	case n == nil && l.framed:
		b.pins = [2]*float64{new(float64), new(float64)}
	case n == nil:
		b.w, b.h = 96, 36
	case inside != nil:
		b.fit()
	default:
		b.w, b.h = n.width(), low
		if n.Progress != nil {
			b.h = high
		}
		if n.stacked() {
			out = stack
		}
	}
	half, deep := b.w/2, b.h+out
	if l.right {
		half, deep = b.h/2, b.w+out
	}
	b.side = half + out
	p := &point{box: b, near: half, far: b.side, deep: deep}
	l.points = append(l.points, p)
	return p
}

func (n *Node) stacked() bool { return n.Stack || n.Progress != nil }

func (n *Node) width() float64 {
	need := textIn(n) + max(textWidth(n.Name, bold)+64, textWidth(n.Line, small)+10)
	w := float64(narrow)
	for w < min(need, wide) {
		w += step
	}
	return w
}

// fit makes a frame around what is inside.
func (b *box) fit() {
	in, first, last := b.inside, float64(frame), float64(frame)
	if !in.right {
		first = frameTop
	}
	if in.start != nil {
		first = 0
	}
	if in.end != nil {
		last = 0
	}
	title := textIn(b.node) + min(textWidth(b.node.Name, small), labelMost)
	middle := 0.0
	if in.right {
		b.w, b.h = max(first+in.along+last, title+12), frameTop+in.across+frame
		b.dx, b.dy = first, frameTop
		middle = b.dy - b.h/2
	} else {
		b.w, b.h = max(in.across+2*frame, even(2*title+16)), first+in.along+last
		b.dx, b.dy = (b.w-in.across)/2, first
		middle = b.dx - b.w/2
	}
	for i, p := range []*point{in.start, in.end} {
		if p != nil {
			at := middle + p.x
			b.pins[i] = &at
		}
	}
}
