package web

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/web/preview"
)

func (p runPages) addRun() {
	p.page("/ui/runs/{id}", p.runSummary)
	p.page("/ui/runs/{id}/events", p.runEvents)
	p.page("/ui/runs/{id}/record", p.runRecord)
	p.page("/ui/runs/{id}/compare", p.runCompare)
	p.read("GET /ui/runs/{id}/peek", p.peek)
	p.read("GET /ui/runs/{id}/files/", fileOf("runs", "files", p.svc.Files.Open))
	p.read("GET /ui/runs/{id}/given/", fileOf("runs", "given", p.svc.Files.OpenInput))
	p.run("POST /ui/runs/{id}/cancel", p.cancelRun)
}

// runView is what the head of each page of a run shows.
type runView struct {
	api.Record
	Is       state
	Tab      string
	Told     string // how far it is, while it goes on
	Why      string // below an error: what kind it is
	Ended    bool
	Tree     tree
	InputIs  string // as JSON, with its lines
	OutputIs string
}

// tab is a page of a run.
type tab struct{ Name, Path, Title, Count string }

// Tabs are the pages that a run has.
func (v runView) Tabs() []tab {
	all := []tab{{"summary", "", "Summary", ""}}
	if v.Flow != nil {
		all = append(all, tab{"flow", "/flow", "Flow", num(int64(v.Flow.Steps))})
	}
	if v.Models != nil {
		all = append(all, tab{"models", "/models", "Model calls", num(v.Models.Calls)})
	}
	if v.Changes != nil {
		all = append(all, tab{"changes", "/changes", "Changes", num(int64(v.Changes.Files))})
	}
	return append(all, tab{"log", "/log", "Log", ""}, tab{"events", "/events", "Events", ""},
		tab{"record", "/record", "Record", ""}, tab{"compare", "/compare", "Compare", ""})
}

// Word is how it goes with the run, behind its unit's name.
func (v runView) Word() string { return wordOf(v.Is) }

// NoteClass is the colour of the note that tells the error.
func (v runView) NoteClass() string {
	if v.Is.Class == "bad" || v.Is.Class == "late" {
		return v.Is.Class
	}
	return ""
}

// Attempt is the number of the last attempt.
func (v runView) Attempt() int { return v.Retries + 1 }

// MostAttempts is how many there may be.
func (v runView) MostAttempts() int { return max(v.MaxRetries, v.Retries) + 1 }

// Broken is the step at which a flow failed; "": it didn't, or elsewhere.
func (v runView) Broken() string {
	if v.Error == nil || v.Flow == nil || !v.Ended {
		return ""
	}
	return v.Error.Step
}

// QueueText says how long the run waited for its turn.
func (v runView) QueueText() string {
	if v.Timings.Queue < 1 {
		return "no wait"
	}
	return millis(v.Timings.Queue) + " in the queue"
}

// Spent is what the run and all that it called took of models.
func (v runView) Spent() *api.ModelTotal { return v.Models.Total() }

// runOf reads a run for one of its pages.
func (p runPages) runOf(r *request, tab string) (runView, error) {
	record, err := p.svc.Runs.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return runView{}, err
	}
	v := runView{Record: record, Tab: tab, Ended: record.Outcome != ""}
	v.Is = stateOf(record.State, record.Outcome, record.Question != nil)
	switch {
	case v.Waiting != nil:
		v.Told = waitingText(*v.Waiting)
	case !v.Ended:
		v.Told = p.progressOf(r.Context(), record.ID, record.Question)
	}
	if record.Error != nil {
		v.Why = record.Error.Kind + " · " + string(record.Error.Category)
	}
	return v, nil
}

// contentOf is a page of a run: its head, and what the page is for.
func (p runPages) contentOf(v runView, parts ...part) content {
	c := content{
		title: v.Unit + " " + wordOf(v.Is), section: "runs",
		parts: append([]part{{"head", "run-head", v}, {"facts", "run-facts", v}}, parts...),
	}
	if !v.Ended {
		c.follow = func(ctx context.Context, changed func()) { p.followRun(ctx, v.Record, changed) }
	}
	return c
}

// wordOf is a state in a sentence.
func wordOf(is state) string {
	switch is.Class {
	case "run":
		return "is running"
	case "queue":
		return "is queued"
	case "ask":
		return "waits for a person"
	case "off":
		return "was cancelled"
	case "late":
		return "ran out of time"
	}
	return map[string]string{"ok": "succeeded", "bad": "failed"}[is.Class]
}

func (p runPages) runSummary(r *request) (content, error) {
	v, err := p.runOf(r, "summary")
	if err != nil {
		return content{}, err
	}
	below, err := p.svc.Runs.Tree(r.Context(), v.ID)
	if err != nil {
		return content{}, err
	}
	v.Tree = newTree(below, v.Record, r.frame.now)
	v.InputIs, v.OutputIs = pretty(v.Input), pretty(v.Output)
	given := fileList{"given", "Files that it was given", p.givenTo(r.Context(), v.ID)}
	made := fileList{"files", "Files", p.filesOf(r.Context(), v.Record)}
	parts, err := questionPages(p).asksOf(r, v.ID)
	if !v.Ended {
		parts = append(parts, saysIn(r.Context(), p.svc, v.ID)...)
	}
	return p.contentOf(v, append(parts, part{"tree", "run-tree", v}, part{"data", "run-data", v},
		part{"files", "run-files", made}, part{"given", "run-files", given},
		part{"attempts", "run-attempts", v})...), err
}

// prettyBytes is how much of a JSON document is shown.
const prettyBytes = 64 << 10

// pretty is a JSON document with its lines, as far as it is shown.
func pretty(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	text := preview.Indent(raw)
	if len(text) > prettyBytes {
		return fault.Cut(text, prettyBytes) + "\n… (" + size(int64(len(text)-prettyBytes)) + " more: see the record)"
	}
	return text
}

func (p runPages) runRecord(r *request) (content, error) {
	v, err := p.runOf(r, "record")
	if err != nil {
		return content{}, err
	}
	raw, err := json.Marshal(v.Record)
	if err != nil {
		return content{}, err
	}
	return p.contentOf(v, part{"record", "run-record", pretty(raw)}), nil
}

// peek answers with what a called run was given and gave, as a piece for its place in the tree.
func (p runPages) peek(w http.ResponseWriter, r *request) error {
	v, err := p.runOf(r, "")
	if err != nil {
		return err
	}
	v.InputIs, v.OutputIs = pretty(v.Input), pretty(v.Output)
	r.frame.Up = "../" // from the page of a run, in which the piece is put
	return p.piece(w, r, part{"peek", "run-peek", v})
}

func (p runPages) cancelRun(w http.ResponseWriter, r *request) error {
	if err := p.actOnRun(r.Context(), r.PathValue("id"), "cancel", ""); err != nil {
		return err
	}
	redirect(w, "../"+r.PathValue("id"))
	return nil
}

// eventRow is an event of a run.
type eventRow struct {
	Seq        int64
	Type, Told string
	Data       string
}

// eventPage is how many events a page shows.
const eventPage = 200

// eventList is a page of a run's events.
type eventList struct {
	Rows []eventRow
	Next int64 // after which there may be more; 0: that was the last
}

func (p runPages) runEvents(r *request) (content, error) {
	v, err := p.runOf(r, "events")
	if err != nil {
		return content{}, err
	}
	var list eventList
	for e, err := range p.svc.Feed.Past(r.Context(), v.ID, numberOf(r, "after")) {
		if err != nil {
			return content{}, err
		}
		if len(list.Rows) == eventPage {
			list.Next = list.Rows[eventPage-1].Seq
			break
		}
		list.Rows = append(list.Rows, eventRow{Seq: e.Seq, Type: string(e.Type), Told: toldBy(e), Data: string(e.Data)})
	}
	return p.contentOf(v, part{"events", "run-events", list}), nil
}
