package web

import (
	"cmp"
	"context"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/web/graph"
)

// flowPages are the pages of flows and of their runs.
type flowPages struct{ runPages }

func (p flowPages) addRunFlow() {
	p.run("POST /ui/runs/{id}/again", p.runAgain)
	p.page("/ui/runs/{id}/flow", p.runFlow)
	p.page("/ui/units/{name}/flow", p.unitFlow)
	p.handle("GET /ui/units/{name}/flow/edit", access.Upload, p.editFlow)
	p.handle("POST /ui/units/{name}/flow/edit", access.Upload, p.sendFlow)
}

func (p flowPages) runFlow(r *request) (content, error) { return p.flowContent(r, nil) }

// flowContent is the page of a run's flow. wrong is what somebody asked for that couldn't be done; nil: nothing.
func (p flowPages) flowContent(r *request, wrong *refusedAgain) (content, error) {
	v, err := p.runOf(r, "flow")
	if err != nil {
		return content{}, err
	}
	if v.Flow == nil {
		return content{}, fault.New(fault.NotFound, "the run isn't one of a flow").
			WithHint("its summary tells what it did")
	}
	l := lookingOf(r)
	of, gone := p.svc.Flows.Graph(r.Context(), v.ID)
	f, err := p.flowRunOf(r.Context(), v, of)
	if err != nil {
		return content{}, err
	}
	drawn, err := f.draw(l, of, gone)
	if err != nil {
		return content{}, err
	}
	parts := []part{{"graph", "flow-graph", drawn}}
	if v.Ended && len(f.steps) > 0 && r.frame.May("run") {
		parts = append(parts, part{"again", "flow-again", p.againOf(r.Context(), f, l, wrong)})
	}
	parts = append(parts, part{"steps", "flow-steps", f.list(l)})
	if v.Ended || len(f.steps) <= stateSteps {
		parts = append(parts, part{"state", "flow-state", p.stateOf(r.Context(), v.ID)})
	}
	return p.contentOf(v, parts...), nil
}

// stateSteps is up to how many steps of a run that goes on its state is made anew for each change.
const stateSteps = 500

// runDrawing is the graph of a run with its version.
type runDrawing struct {
	drawing
	Version string
}

// draw draws the run, or says why that can't be done.
func (f *flowRun) draw(l looking, of *flow.Flow, gone error) (runDrawing, error) {
	d := runDrawing{Version: f.run.Version}
	switch {
	case gone != nil:
		d.Why = "The graph of this version can't be drawn: " + fault.Public(gone).Msg + "."
		return d, nil
	case f.more:
		d.Why = "The run has " + num(int64(f.run.Flow.Steps)) + " steps, which is too much for a picture. " +
			"The table has the first " + num(mostSteps) + " of them."
		return d, nil
	}
	l.page = 0
	drawn := picture{looking: l, node: f.node, begun: f.begun, took: f.times}
	var err error
	d.drawing, err = drawn.draw(of, "Graph of "+f.run.Unit+"; the table of steps below says the same")
	return d, err
}

func (f *flowRun) times(path, action string) int { return f.took[path][action] }

func (f *flowRun) begun(path string) bool { return len(f.paths[path]) > 0 }

// graphStates are the states of nodes by the classes of states.
var graphStates = map[string]graph.State{
	"ok": graph.OK, "bad": graph.Bad, "late": graph.Late, "off": graph.Off, "run": graph.Running, "ask": graph.Ask,
}

// node says how a node stands in the run.
func (f *flowRun) node(n *flow.Node, path string, as *graph.Node) {
	visits := f.paths[path]
	if visits == nil {
		as.State, as.Line = graph.None, as.Line+" · not begun"
		return
	}
	s := visits[len(visits)-1]
	if strings.Contains(s.Address, "[") {
		s = worst(visits)
	}
	as.State = graphStates[s.Is.Class]
	if d := s.lasted(); d > 0 && !s.IsTaken {
		as.Aside = span(d)
	}
	switch {
	case s.Is.Class == "ask":
		as.Line = "waits for a person"
	case len(visits) > 1:
		as.Line += " · " + num(int64(len(visits))) + " visits"
	case s.IsTaken:
		as.Line += " · taken over"
	case s.Action != "" && s.Action != flow.Default && s.Is.Class != "run":
		as.Line += " · went " + s.Action
	case s.Tries > 1:
		as.Line += " · try " + num(int64(s.Tries))
	}
	if n.Map != nil {
		as.Progress = f.progress(path)
	}
}

// progress is how far the items of a map are.
func (f *flowRun) progress(path string) *graph.Progress {
	of := &graph.Progress{Total: max(f.total[path], len(f.items[path]))}
	for _, item := range f.items[path] {
		switch item.Is.Class {
		case "ok":
			of.Succeeded++
		case "bad", "late":
			of.Failed++
		}
	}
	return of
}

// worst is the visit that people should look at first.
func worst(visits []*stepView) *stepView {
	rank := map[string]int{"run": 5, "ask": 5, "bad": 4, "late": 4, "off": 2}
	found := visits[0]
	for _, s := range visits {
		if cmp.Or(rank[s.Is.Class], 1) > cmp.Or(rank[found.Is.Class], 1) {
			found = s
		}
	}
	return found
}

// stateView is the state of a flow's run, or why it isn't shown.
type stateView struct {
	JSON  string
	Size  int64
	Files []api.File
	Why   string
}

func (p flowPages) stateOf(ctx context.Context, id string) stateView {
	of, err := p.svc.Flows.State(ctx, id)
	if err != nil {
		return stateView{Why: fault.Public(err).Msg}
	}
	return stateView{pretty(of.State), int64(len(of.State)), of.Files[:min(len(of.Files), mostStateFiles)], ""}
}

const mostStateFiles = 100
