package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/web/graph"
)

// The bounds of what is read for the numbers of a flow, and how long they are shown until they are read anew.
const (
	figureRuns  = 20
	figureSteps = 2000 // of one run
	figureAge   = 10 * time.Second
	mostFigured = 50 // flows and viewers
)

// unitFlowView is the page of a flow that is shown without one of its runs.
type unitFlowView struct {
	api.UnitFlow
	drawing
	Nodes    []nodeFigures
	Runs     int64
	Lines    []sourceLine
	Findings []fault.Finding // that belong to none of the lines
	Wrong    int64           // findings, but for warnings
	First    int             // the line of the first of them
	Back     int             // the first line of the part before; 0: this is the first
	Next     int             // likewise
}

// sourceLine is a line of a text, with what was found there.
type sourceLine struct {
	Number   int
	Text     string
	Findings []fault.Finding
	IsWrong  bool
}

// sourceLines is how many lines of a text a page shows.
const sourceLines = 400

func (p flowPages) unitFlow(r *request) (content, error) {
	written, of, err := p.svc.Units.Flow(r.Context(), r.PathValue("name"), r.URL.Query().Get("version"))
	if err != nil {
		return content{}, err
	}
	v := unitFlowView{UnitFlow: written}
	v.source(int(min(numberOf(r, "line"), flow.MaxBytes)), sourceLines)
	v.Why = "There is no graph of a flow that can't be run: see what was found in its text."
	if of != nil {
		figures, err := p.figuresOf(r.Context(), written.Unit, of)
		if err != nil {
			return content{}, err
		}
		v.Runs, v.Nodes = figures.runs, figures.table(of)
		drawn := picture{looking: lookingOf(r), node: figures.node, took: figures.times}
		if v.drawing, err = drawn.draw(of, "Graph of "+written.Unit); err != nil {
			return content{}, err
		}
	}
	return content{title: "Flow of " + written.Unit, section: "units", parts: []part{{"flow", "unit-flow", v}}}, nil
}

// source cuts the text into lines, of which it shows so many from one on, each with what was found there.
func (v *unitFlowView) source(from, most int) {
	lines := strings.Split(strings.TrimSuffix(v.Text, "\n"), "\n")
	at := map[int][]fault.Finding{}
	for _, f := range v.UnitFlow.Findings {
		if !f.Warning {
			v.Wrong++
			v.First = cmp.Or(v.First, f.Line)
		}
		if f.Line == 0 || f.Line > len(lines) || f.File != "" && f.File != flow.FileName {
			v.Findings = append(v.Findings, f)
			continue
		}
		at[f.Line] = append(at[f.Line], f)
	}
	from = min(max(from, 1), len(lines))
	end := min(from+most, len(lines)+1)
	for n := from; n < end; n++ {
		wrong := slices.ContainsFunc(at[n], func(f fault.Finding) bool { return !f.Warning })
		v.Lines = append(v.Lines, sourceLine{n, lines[n-1], at[n], wrong})
	}
	if from > 1 {
		v.Back = max(from-most, 1)
	}
	if end <= len(lines) {
		v.Next = end
	}
}

// IsComment reports whether a line is a comment alone.
func (l sourceLine) IsComment() bool { return strings.HasPrefix(strings.TrimSpace(l.Text), "#") }

// flowFigures are numbers of the last runs of a flow.
type flowFigures struct {
	runs  int64
	nodes map[string]*nodeFigures   // by path
	took  map[string]map[string]int // by path and action
}

// nodeFigures are numbers of a node: of its visits, and of a map its items.
type nodeFigures struct {
	Path           string
	Visits, Failed int64
	Cost           *api.ModelTotal
	lasted         []time.Duration
}

// Share is how many of the visits failed.
func (n nodeFigures) Share() string {
	return fmt.Sprintf("%.3g %%", 100*float64(n.Failed)/float64(max(n.Visits, 1)))
}

// P50 is the time that half of the visits took at most.
func (n nodeFigures) P50() string { return n.part(0.5) }

// P95 is the time that nearly all of the visits took at most.
func (n nodeFigures) P95() string { return n.part(0.95) }

func (n nodeFigures) part(of float64) string {
	if len(n.lasted) == 0 {
		return none
	}
	return span(n.lasted[int(of*float64(len(n.lasted)-1)+0.5)])
}

// figured are the numbers of flows, for some seconds. Whoever may see other runs has other ones.
type figured struct {
	mu sync.Mutex
	of map[string]figuredAt
}

type figuredAt struct {
	at      time.Time
	figures *flowFigures
}

func (c *figured) get(key string) (*flowFigures, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, ok := c.of[key]
	return kept.figures, ok && time.Since(kept.at) < figureAge
}

func (c *figured) keep(key string, figures *flowFigures) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || len(c.of) >= mostFigured {
		c.of = map[string]figuredAt{}
	}
	c.of[key] = figuredAt{time.Now(), figures}
}

// figuresOf reads the numbers of a flow's last runs.
func (p flowPages) figuresOf(ctx context.Context, unit string, of *flow.Flow) (*flowFigures, error) {
	key := unit + "\x00" + access.ReachOf(ctx).Key()
	if kept, ok := p.figured.get(key); ok {
		return kept, nil
	}
	f := &flowFigures{nodes: map[string]*nodeFigures{}, took: map[string]map[string]int{}}
	page, err := p.svc.Runs.List(ctx, api.Filter{Unit: unit, Limit: figureRuns})
	if err != nil {
		return nil, err
	}
	for _, run := range page.Runs {
		v := runView{Record: api.Record{ID: run.ID, CreatedAt: run.CreatedAt}, Ended: run.Outcome != ""}
		one, err := p.readFlowRun(ctx, v, of, figureSteps)
		if err != nil {
			return nil, err
		}
		f.add(one)
	}
	for _, n := range f.nodes {
		slices.Sort(n.lasted)
	}
	p.figured.keep(key, f)
	return f, nil
}

// add adds a run. What it took over isn't its own.
func (f *flowFigures) add(run *flowRun) {
	f.runs++
	for path, took := range run.took {
		for action, times := range took {
			if f.took[path] == nil {
				f.took[path] = map[string]int{}
			}
			f.took[path][action] += times
		}
	}
	for path := range run.paths {
		steps := run.items[path]
		if steps == nil {
			steps = run.paths[path]
		}
		for _, s := range steps {
			f.addStep(path, s)
		}
	}
}

func (f *flowFigures) addStep(path string, s *stepView) {
	if s.IsTaken || s.Ended == nil || s.Is.Class == "off" {
		return
	}
	n := f.nodes[path]
	if n == nil {
		n = &nodeFigures{Path: path}
		f.nodes[path] = n
	}
	n.Visits++
	if s.Is.Class != "ok" {
		n.Failed++
	}
	n.lasted = append(n.lasted, s.lasted())
	n.Cost = added(n.Cost, s.Cost)
}

// added is the sum of what models took; nil is nothing.
func added(a, b *api.ModelTotal) *api.ModelTotal {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &api.ModelTotal{Charged: a.Charged + b.Charged, Cost: a.Cost + b.Cost}
}

// node says what is known of a node.
func (f *flowFigures) node(of *flow.Node, path string, as *graph.Node) {
	as.Href, as.Hint = fmt.Sprintf("?line=%d#y%d", (of.Line-1)/sourceLines*sourceLines+1, of.Line), "show its text"
	n := f.nodes[path]
	if n == nil {
		return
	}
	as.Aside = n.P50()
	times := num(n.Visits) + "×"
	if n.Failed > 0 {
		times += ", " + n.Share() + " failed"
	}
	as.Line = times + " · " + as.Line
}

func (f *flowFigures) times(path, action string) int { return f.took[path][action] }

// table are the numbers of all nodes, in the order of the graph.
func (f *flowFigures) table(of *flow.Flow) (all []nodeFigures) {
	known := newFlowRun(runView{}, of, nil, nil)
	for _, path := range known.order {
		n := f.nodes[path]
		if n == nil {
			n = &nodeFigures{Path: path}
		}
		all = append(all, *n)
	}
	return all
}
