package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// unitView is what the page of a unit shows.
type unitView struct {
	api.Unit
	Input, Output []contractRow
	Last          []lastRun
	Versions      []api.UnitVersion
}

// Rate is how many of the last runs succeeded.
func (v unitView) Rate() string {
	l := v.Status.Lately
	if l == nil {
		return none
	}
	return num(int64(l.Succeeded*100/l.Runs)) + " %"
}

// Looked says of which runs the figures are.
func (v unitView) Looked() string {
	l := v.Status.Lately
	switch {
	case l == nil:
		return "no run has ended"
	case l.Runs == 1:
		return "of the last run"
	}
	return "of the last " + num(int64(l.Runs)) + " runs"
}

// P50 is how long the middle one of the last runs took.
func (v unitView) P50() string { return v.took(func(l *api.Lately) float64 { return l.P50 }) }

// P95 is how long all but the slowest of the last runs took.
func (v unitView) P95() string { return v.took(func(l *api.Lately) float64 { return l.P95 }) }

func (v unitView) took(of func(*api.Lately) float64) string {
	if v.Status.Lately == nil {
		return none
	}
	return took(of(v.Status.Lately))
}

// Mean is what one of the last runs cost.
func (v unitView) Mean() string {
	l := v.Status.Lately
	if l == nil || l.Models == nil {
		return none
	}
	each := *l.Models
	each.Cost /= api.Cost(l.Runs)
	return cost(&each, 4)
}

// Now is how many runs go on, and Waits how many wait for their turn.
func (v unitView) Now() string { return v.counted(v.Status.Running) + " running" }

// Waits is how many runs wait for their turn.
func (v unitView) Waits() string {
	if v.Status.Waiting == 1 {
		return "1 waits"
	}
	return strings.Replace(v.counted(v.Status.Waiting)+" wait", "0 wait", "none waits", 1)
}

func (unitView) counted(n int) string { return count(int64(n), n >= 1000) }

// Limits are the bounds of a run beside its time.
func (v unitView) Limits() string {
	var told []string
	if v.Policy.MemoryBytes > 0 {
		told = append(told, bound(v.Policy.MemoryBytes))
	}
	if v.Policy.CPUs > 0 {
		told = append(told, decimal(v.Policy.CPUs)+" CPU")
	}
	switch network := v.Policy.Network; network {
	case "":
	case "none":
		told = append(told, "no network")
	default:
		told = append(told, "network "+network)
	}
	return strings.Join(told, ", ")
}

// bound is a number of bytes that somebody chose: 512 MiB.
func bound(bytes int64) string { return strings.Replace(size(bytes), ".0 ", " ", 1) }

// From is where the unit comes from.
func (v unitView) From() string {
	if v.Source == "upload" {
		return "an upload" + strings.TrimSuffix(" by "+v.By, " by ")
	}
	return "a directory of the server"
}

// Uploaded reports whether the unit can be rolled back.
func (v unitView) Uploaded() bool { return v.Source == "upload" }

// Refused reports whether no run of the unit can begin.
func (v unitView) Refused() bool { return v.Disabled || v.Policy == nil || v.Policy.Refusal != nil }

// fact is a line of a list of them.
type fact struct{ Name, Value string }

// Rules are what the operator and the unit have agreed upon, beside the limits.
func (v unitView) Rules() []fact {
	p := v.Policy
	all := []fact{
		{"Timeout, at most", p.MaxTimeout},
		{"Retries", num(int64(p.Retries))},
		{"Runs at once", cmp.Or(strings.TrimPrefix(num(int64(v.Concurrency)), "0"), "as many as the server allows")},
		{"Root file system", map[bool]string{true: "read only"}[p.ReadOnly]},
		{"Isolation", p.Runtime},
		{"Hosts that it reaches", strings.Join(p.Egress, ", ")},
		{"Variables", strings.Join(p.Env, ", ")},
		{"Upstreams", strings.Join(p.Upstreams, ", ")},
		{"Secrets", strings.Join(p.Secrets, ", ")},
		{"Models", strings.Join(p.Models, ", ")},
	}
	if p.OutputBytes > 0 {
		all = append(all, fact{"Output, at most", bound(p.OutputBytes)})
	}
	if p.PIDs > 0 {
		all = append(all, fact{"Processes, at most", num(p.PIDs)})
	}
	if a := v.Agent; a != nil {
		all = append(all, fact{"Program", strings.Join(a.Command, " ")}, fact{"Called by", a.Type + ", " + a.Mode},
			fact{"Permissions", a.Approval}, fact{"Approvers", strings.Join(a.Approvers, ", ")})
	}
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

func (p unitPages) unit(r *request) (content, error) {
	name := r.PathValue("name")
	u, err := p.svc.Units.Get(r.Context(), name)
	if err != nil {
		v, err := p.brokenUnit(r.Context(), name, err)
		return content{title: v.Name, section: "units", parts: []part{{"head", "unit-head", v}}}, err
	}
	v, err := p.viewOf(r.Context(), u)
	if err != nil {
		return content{}, err
	}
	filled, err := p.formOf(r, u)
	if err != nil {
		return content{}, err
	}
	c := p.unitContent(v, filled)
	c.follow = p.followRoots
	return c, nil
}

// unitContent is the page of a unit, with its form as it is filled in.
func (p unitPages) unitContent(v unitView, filled *unitForm) content {
	parts := []part{{"head", "unit-head", v}, {"facts", "unit-facts", v}}
	if !v.Refused() {
		parts = append(parts, part{"unit-form", "unit-form", filled})
	}
	return content{title: v.Name, section: "units", parts: append(parts, part{"unit-runs", "unit-runs", v},
		part{"contract", "unit-contract", v}, part{"policy", "unit-policy", v}, part{"versions", "unit-versions", v})}
}

// shownRuns is how many of a unit's last runs its page lists.
const shownRuns = 5

// viewOf is a unit as its page shows it.
func (p unitPages) viewOf(ctx context.Context, u *unit.Unit) (v unitView, err error) {
	v.Input, v.Output = contractRows(u.Contract.Input), contractRows(u.Contract.Output)
	if v.Unit, err = p.svc.Units.Details(ctx, u); err != nil {
		return v, err
	}
	if v.Last, err = p.lastRuns(ctx, u.Name, shownRuns); err != nil {
		return v, err
	}
	v.Versions, err = p.svc.Units.Versions(ctx, u.Name)
	return v, err
}

// brokenUnit is a unit without a valid version, or the error with which nothing was found.
func (p unitPages) brokenUnit(ctx context.Context, name string, cause error) (unitView, error) {
	all, err := p.svc.Units.List(ctx)
	if err != nil {
		return unitView{}, err
	}
	for _, u := range all {
		if u.Name == name && u.Problem != nil {
			return unitView{Unit: u}, nil
		}
	}
	return unitView{}, cause
}

// switchUnit switches a unit on or off.
func (p unitPages) switchUnit(as func(ctx context.Context, name string) (api.Unit, error)) handler {
	return func(w http.ResponseWriter, r *request) error {
		if _, err := as(r.Context(), r.PathValue("name")); err != nil {
			return err
		}
		redirect(w, "../"+r.PathValue("name"))
		return nil
	}
}

func (p unitPages) rollBack(w http.ResponseWriter, r *request) error {
	form, err := fieldsOf(w, r)
	if err != nil {
		return err
	}
	version := form.Get("version")
	if version == "" {
		return fault.New(fault.BadRequest, "no version was chosen").WithHint("press the button of one")
	}
	if _, err := p.svc.Units.Rollback(r.Context(), r.PathValue("name"), version); err != nil {
		return err
	}
	redirect(w, "../"+r.PathValue("name"))
	return nil
}
