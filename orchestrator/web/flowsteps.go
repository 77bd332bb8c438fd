package web

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/orchestrator/records"
)

// mostSteps is how many steps of a run are read for its page. stepReads is how many at once.
const mostSteps, stepReads = 10_000, 1000

// stepView is a step of a run with its last try, or what goes on without one that is kept, or a node that hasn't begun.
type stepView struct {
	api.Step
	Is      state
	Does    string
	Tries   int
	Call    *api.Tree // the last run that it called, as far as it belongs to this run
	Cost    *api.ModelTotal
	Told    string
	IsTaken bool // over from an earlier run
	isMap   bool
}

// flowRun is the run of a flow as far as it has come.
type flowRun struct {
	run   runView
	steps map[string]*stepView      // by address
	paths map[string][]*stepView    // by flow.NodePath: the visits of a node in their order, without items
	items map[string][]*stepView    // likewise: the items of a map
	took  map[string]map[string]int // by path and action
	total map[string]int            // items of the maps of a path, as far as it is known
	nodes map[string]*flow.Node     // by path
	order []string                  // the paths, as the graph has them
	more  bool                      // it has more steps than were read
}

// stepsOf reads the steps of a run, in the order of their changes.
func (p flowPages) stepsOf(ctx context.Context, id string, most int) (steps []api.Step, more bool, err error) {
	filter := records.StepFilter{Limit: stepReads}
	for {
		page, err := p.svc.Flows.Steps(ctx, id, filter)
		if err != nil {
			return nil, false, err
		}
		steps = append(steps, page.Steps...)
		if page.Next == nil || len(steps) >= most {
			return steps, page.Next != nil, nil
		}
		filter.After = *page.Next
	}
}

// flowRunOf reads how far a run is. The graph is nil where it is gone.
func (p flowPages) flowRunOf(ctx context.Context, v runView, of *flow.Flow) (*flowRun, error) {
	f, err := p.readFlowRun(ctx, v, of, mostSteps)
	if err == nil && f.hasOpenMap() {
		err = p.itemsOf(ctx, f)
	}
	return f, err
}

// readFlowRun reads the first steps of a run, and its calls.
func (p flowPages) readFlowRun(ctx context.Context, v runView, of *flow.Flow, most int) (*flowRun, error) {
	steps, more, err := p.stepsOf(ctx, v.ID, most)
	if err != nil {
		return nil, err
	}
	tree, err := p.svc.Runs.Tree(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	f := newFlowRun(v, of, steps, tree.Calls)
	f.more = more
	return f, nil
}

func newFlowRun(v runView, of *flow.Flow, steps []api.Step, calls []api.Tree) *flowRun {
	f := &flowRun{
		run: v, steps: map[string]*stepView{}, paths: map[string][]*stepView{}, items: map[string][]*stepView{},
		took: map[string]map[string]int{}, total: map[string]int{}, nodes: map[string]*flow.Node{},
	}
	if of != nil {
		f.know(&of.Scope, "")
	}
	for _, s := range steps {
		if at := f.at(s.Address); s.Try >= at.Try {
			at.Step, at.Tries = s, s.Try
		}
	}
	for i := range calls {
		if calls[i].Step != "" {
			f.at(calls[i].Step).called(&calls[i])
		}
	}
	for _, s := range f.steps {
		f.began(s)
	}
	for _, s := range f.steps {
		f.stand(s)
	}
	f.sort()
	return f
}

// began lets what is around a step, and goes on, have begun when the first in it did.
func (f *flowRun) began(s *stepView) {
	if s.Began.IsZero() {
		return
	}
	at := s.Began
	if at.Before(f.run.CreatedAt) {
		at = f.run.CreatedAt // what is taken over is older
	}
	for up := around(s.Address); up != ""; up = around(up) {
		if of := f.steps[up]; of.Ended == nil && (of.Began.IsZero() || at.Before(of.Began)) {
			of.Began = at
		}
	}
}

// around is the address around one; "": there is none.
func around(address string) string { return address[:max(0, strings.LastIndexAny(address, "/["))] }

// know finds the nodes of a scope.
func (f *flowRun) know(s *flow.Scope, prefix string) {
	for _, name := range s.InOrder() {
		f.knowNode(s.Nodes[name], prefix+name)
	}
}

func (f *flowRun) knowNode(n *flow.Node, path string) {
	f.nodes[path], f.order = n, append(f.order, path)
	if n.Flow != nil {
		f.know(n.Flow, path+"/")
	}
	for _, name := range sortedKeys(n.Branches) {
		f.knowNode(n.Branches[name], path+"/"+name)
	}
}

// at is the step of an address. All that is around it has begun as well.
func (f *flowRun) at(address string) *stepView {
	s, known := f.steps[address]
	if !known {
		s = &stepView{Step: api.Step{Address: address}}
		f.steps[address] = s
		if up := around(address); up != "" {
			f.at(up)
		}
	}
	return s
}

func (s *stepView) called(call *api.Tree) {
	s.Call, s.Cost = call, added(s.Cost, call.Total)
	if s.Began.IsZero() {
		s.Began = call.CreatedAt
	}
}

// stand says how a step stands, when all are read.
func (f *flowRun) stand(s *stepView) {
	n := f.nodes[flow.NodePath(s.Address)]
	if n != nil {
		s.Does, s.isMap = does(n), n.Map != nil && !strings.HasSuffix(s.Address, "]")
	}
	if strings.HasSuffix(s.Address, "=") {
		s.Does = "values that a person set before the step"
	}
	s.Is, s.Told = f.stateOf(s, n != nil && n.Ask != nil)
	if s.Error != nil {
		s.Told = s.Error.Message
	}
	switch s.IsTaken = !s.Began.IsZero() && s.Began.Before(f.run.CreatedAt); {
	case s.IsTaken:
		s.Told = "taken over from the earlier run"
	case s.Cached:
		s.Told = "taken from the cache"
	}
}

func (f *flowRun) stateOf(s *stepView, asks bool) (is state, told string) {
	final := s.Ended != nil && s.Until == nil
	switch {
	case final && s.State == api.DoneStep:
		return state{"ok", "Succeeded"}, ""
	case final && s.State == api.SkippedStep:
		return state{"off", "Skipped"}, ""
	case final && s.Error != nil && s.Error.Kind == flow.KindTimeout:
		return state{"late", "Timeout"}, ""
	case final:
		return state{"bad", "Failed"}, ""
	case f.run.Ended:
		return state{"off", "Stopped"}, "the run ended before it"
	case s.State == api.OpenStep && asks:
		return state{"ask", "Waiting"}, "a person is asked"
	case s.Until != nil:
		return state{"run", "Waiting"}, "it goes on at a time"
	case s.Call != nil && s.Call.Outcome == "":
		is = stateOf(s.Call.State, "", false)
		return state{"run", is.Word}, ""
	}
	return state{"run", "Running"}, ""
}

// sort groups the steps by their nodes.
func (f *flowRun) sort() {
	for _, s := range f.steps {
		path := flow.NodePath(s.Address)
		switch {
		case strings.HasSuffix(s.Address, "="):
			continue
		case strings.HasSuffix(s.Address, "]"):
			f.items[path] = append(f.items[path], s)
			continue
		}
		f.paths[path] = append(f.paths[path], s)
		if action := f.edgeOf(path, s); s.Ended != nil {
			if f.took[path] == nil {
				f.took[path] = map[string]int{}
			}
			f.took[path][action]++
		}
	}
	for _, group := range []map[string][]*stepView{f.paths, f.items} {
		for _, all := range group {
			slices.SortFunc(all, earlier)
		}
	}
}

// edgeOf is the edge by which a step went on: "" for that of all actions.
func (f *flowRun) edgeOf(path string, s *stepView) string {
	if n := f.nodes[path]; n != nil {
		if _, own := n.Next.ByAction[s.Action]; !own && s.State != api.FailedStep {
			return ""
		}
	}
	return cmp.Or(s.Action, "\x00failed")
}

// earlier orders steps by their begin; what has none comes last.
func earlier(a, b *stepView) int {
	return cmp.Or(falseFirst(a.Began.IsZero(), b.Began.IsZero()), a.Began.Compare(b.Began), cmp.Compare(a.Seq, b.Seq),
		strings.Compare(a.Address, b.Address))
}

// falseFirst orders what something is true of behind what it isn't.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// hasOpenMap reports whether there is a map whose items can't be counted by their steps.
func (f *flowRun) hasOpenMap() bool {
	for path, visits := range f.paths {
		for _, s := range visits {
			if n := f.nodes[path]; n != nil && n.Map != nil && s.Is.Class != "ok" {
				return true
			}
		}
	}
	return false
}

// stepPage is how many steps a page shows.
const stepPage = 100

// stepList is the table of a run's steps.
type stepList struct {
	looking
	Rows       []*stepView
	All        int64 // with those of other pages
	More       bool
	Back, Next string // queries of the pages around this one; "": there is none
}

// list is the table of the steps at a node: what failed first, then what goes on, and what hasn't begun last.
func (f *flowRun) list(l looking) stepList {
	var all []*stepView
	for _, s := range f.steps {
		if l.shows(s.Address) {
			all = append(all, s)
		}
	}
	for _, path := range f.order {
		if f.paths[path] == nil && l.shows(path) {
			s := &stepView{Step: api.Step{Address: path}, Is: state{"queue", "Not begun"}, Does: does(f.nodes[path])}
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, firstShown)
	list := stepList{looking: l, All: int64(len(all)), More: f.more}
	from := min(int(min(l.page, mostSteps))*stepPage, len(all))
	list.Rows = all[from:min(from+stepPage, len(all))]
	if list.page = l.page - 1; from > 0 {
		list.Back = list.query("#steps")
	}
	if list.page = l.page + 1; from+stepPage < len(all) {
		list.Next = list.query("#steps")
	}
	return list
}

// firstShown orders the steps of a table. Nodes that haven't begun stay in the order of the graph.
func firstShown(a, b *stepView) int {
	rank := func(s *stepView) int {
		return cmp.Or(map[string]int{"bad": 1, "late": 1, "ask": 2, "run": 2, "queue": 4}[s.Is.Class], 3)
	}
	if by := cmp.Compare(rank(a), rank(b)); by != 0 || a.Is.Class == "queue" {
		return by
	}
	return cmp.Or(falseFirst(!a.isMap, !b.isMap), earlier(a, b))
}

// Whole is the query of the table with all steps.
func (l stepList) Whole() string {
	l.Node, l.page = "", 0
	return l.query("#steps")
}

func (l looking) shows(address string) bool {
	path := flow.NodePath(strings.TrimSuffix(address, "="))
	return l.Node == "" || path == l.Node || strings.HasPrefix(path, l.Node+"/")
}

// lasted is how long a step took; 0 where that isn't known.
func (s *stepView) lasted() time.Duration {
	if s.Ended == nil || s.Began.IsZero() {
		return 0
	}
	return s.Ended.Sub(s.Began)
}
