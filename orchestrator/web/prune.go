package web

import (
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
)

// addPrune serves the removal of what need not be kept: first what would go is shown.
func (p *Page) addPrune() {
	sweep := sweeping{p}
	p.handle("GET /ui/operations/prune", access.Admin, sweep.ask)
	p.handle("POST /ui/operations/prune", access.Admin, sweep.do)
}

// sweeping is the page of what need not be kept.
type sweeping struct{ *Page }

// pruning is what would go, or what went.
type pruning struct {
	api.PruneReport
	Before time.Time // the runs that ended before it; zero: images go, and no runs
}

// RunCount is how many runs go.
func (g pruning) RunCount() string { return num(int64(g.Runs)) }

// Nothing reports whether there is nothing to remove.
func (g pruning) Nothing() bool {
	return g.Runs == 0 && g.Sessions == 0 && (g.Images == nil || *g.Images == 0)
}

// Stamp is Before for the form, so that what is removed is what was shown, however often it is sent.
func (g pruning) Stamp() string {
	if g.Before.IsZero() {
		return "images"
	}
	return g.Before.Format(time.RFC3339Nano)
}

// ask shows what would go: images, or runs that ended longer ago than an age.
func (p sweeping) ask(w http.ResponseWriter, r *request) error {
	would := pruning{}
	if age := r.URL.Query().Get("age"); age != "images" {
		d, err := time.ParseDuration(age)
		if err != nil || d < 0 {
			return fault.New(fault.BadRequest, "the age isn't a duration").WithHint("such as 168h for 7 days")
		}
		would.Before = r.frame.now.Add(-d)
	}
	return p.report(w, r, would, true)
}

// do removes what ask has shown.
func (p sweeping) do(w http.ResponseWriter, r *request) error {
	form, err := fieldsOf(w, r)
	if err != nil {
		return err
	}
	goes := pruning{}
	if before := form.Get("before"); before != "images" {
		goes.Before, err = time.Parse(time.RFC3339Nano, before)
		if err != nil || goes.Before.After(r.frame.now) {
			return fault.New(fault.BadRequest, "the form doesn't say what is to be removed").
				WithHint("go back to Operations and choose again")
		}
	}
	return p.report(w, r, goes, false)
}

func (p sweeping) report(w http.ResponseWriter, r *request, g pruning, dry bool) (err error) {
	opts := api.PruneOptions{DryRun: dry, Images: g.Before.IsZero()}
	if !opts.Images {
		opts.OlderThan = max(time.Since(g.Before), 1)
	}
	if g.PruneReport, err = p.svc.Retention.Prune(r.Context(), opts); err != nil {
		return err
	}
	p.show(w, r, http.StatusOK, content{
		title: "Remove what isn't needed", section: "operations", parts: []part{{"prune", "operations-prune", g}},
	})
	return nil
}
