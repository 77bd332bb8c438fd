package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// runPages are the pages of runs.
type runPages struct{ *Page }

func (p runPages) addRuns() {
	p.page("/ui/runs", p.runs)
	p.run("POST /ui/runs", p.actOnRuns)
}

// runList is the list of runs that nobody else's run asked for.
type runList struct {
	filter
	Rows  []runRow
	Chips []chip
	Next  string // the query of the page behind this one; "": there is none
	Later string // the query of the first page; "": this is it
	All   bool   // nothing is filtered away
}

// filter is what the list shows, as its address says.
type filter struct {
	State    string // of the chips; "": all
	Unit     string
	By       string // who asked for them: the name of a token
	Metadata string // KEY:VALUE
	Since    string // such as 24h
	Parent   string // of the runs that it called; "": runs that nobody called
	Order    string // failed: those that failed or ran out of time before others; "": the newest first
	cursor   string
}

// chip is a link to the runs of one state.
type chip struct {
	state
	Query, Count string
	On           bool
}

// runRow is a run of the list.
type runRow struct {
	api.Summary
	Is   state
	Told string // why it failed, what it asks, or how far it is
	Tags []string
}

// Spent is what the run and all that it called took of models.
func (r runRow) Spent() *api.ModelTotal { return r.Models.Total() }

func (p runPages) runs(r *request) (content, error) {
	f := filterOf(r.URL.Query())
	list, err := p.listRuns(r.Context(), f)
	if err != nil {
		return content{}, err
	}
	return content{
		title: "Runs", section: "runs",
		parts:  []part{{"head", "runs-head", list}, {"states", "runs-states", list}, {"rows", "runs-rows", list}},
		follow: p.followRoots,
	}, nil
}

func filterOf(q url.Values) filter {
	return filter{
		q.Get("state"), q.Get("unit"), q.Get("by"), q.Get("metadata"), q.Get("since"), q.Get("parent"),
		q.Get("order"), q.Get("cursor"),
	}
}

// listRuns makes a page of the list.
func (p runPages) listRuns(ctx context.Context, f filter) (runList, error) {
	list := runList{filter: f, All: f == filter{Order: f.Order}}
	page, err := p.pageOf(ctx, f)
	if err != nil {
		return list, err
	}
	for _, run := range page.Runs {
		list.Rows = append(list.Rows, p.rowOf(ctx, run))
	}
	if page.Next != nil {
		next := f
		next.cursor = *page.Next
		list.Next = next.query()
	}
	if f.cursor != "" {
		first := f
		first.cursor = ""
		list.Later = first.query()
	}
	list.Chips, err = p.chips(ctx, f)
	return list, err
}

// othersFrom begins the cursor of a page behind the runs that failed, and shownRows is how many runs a page has.
const othersFrom, shownRows = "others-", 50

// pageOf is a page of runs in the order that is asked for. Those that failed are a list of their own, and the others
// follow it, so that each is read by the index of its states.
func (p runPages) pageOf(ctx context.Context, f filter) (page api.Page, err error) {
	chosen, err := f.api()
	if err != nil {
		return page, err
	}
	chosen.Limit = shownRows
	if f.Order != "failed" || f.State != "" {
		return p.svc.Runs.List(ctx, chosen)
	}
	place, behind := strings.CutPrefix(f.cursor, othersFrom)
	if chosen.Cursor = place; !behind {
		chosen.States = []api.State{api.Failed, api.Timeout}
		if page, err = p.svc.Runs.List(ctx, chosen); err != nil || page.Next != nil {
			return page, err
		}
		chosen.Cursor = ""
	}
	left := shownRows - len(page.Runs)
	chosen.States = []api.State{api.Idle, api.Starting, api.Running, api.Completed, api.Cancelled}
	chosen.Limit = max(left, 1)
	others, err := p.svc.Runs.List(ctx, chosen)
	if len(others.Runs) > left { // they begin on the next page
		others = api.Page{Next: new(string)}
	}
	page.Runs = append(page.Runs, others.Runs...)
	if others.Next != nil {
		next := othersFrom + *others.Next
		page.Next = &next
	}
	return page, err
}

// api is the filter as the Service takes it.
func (f filter) api() (api.Filter, error) {
	chosen := api.Filter{Unit: f.Unit, By: f.By, Parent: f.Parent, Roots: f.Parent == "", Cursor: f.cursor}
	if f.Metadata != "" {
		key, value, ok := strings.Cut(f.Metadata, ":")
		if !ok {
			return chosen, fault.New(fault.BadRequest, "metadata is looked for by KEY:VALUE").
				WithHint("such as case:17")
		}
		chosen.Metadata = map[string]string{strings.TrimSpace(key): strings.TrimSpace(value)}
	}
	if f.Since != "" {
		d, err := time.ParseDuration(f.Since)
		if err != nil || d <= 0 {
			return chosen, fault.New(fault.BadRequest, "since isn't a duration").WithHint("such as 24h")
		}
		chosen.Since = time.Now().Add(-d)
	}
	switch f.State {
	case "":
	case "waiting":
		chosen.Waiting = true
	case "running":
		chosen.States = []api.State{api.Starting, api.Running}
	default:
		chosen.States = []api.State{api.StateOf(api.Status(f.State))}
	}
	return chosen, nil
}

func (f filter) query() string {
	q := url.Values{}
	for name, value := range map[string]string{
		"state": f.State, "unit": f.Unit, "by": f.By, "metadata": f.Metadata, "since": f.Since, "parent": f.Parent,
		"order": f.Order, "cursor": f.cursor,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "?" + q.Encode()
}

// OnlyBy is the query of what somebody of those on the page asked for.
func (f filter) OnlyBy(name string) string {
	f.By, f.cursor = name, ""
	return f.query()
}

// chips counts the runs of each state, whichever is chosen.
func (p runPages) chips(ctx context.Context, f filter) ([]chip, error) {
	open := f
	open.State, open.cursor = "", ""
	chosen, err := open.api()
	if err != nil {
		return nil, err
	}
	facet, err := p.svc.Figures.Facet(ctx, chosen, "state")
	if err != nil {
		return nil, err
	}
	has := map[string]int64{}
	for _, c := range facet.Counts {
		has[c.Value] = c.Runs
	}
	chosen.Waiting = true
	asking, err := p.svc.Runs.List(ctx, chosen)
	if err != nil {
		return nil, err
	}
	chipOf := func(name string, is state, n int64, more bool) chip {
		to := open
		to.State = name
		return chip{is, to.query(), count(n, more), f.State == name}
	}
	return []chip{
		chipOf("", state{"", "All"}, facet.Runs, facet.More),
		chipOf("running", state{"run", "Running"}, has[string(api.Starting)]+has[string(api.Running)], false),
		chipOf("queued", state{"queue", "Queued"}, has[string(api.Idle)], false),
		chipOf("waiting", state{"ask", "Waiting for a person"}, int64(len(asking.Runs)), asking.Next != nil),
		chipOf("failed", state{"bad", "Failed"}, has[string(api.Failed)], facet.More),
		chipOf("timeout", state{"late", "Timeout"}, has[string(api.Timeout)], facet.More),
		chipOf("cancelled", state{"off", "Cancelled"}, has[string(api.Cancelled)], facet.More),
		chipOf("completed", state{"ok", "Succeeded"}, has[string(api.Completed)], facet.More),
	}, nil
}

func (p runPages) rowOf(ctx context.Context, run api.Summary) runRow {
	row := runRow{Summary: run, Is: stateOf(run.State, run.Outcome, false)}
	for _, key := range sortedKeys(run.Metadata) {
		row.Tags = append(row.Tags, key+" "+run.Metadata[key])
	}
	switch {
	case run.Error != nil:
		row.Told = run.Error.Message
	case run.Waiting != nil:
		row.Told = waitingText(*run.Waiting)
	case run.Outcome == "":
		asks, _ := p.svc.Questions.Oldest(ctx, run.ID) // else it is shown as running
		row.Is, row.Told = stateOf(run.State, "", asks != nil), p.progressOf(ctx, run.ID, asks)
	}
	return row
}

// progressOf tells how far a run is that goes on, or what it asks.
func (p runPages) progressOf(ctx context.Context, id string, asks *api.OpenQuestion) string {
	if asks != nil {
		if asked, err := p.svc.Questions.Get(ctx, asks.ID); err == nil {
			return "Asks: " + asked.Text
		}
	}
	last, err := p.svc.Feed.Last(ctx, id)
	if err != nil {
		return ""
	}
	return toldBy(last)
}

// mostChosen is how many runs of a list can be chosen.
const mostChosen = 200

// actOnRuns cancels the chosen runs, or does them again.
func (p runPages) actOnRuns(w http.ResponseWriter, r *request) error {
	form, err := fieldsOf(w, r)
	if err != nil {
		return err
	}
	chosen := form["run"]
	if len(chosen) > mostChosen {
		return fault.New(fault.TooLarge, "%d runs were chosen; %d can be", len(chosen), mostChosen)
	}
	for _, id := range chosen {
		if err := p.actOnRun(r.Context(), id, form.Get("act"), form.Get("key")); err != nil {
			return err
		}
	}
	redirect(w, "./"+local(form.Get("next")))
	return nil
}

// actOnRun cancels a run or does it again. A run that has ended meanwhile isn't an error to whoever cancels many.
func (p runPages) actOnRun(ctx context.Context, id, act, key string) error {
	switch act {
	case "cancel":
		if _, err := p.svc.Cancel(ctx, id, ""); err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
		return nil
	case "again":
		if key != "" {
			key += "/" + id
		}
		_, _, err := p.svc.Rerun(ctx, id, key, api.Rerun{})
		return err
	}
	return fault.New(fault.BadRequest, "nothing was asked for").WithHint("press one of the buttons")
}
