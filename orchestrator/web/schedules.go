package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
)

func (p *Page) addSchedules() {
	keeper, is := orchestrator.FeatureOf[*schedules.Scheduler](p.svc)
	if !is {
		return
	}
	s := timetable{p, keeper}
	p.page("/ui/schedules", s.list)
	p.page("/ui/schedules/{name}", s.show)
	p.run("POST /ui/schedules/{name}/run", s.begin)
	p.run("POST /ui/schedules/{name}/pause", s.pause(true))
	p.run("POST /ui/schedules/{name}/resume", s.pause(false))
	p.run("POST /ui/schedules/{name}/remove", s.remove)
}

// timetable are the pages of schedules.
type timetable struct {
	*Page
	keeper *schedules.Scheduler
}

// scheduleView is a schedule as pages show it.
type scheduleView struct {
	api.Schedule
	LastRow     *occurrenceRow // nil: it had none
	Times       []time.Time    // the next ones
	Occurrences []occurrenceRow
	Next        int64 // where the page behind this one begins; 0: there is none
	Later       bool  // this isn't the first page of its occurrences
	InputIs     string
}

// Is is how it stands.
func (v scheduleView) Is() state {
	switch {
	case v.State == api.SchedulePaused:
		return state{"off", "Paused"}
	case v.Problem != "":
		return state{"late", "Can't run"}
	case v.State == api.ScheduleExecuting:
		return state{"run", "Running"}
	case v.State == api.ScheduleEnded:
		return state{"off", "Over"}
	}
	return state{"queue", "Planned"}
}

// IsPaused reports whether somebody has paused it.
func (v scheduleView) IsPaused() bool { return v.State == api.SchedulePaused }

// When says at what times it runs, as it was written.
func (v scheduleView) When() string {
	text := v.At
	switch {
	case v.Cron != "":
		text = v.Cron
	case v.Every != "":
		text = "every " + v.Every
	}
	if v.Timezone != "" && v.Every == "" {
		text += ", " + v.Timezone
	}
	return text
}

// Rules are its other settings, each with what it is.
func (v scheduleView) Rules() (rules [][2]string) {
	add := func(name, value string) {
		if value != "" {
			rules = append(rules, [2]string{name, value})
		}
	}
	add("Late by at most", v.Jitter)
	add("If its time was missed", map[api.MissedPolicy]string{
		api.MissedSkip: "it is left out", api.MissedLast: "the last is made up for",
		api.MissedAll: "all are made up for",
	}[v.Missed])
	add("Made up for within", v.Grace)
	add("If a run of it goes on", map[api.OverlapPolicy]string{
		api.OverlapSkip: "it is left out", api.OverlapQueue: "it waits for the end",
		api.OverlapAllow: "it runs beside it", api.OverlapCancel: "that one is cancelled",
	}[v.Overlap])
	add("Time limit of a run", v.Timeout)
	if v.Count > 0 {
		add("Times in all", num(int64(v.Count)))
	}
	if v.Ask {
		add("Questions", "its runs may ask a person")
	}
	var tags []string
	for _, key := range sortedKeys(v.Metadata) {
		tags = append(tags, key+" "+v.Metadata[key])
	}
	add("Metadata", strings.Join(tags, ", "))
	return rules
}

// occurrenceRow is a time at which a schedule was to start a run.
type occurrenceRow struct {
	api.Occurrence
	Ran *state // how it went with its run; nil: it has none, or that was removed
}

// occurrence looks for the run of an occurrence.
func (t timetable) occurrence(ctx context.Context, o api.Occurrence) occurrenceRow {
	row := occurrenceRow{Occurrence: o}
	if o.Run == "" {
		return row
	}
	if record, err := t.svc.Runs.Get(ctx, o.Run); err == nil { // else it was removed
		is := stateOf(record.State, record.Outcome, record.Question != nil)
		row.Ran = &is
	}
	return row
}

// Is is what became of it.
func (o occurrenceRow) Is() state {
	if o.Ran != nil {
		return *o.Ran
	}
	switch o.Outcome {
	case api.OccurrenceStarted:
		return state{"off", "Started"}
	case api.OccurrenceWaiting:
		return state{"queue", "Waiting"}
	case api.OccurrenceRefused:
		return state{"bad", "Refused"}
	case api.OccurrenceMissed:
		return state{"late", "Missed"}
	case api.OccurrenceSkipped:
		return state{"off", "Left out"}
	}
	return state{"off", "Cancelled"}
}

// Delay is how late it was looked at; "": in time.
func (o occurrenceRow) Delay() string {
	if late := time.Duration(o.LateMS) * time.Millisecond; late >= time.Second && !o.Manual {
		return span(late) + " late"
	}
	return ""
}

// scheduleList is a page of the schedules.
type scheduleList struct {
	Rows  []scheduleView
	Next  int64
	Later bool
}

const schedulePage, occurrencePage, timesShown = 50, 50, 5

func (t timetable) list(r *request) (content, error) {
	before := numberOf(r, "before")
	page, err := t.keeper.List(r.Context(), before, schedulePage)
	if err != nil {
		return content{}, err
	}
	list := scheduleList{Later: before > 0, Next: behind(page.Next)}
	for _, s := range page.Schedules {
		row := scheduleView{Schedule: s}
		if s.Last != nil {
			last := t.occurrence(r.Context(), *s.Last)
			row.LastRow = &last
		}
		list.Rows = append(list.Rows, row)
	}
	return content{
		title: "Schedules", section: "operations", follow: every(2 * time.Second),
		parts: []part{{"head", "schedules-head", nil}, {"rows", "schedules-rows", list}},
	}, nil
}

// behind is where the next page of a list begins; 0: there is none.
func behind(next *int64) int64 {
	if next == nil {
		return 0
	}
	return *next
}

func (t timetable) show(r *request) (content, error) {
	v, err := t.one(r.Context(), r.PathValue("name"), numberOf(r, "before"))
	if err != nil {
		return content{}, err
	}
	return content{
		title: v.Name, section: "operations", follow: every(2 * time.Second),
		parts: []part{
			{"head", "schedule-head", v}, {"spec", "schedule-spec", v}, {"occurrences", "schedule-occurrences", v},
		},
	}, nil
}

func (t timetable) one(ctx context.Context, name string, before int64) (v scheduleView, err error) {
	if v.Schedule, err = t.keeper.Get(ctx, name); err != nil {
		return v, err
	}
	history, err := t.keeper.Occurrences(ctx, name, before, occurrencePage)
	if err != nil {
		return v, err
	}
	v.InputIs, v.Next, v.Later = pretty(v.Input), behind(history.Next), before > 0
	for _, o := range history.Occurrences {
		v.Occurrences = append(v.Occurrences, t.occurrence(ctx, o))
	}
	if v.Schedule.Next == nil && !v.IsPaused() {
		return v, nil
	}
	if times, err := t.keeper.Next(ctx, name, timesShown); err == nil { // else the schedule tells its problem
		v.Times = times.Times
	}
	return v, nil
}

// begin starts a run of a schedule now, and leads to it.
func (t timetable) begin(w http.ResponseWriter, r *request) error {
	record, err := t.keeper.Begin(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	redirect(w, "../../runs/"+record.ID)
	return nil
}

// pause pauses a schedule, or has it go on.
func (t timetable) pause(paused bool) handler {
	return func(w http.ResponseWriter, r *request) error {
		shown, err := t.keeper.Pause(r.Context(), r.PathValue("name"), paused)
		if err != nil {
			return err
		}
		redirect(w, "../"+shown.Name)
		return nil
	}
}

// remove removes a schedule. One that is gone isn't an error to whoever sends the form twice.
func (t timetable) remove(w http.ResponseWriter, r *request) error {
	if err := t.keeper.Delete(r.Context(), r.PathValue("name")); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	redirect(w, "../../schedules")
	return nil
}
