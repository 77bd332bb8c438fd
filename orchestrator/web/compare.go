package web

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/web/preview"
)

// comparison is a run beside another one.
type comparison struct {
	ID, With string // With "": there is no other run
	Earlier  []earlierRun
	Facts    []pairOfFacts
	Input    documentDiff
	Output   documentDiff
}

// earlierRun is a run that another one can be compared with.
type earlierRun struct {
	ID      string
	Is      state
	At      time.Time
	Repeats bool // the other run repeats it
}

// pairOfFacts is what two runs have in common, or not.
type pairOfFacts struct{ Name, Then, Now string }

// Differs reports whether the runs differ in it.
func (f pairOfFacts) Differs() bool { return f.Then != f.Now }

// documentDiff is how a document became another one.
type documentDiff struct {
	Title string
	Diff  *fileDiff // nil: they are the same
	Cut   bool      // only the first lines were compared
	None  bool      // neither run has one
}

// shownEarlier is how many earlier runs of its unit a run is offered to be compared with.
const shownEarlier = 20

// comparedLines and comparedBytes are how much of a document is compared.
const comparedLines, comparedBytes = 5000, 1 << 20

// comparedDiff is how much is shown of what differs.
var comparedDiff = diffBounds{Bytes: 4 * comparedBytes, Files: 1, Lines: 300, Each: 300}

func (p runPages) runCompare(r *request) (content, error) {
	v, err := p.runOf(r, "compare")
	if err != nil {
		return content{}, err
	}
	c := comparison{ID: v.ID, With: r.URL.Query().Get("with")}
	if c.Earlier, err = p.earlierThan(r.Context(), v.Record); err != nil {
		return content{}, err
	}
	if c.With == "" && len(c.Earlier) > 0 {
		c.With = c.Earlier[0].ID
	}
	if c.With != "" {
		then, err := p.svc.Runs.Get(r.Context(), c.With)
		if err != nil {
			return content{}, err
		}
		c.Facts = r.frame.compared(then, v.Record)
		c.Input = compareDocuments("Input", then.Input, v.Input)
		c.Output = compareDocuments("Output", then.Output, v.Output)
	}
	return p.contentOf(v, part{"compare", "run-compare", c}), nil
}

// earlierThan lists the run that a run repeats, and the newest of those that its unit had before.
func (p runPages) earlierThan(ctx context.Context, of api.Record) (all []earlierRun, err error) {
	if of.RerunOf != "" {
		old, err := p.svc.Runs.Get(ctx, of.RerunOf)
		if err == nil { // else it is gone
			all = append(all, earlierRun{old.ID, stateOf(old.State, old.Outcome, false), old.CreatedAt, true})
		}
	}
	page, err := p.svc.Runs.List(ctx, api.Filter{Unit: of.Unit, Until: of.CreatedAt, Limit: shownEarlier})
	for _, run := range page.Runs {
		if run.ID != of.RerunOf {
			all = append(all, earlierRun{run.ID, stateOf(run.State, run.Outcome, false), run.CreatedAt, false})
		}
	}
	return all, err
}

// compared is what is known of two runs beside their documents.
func (f *frame) compared(then, now api.Record) []pairOfFacts {
	old, own := f.told(then), f.told(now)
	pairs := make([]pairOfFacts, len(old))
	for i, fact := range old {
		pairs[i] = pairOfFacts{fact.Name, fact.Value, own[i].Value}
	}
	return pairs
}

// told is what a comparison tells of a run, always the same facts.
func (f *frame) told(run api.Record) []fact {
	v := runView{Record: run}
	failed, took, tokens := none, none, none
	if run.Error != nil {
		failed = run.Error.Message
	}
	if run.FinishedAt != nil {
		took = span(run.FinishedAt.Sub(run.CreatedAt))
	}
	if spent := v.Spent(); spent != nil {
		tokens = num(spent.Charged)
	}
	return []fact{
		{"Unit", run.Unit},
		{"Version", cmp.Or(run.Version, none)},
		{"State", stateOf(run.State, run.Outcome, run.Question != nil).Word},
		{"Error", failed},
		{"Attempts", num(int64(v.Attempt()))},
		{"Begun", f.Date(run.CreatedAt)},
		{"Duration", took},
		{"Wait", v.QueueText()},
		{"Tokens", tokens},
		{"Cost", cost(v.Spent(), 5)},
		{"Asked for by", cmp.Or(run.By, none)},
	}
}

// compareDocuments compares two JSON documents by their lines.
func compareDocuments(title string, then, now json.RawMessage) documentDiff {
	d := documentDiff{Title: title}
	old, oldCut := firstLines(preview.Indent(then))
	own, ownCut := firstLines(preview.Indent(now))
	d.Cut, d.None = oldCut || ownCut, old+own == ""
	patch := strings.NewReader(workspace.TextPatch(strings.ToLower(title), old, own))
	files, _, err := readDiff(patch, comparedDiff)
	if err == nil && len(files) > 0 {
		d.Diff = files[0]
	}
	return d
}

// firstLines is a text up to the bounds of what is compared, with whole lines.
func firstLines(text string) (first string, cut bool) {
	var all strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if n++; n > comparedLines || all.Len()+len(line) > comparedBytes {
			return all.String(), true
		}
		all.WriteString(line)
	}
	if n > 0 {
		all.WriteByte('\n') // Indent ends without one
	}
	return all.String(), false
}
