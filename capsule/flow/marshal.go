package flow

import (
	"slices"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// keyOrder is how people write a flow and its nodes.
var keyOrder = []string{
	"start", "description", "run", "units", "map", "as", "parallel", "max", "tolerate", "ask", "show", "form",
	"answers", "approvers", "wait", "scope",
	"timeout", "cache", "retry", "tries", "when", "max_visits", "with", "flow", "branches", "collect", "fallback",
	"set", "action", "next", "max_steps", "nodes", "state", "output",
}

// object is the flow as JSON values.
func (f *Flow) object() map[string]any {
	o := f.Scope.object()
	if f.State != nil {
		o["state"] = f.State
	}
	if len(f.Output) > 0 {
		output := make(map[string]any, len(f.Output))
		for name, t := range f.Output {
			output[name] = t.Raw()
		}
		o["output"] = output
	}
	return o
}

func (s *Scope) object() document {
	nodes := make(map[string]any, len(s.Nodes))
	for name, n := range s.Nodes {
		nodes[name] = map[string]any(n.object())
	}
	o := document{"start": s.Start, "nodes": nodes}
	o.number("max_steps", s.MaxSteps, DefaultSteps)
	return o
}

// document is an object that is being written: what is as it is without being said is left out.
type document map[string]any

func (o document) template(key string, t *expr.Template) {
	if t != nil {
		o[key] = t.Raw()
	}
}

func (o document) number(key string, n, otherwise int) {
	if n != 0 && n != otherwise {
		o[key] = int64(n)
	}
}

func (o document) duration(key string, d time.Duration) {
	if d != 0 {
		o[key] = quantity.DurationText(d)
	}
}

func (o document) text(key, text string) {
	if text != "" {
		o[key] = text
	}
}

func (o document) texts(key string, texts []string) {
	if texts == nil {
		return
	}
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	o[key] = list
}

func (n *Node) object() document {
	o := document{}
	o.text("description", n.Description)
	o.template("run", n.Run)
	o.texts("units", n.Units)
	o.template("wait", n.Wait)
	o.template("with", n.With)
	o.template("set", n.Set)
	o.template("action", n.Action)
	o.template("when", n.When)
	o.template("fallback", n.Fallback)
	o.duration("timeout", n.Timeout)
	o.duration("cache", n.Cache)
	o.number("max_visits", n.Visits, 0)
	n.Ask.into(o)
	n.Map.into(o)
	n.Retry.into(o)
	n.Next.into(o)
	if n.Flow != nil {
		o["flow"] = map[string]any(n.Flow.object())
		if n.Scoping != Inherit {
			o.text("scope", string(n.Scoping))
		}
	}
	if n.Branches != nil {
		branches := make(map[string]any, len(n.Branches))
		for name, branch := range n.Branches {
			branches[name] = map[string]any(branch.object())
		}
		o["branches"] = branches
	}
	return o
}

func (a *Ask) into(o document) {
	if a == nil {
		return
	}
	o.template("ask", a.Question)
	o.template("show", a.Show)
	if !slices.Equal(a.Answers, usualAnswers) {
		o.texts("answers", a.Answers)
	}
	o.texts("approvers", a.Approvers)
	if a.Form != nil {
		o["form"] = a.Form
	}
}

func (m *Map) into(o document) {
	if m == nil {
		return
	}
	o.template("map", m.Over)
	if m.As != "item" {
		o.text("as", m.As)
	}
	o.number("parallel", m.Parallel, DefaultParallel)
	o.number("max", m.Max, DefaultItems)
	o.template("collect", m.Collect)
	switch {
	case m.Tolerate.Items > 0:
		o["tolerate"] = int64(m.Tolerate.Items)
	case m.Tolerate.Percent > 0:
		o["tolerate"] = strconv.FormatFloat(m.Tolerate.Percent, 'f', -1, 64) + "%"
	}
}

func (r Retry) into(o document) {
	if r.Tries == 0 {
		return
	}
	more := document{"tries": int64(r.Tries)}
	more.duration("wait", r.Wait)
	more.duration("max_wait", r.MaxWait)
	more.texts("on", r.On)
	if r.Factor != 0 {
		more["factor"] = r.Factor
	}
	if len(more) == 1 {
		o["retry"] = int64(r.Tries)
		return
	}
	o["retry"] = map[string]any(more)
}

func (n Next) into(o document) {
	if n.ByAction == nil {
		o.text("next", n.Always)
		return
	}
	edges := make(map[string]any, len(n.ByAction))
	for action, target := range n.ByAction {
		edges[action] = target
	}
	o["next"] = edges
}
