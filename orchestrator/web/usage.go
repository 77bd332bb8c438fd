package web

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strconv"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// addAccounts serves what was used, and who did what.
func (p *Page) addAccounts() {
	a := accounts{p}
	p.page("/ui/usage", a.usage)
	p.read("GET /ui/usage.csv", a.table)
	p.handle("GET /ui/audit", access.Admin, a.audit)
}

// accounts are the pages of what was used, and of who did what.
type accounts struct{ *Page }

// usageView is what was used, by one thing.
type usageView struct {
	By    string // of usageGroups
	Days  int
	Rows  []usageRow
	Total api.UsageSum
	Left  []quotaRow
}

// usageGroups are what the page groups by.
var usageGroups = []string{"unit", "team", "model", "identity", "day"}

// Groups are what it can be grouped by.
func (usageView) Groups() []string { return usageGroups }

// usageRow is what one of them used.
type usageRow struct {
	api.UsageSum
	Name  string
	Share *meter // of the cost of all, or of the runs where nothing cost anything
}

// Waited is how long its runs waited on average, and Ran how long they took.
func (r usageRow) Waited() string { return eachOf(r.WaitMS, r.Runs) }

// Processor is what all of its runs took of processors.
func (r usageRow) Processor() string { return took(float64(r.CPUMS)) }

// Ran is how long a run took on average.
func (r usageRow) Ran() string { return eachOf(r.RunMS, r.Runs) }

func eachOf(ms, runs int64) string {
	if runs == 0 {
		return "—"
	}
	return took(float64(ms / runs))
}

// quotaRow is a bound, and how much of it is taken.
type quotaRow struct{ api.Quota }

// Meter is how much of it is taken.
func (q quotaRow) Meter() *meter {
	const parts = 1000
	used, _ := q.Used.Float64()
	limit, _ := q.Limit.Float64()
	return meterOf(int64(used/limit*parts), parts, q.Used.String()+" of "+q.Limit.String())
}

// usedBy reads what is asked for: by what, and of how many days.
func (p accounts) usedBy(r *request) (v usageView, err error) {
	query := r.URL.Query()
	v = usageView{By: query.Get("by"), Days: 30}
	if !slices.Contains(usageGroups, v.By) {
		v.By = usageGroups[0]
	}
	if days, err := strconv.Atoi(query.Get("days")); err == nil && days > 0 && days <= 400 {
		v.Days = days
	}
	used, err := p.svc.Figures.Usage(r.Context(), api.UsageFilter{
		By: []string{v.By}, Since: r.frame.now.UTC().AddDate(0, 0, 1-v.Days),
	})
	for _, u := range used {
		v.Total.Runs, v.Total.Calls = v.Total.Runs+u.Runs, v.Total.Calls+u.Calls
		v.Total.Tokens, v.Total.Cost = v.Total.Tokens+u.Tokens, v.Total.Cost+u.Cost
	}
	for _, u := range used {
		name := map[string]string{
			"unit": u.Unit, "team": u.Team, "model": u.Model, "identity": u.Identity, "day": u.Day,
		}[v.By]
		v.Rows = append(v.Rows, usageRow{u, name, shareOf(u, v.Total)})
	}
	if v.By == "day" {
		slices.Reverse(v.Rows)
	}
	return v, err
}

func shareOf(u, all api.UsageSum) *meter {
	if all.Cost > 0 {
		return meterOf(int64(u.Cost), int64(all.Cost), u.Cost.String()+" of "+all.Cost.String())
	}
	return meterOf(u.Runs, all.Runs, num(u.Runs)+" of "+plural(all.Runs, "run", "runs"))
}

func (p accounts) usage(r *request) (content, error) {
	v, err := p.usedBy(r)
	if err != nil {
		return content{}, err
	}
	quotas, err := p.svc.Quotas.List(r.Context())
	for _, q := range quotas {
		v.Left = append(v.Left, quotaRow{q})
	}
	return content{
		title: "Usage", section: "operations", parts: []part{{"head", "usage-head", v}, {"rows", "usage-rows", v}},
	}, err
}

// table answers with what the page shows as CSV.
func (p accounts) table(w http.ResponseWriter, r *request) error {
	v, err := p.usedBy(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", httpwire.Attachment("usage-by-"+v.By+".csv"))
	out := csv.NewWriter(w)
	titles := []string{v.By, "runs", "wait_ms", "run_ms", "cpu_ms", "calls", "tokens", "cost"}
	_ = out.Write(titles) // Flush tells of an error
	for _, row := range v.Rows {
		cells := []string{cellOf(row.Name)}
		for _, n := range []int64{row.Runs, row.WaitMS, row.RunMS, row.CPUMS, row.Calls, row.Tokens} {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		_ = out.Write(append(cells, row.Cost.String()))
	}
	out.Flush()
	return nil // the browser may have gone
}

// cellOf is a text that a program for tables takes for a text, and for no formula.
func cellOf(text string) string {
	if text != "" && slices.Contains([]byte("=+-@\t\r"), text[0]) {
		return "'" + text
	}
	return text
}

// auditView is a page of who did what.
type auditView struct {
	api.AuditPage
	By, Object string
	Later      bool // it isn't the first page
}

// Next is where the next page begins; 0: there is none.
func (v auditView) Next() int64 { return behind(v.AuditPage.Next) }

func (p accounts) audit(w http.ResponseWriter, r *request) error {
	query := r.URL.Query()
	v := auditView{By: query.Get("by"), Object: query.Get("object")}
	f := api.AuditFilter{By: v.By, Object: v.Object, Limit: 100}
	if text := query.Get("before"); text != "" {
		before, err := strconv.ParseInt(text, 10, 64)
		if err != nil || before < 1 {
			return fault.New(fault.BadRequest, "the page doesn't say where it begins").WithHint("go back to Audit")
		}
		f.After, v.Later = before, true
	}
	var err error
	if v.AuditPage, err = p.svc.Audit.List(r.Context(), f); err != nil {
		return err
	}
	p.show(w, r, http.StatusOK, content{
		title: "Audit", section: "operations", parts: []part{{"head", "audit-head", v}, {"rows", "audit-rows", v}},
	})
	return nil
}
