package web

import (
	"context"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
)

// unitPages are the pages of units.
type unitPages struct{ *Page }

func (p unitPages) addUnits() {
	p.page("/ui/units", p.units)
	p.page("/ui/units/{name}", p.unit)
	p.run("POST /ui/units/{name}/run", p.runUnit)
	p.read("GET /ui/units/{name}/run", toUnit)
	p.handle("POST /ui/units/{name}/disable", access.Admin, p.switchUnit(p.svc.Units.Disable))
	p.handle("POST /ui/units/{name}/enable", access.Admin, p.switchUnit(p.svc.Units.Enable))
	p.handle("POST /ui/units/{name}/rollback", access.Upload, p.rollBack)
}

// unitList is the list of units.
type unitList struct {
	Rows  []unitRow
	Asked string // what was looked for; "": all are shown
}

// unitRow is a unit of the list.
type unitRow struct {
	api.Unit
	Last *lastRun // nil: it never ran, or nobody looked
}

// lastRun is the newest run of a unit.
type lastRun struct {
	api.Summary
	Is state
}

// mostLooked is how many units there may be for the last run of each to be looked up.
const mostLooked = 100

func (p unitPages) units(r *request) (content, error) {
	all, err := p.svc.Units.List(r.Context())
	if err != nil {
		return content{}, err
	}
	list := unitList{Asked: strings.TrimSpace(r.URL.Query().Get("q"))}
	wanted := strings.ToLower(list.Asked)
	for _, u := range all {
		if !strings.Contains(strings.ToLower(u.Name+" "+u.Kind+" "+u.Description), wanted) {
			continue
		}
		row := unitRow{Unit: u}
		if len(all) <= mostLooked {
			if row.Last, err = p.lastRunOf(r.Context(), u.Name); err != nil {
				return content{}, err
			}
		}
		list.Rows = append(list.Rows, row)
	}
	return content{title: "Units", section: "units", parts: []part{{"units", "units", list}}}, nil
}

func (p unitPages) lastRunOf(ctx context.Context, unit string) (*lastRun, error) {
	runs, err := p.lastRuns(ctx, unit, 1)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return &runs[0], nil
}

func (p unitPages) lastRuns(ctx context.Context, unit string, most int) (runs []lastRun, err error) {
	page, err := p.svc.Runs.List(ctx, api.Filter{Unit: unit, Limit: most})
	for _, run := range page.Runs {
		runs = append(runs, lastRun{run, stateOf(run.State, run.Outcome, false)})
	}
	return runs, err
}
