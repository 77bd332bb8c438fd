package graph

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// random makes a graph out of what pick gives: loops, labels, frames and lines from and to the outside too.
func random(pick func(below int) int, nodes, edges, depth int) *Graph {
	g, ids := &Graph{}, []string{Outside}
	for i := range nodes {
		n := Node{ID: fmt.Sprint(depth, "/", i), Name: strings.Repeat("name ", pick(6))}
		if pick(8) == 0 {
			n.Progress = &Progress{1, 2, 3}
		}
		if pick(9) == 0 && depth < 3 {
			n.Inside = random(pick, pick(6), pick(9), depth+1)
		}
		g.Nodes, ids = append(g.Nodes, n), append(ids, n.ID)
	}
	for range edges {
		e := Edge{From: ids[pick(len(ids))], To: ids[pick(len(ids))], Way: []Way{Unknown, Taken, Untaken}[pick(3)]}
		if pick(3) == 0 {
			e.Label = strings.Repeat("x", pick(30))
		}
		g.Edges = append(g.Edges, e)
	}
	return g
}

// seeded are random graphs, the same ones each time.
func seeded(n int) []*Graph {
	r := rand.New(rand.NewPCG(1, 2))
	graphs := make([]*Graph, 0, n)
	for range n {
		nodes := 5 + r.IntN(35)
		graphs = append(graphs, random(r.IntN, nodes, nodes+r.IntN(nodes), 0))
	}
	return graphs
}

// laid are the layouts of a graph and of all that is inside of it.
func laid(t *testing.T, g *Graph, right bool) []*layout {
	t.Helper()
	l, err := newLayout(g, right, false)
	if err != nil {
		t.Fatal(err)
	}
	all := []*layout{l}
	for i := 0; i < len(all); i++ {
		for _, p := range all[i].points {
			if p.box != nil && p.box.inside != nil {
				all = append(all, p.box.inside)
			}
		}
	}
	return all
}

func TestLayout(t *testing.T) {
	t.Parallel()
	for i, g := range seeded(200) {
		for _, l := range laid(t, g, i%2 == 1) {
			checkPlaces(t, l)
			checkDirections(t, l)
		}
	}
}

// checkPlaces finds boxes and labels that overlap, leave the picture, or hide a frame's inside.
func checkPlaces(t *testing.T, l *layout) {
	t.Helper()
	end := func(p *point) float64 { return l.tops[p.layer] + p.deep }
	for i, p := range l.points {
		if p.x-p.near < 0 || p.x+p.far > l.across || end(p) > l.along {
			t.Errorf("point %d of layer %d is outside of the picture", p.at, p.layer)
		}
		for _, q := range l.points[:i] {
			if p.x-p.near < q.x+q.far && q.x-q.near < p.x+p.far && l.tops[p.layer] < end(q) && l.tops[q.layer] < end(p) {
				t.Errorf("points %d and %d of the layers %d and %d overlap", p.at, q.at, p.layer, q.layer)
			}
		}
		if p.box == nil || p.box.inside == nil {
			continue
		}
		b, wide, long := p.box, p.box.inside.across, p.box.inside.along
		if l.right {
			wide, long = long, wide
		}
		if l.right && b.dy < frame || !l.right && b.dx < frame || b.dx < 0 || b.dy < 0 || b.dx+wide > b.w || b.dy+long > b.h {
			t.Errorf("what is inside of %s leaves its frame", b.node.ID)
		}
	}
}

// checkDirections finds lines that go neither down nor back, and ways through no point of their own layer.
func checkDirections(t *testing.T, l *layout) {
	t.Helper()
	for _, e := range l.lines {
		layer := e.from.layer
		for _, p := range append(slices.Clone(e.bends), e.to) {
			if p.layer != e.next(layer) {
				t.Errorf("a line from layer %d to layer %d goes from %d to %d", e.from.layer, e.to.layer, layer, p.layer)
			}
			layer = p.layer
		}
		if e.last().to != e.to {
			t.Error("a line joins one to another node")
		}
		if e.back && (e.shift(e.from) > e.from.far || e.shift(e.to) > e.to.far) {
			t.Error("a box has no room for a line that goes around it")
		}
	}
}

func TestNoLineGoesBackWithoutALoop(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	g := &Graph{}
	for i := range 40 {
		g.Nodes = append(g.Nodes, Node{ID: fmt.Sprint(i)})
		for range r.IntN(4) * min(i, 1) {
			g.Edges = append(g.Edges, Edge{From: fmt.Sprint(r.IntN(i)), To: fmt.Sprint(i)})
		}
	}
	r.Shuffle(len(g.Nodes), func(i, k int) { g.Nodes[i], g.Nodes[k] = g.Nodes[k], g.Nodes[i] })
	for _, e := range laid(t, g, false)[0].lines {
		if e.back {
			t.Errorf("the line from %s to %s goes back", e.edge.From, e.edge.To)
		}
	}
}

// The bounds are what was measured, and a little more.
func TestFewLinesCross(t *testing.T) {
	t.Parallel()
	var before, after []int
	for _, g := range seeded(200) {
		l := laid(t, g, false)[0]
		before, after = append(before, l.tangled), append(after, l.crossings())
	}
	slices.Sort(before)
	slices.Sort(after)
	was, is := before[100], after[100]
	t.Logf("median of crossings: %d, in the first order %d; the most: %d and %d", is, was, after[199], before[199])
	if is > 20 || was < 3*is {
		t.Errorf("the median of crossings is %d, in the first order it was %d", is, was)
	}
}

func TestAPictureIsTheSameAgainAndInEveryState(t *testing.T) {
	t.Parallel()
	for _, g := range seeded(20) {
		first, err := Draw(g, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := Draw(g, Options{}); first != again {
			t.Fatal("the second picture of a graph differs from the first one")
		}
		for i := range g.Nodes {
			g.Nodes[i].State = None
		}
		before := places(t, g)
		for i := range g.Nodes {
			g.Nodes[i].State, g.Nodes[i].Aside = Running, "3 min"
		}
		for i := range g.Edges {
			g.Edges[i].Way = Taken
		}
		if diff := cmp.Diff(before, places(t, g)); diff != "" {
			t.Fatal("nodes move when a run goes on: ", diff)
		}
	}
}

func places(t *testing.T, g *Graph) (all [][2]float64) {
	l := laid(t, g, false)[0]
	for _, p := range l.points {
		all = append(all, [2]float64{p.x, l.tops[p.layer]})
	}
	return all
}

func TestALargeGraphIsNotDrawn(t *testing.T) {
	t.Parallel()
	nest := &Graph{}
	for range maxDepth + 1 {
		nest = &Graph{Nodes: []Node{{ID: "in", Inside: nest}}}
	}
	half := &Graph{Nodes: make([]Node, MaxNodes/2)}
	for what, g := range map[string]*Graph{
		"nodes": {Nodes: make([]Node, MaxNodes+1)},
		"edges": {Edges: make([]Edge, MaxEdges+1)},
		"depth": nest,
		"inner": {Nodes: []Node{{ID: "a", Inside: half}, {ID: "b", Inside: half}}},
	} {
		if _, err := Draw(g, Options{}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func FuzzDraw(f *testing.F) {
	f.Add([]byte{3, 5, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 255, 254}, true)
	f.Add([]byte("a long row of bytes that makes a graph with some frames"), false)
	fuzzbound.Run(f, func(t *testing.T, data []byte, right bool) {
		pick := func(below int) int {
			if len(data) == 0 || below == 0 {
				return 0
			}
			n := int(data[0])
			data = data[1:]
			return n % below
		}
		g := random(pick, pick(60), pick(250), 0)
		svg, err := Draw(g, Options{Right: right})
		if err == nil {
			checkXML(t, string(svg))
		} else if !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	})
}

func large(nodes, edges int) *Graph {
	g := &Graph{}
	r := rand.New(rand.NewPCG(5, 6))
	for i := range nodes {
		g.Nodes = append(g.Nodes, Node{ID: fmt.Sprint(i), Name: fmt.Sprint("node ", i)})
		g.Edges = append(g.Edges, Edge{From: fmt.Sprint(i / 2), To: fmt.Sprint(i)})
	}
	for range edges - nodes {
		g.Edges = append(g.Edges, Edge{From: fmt.Sprint(r.IntN(nodes)), To: fmt.Sprint(r.IntN(nodes)), Label: "again"})
	}
	return g
}

func chain(nodes int) *Graph {
	g := &Graph{Edges: []Edge{{To: "0"}}}
	for i := range nodes {
		id := fmt.Sprint(i)
		g.Nodes = append(g.Nodes, Node{ID: id, Name: "node " + id})
		g.Edges = append(g.Edges, Edge{From: id, To: fmt.Sprint(i + 1)}, Edge{From: id, Label: "error"},
			Edge{From: id, To: fmt.Sprint(max(0, i-3)), Label: "again"})
	}
	return g
}

func BenchmarkDraw(b *testing.B) {
	for name, g := range map[string]*Graph{
		"30 nodes":  large(30, 45),
		"300 nodes": large(300, 450), "300 nodes in a row": chain(300), "300 nodes, 1,000 edges": large(300, 1000),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				svg, err := Draw(g, Options{})
				b.ReportMetric(float64(len(svg)), "B/svg")
				if err != nil {
					b.Log(err)
				}
			}
		})
	}
}
