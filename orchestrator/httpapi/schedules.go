package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// scheduleHandlers answer what is asked of schedules.
type scheduleHandlers struct {
	svc    *orchestrator.Service
	bodies bodies
	waits  waiter
}

func (h scheduleHandlers) feature() *schedules.Scheduler {
	found, _ := orchestrator.FeatureOf[*schedules.Scheduler](h.svc)
	return found
}

func (h scheduleHandlers) list(c echo.Context) error {
	q := paged(c)
	before, limit := q.after(), q.limit()
	if q.err != nil {
		return q.err
	}
	page, err := h.feature().List(c.Request().Context(), before, limit)
	return replied(c, page, err)
}

// scheduleName returns the schedule's name in the path, if it is a valid name.
func scheduleName(c echo.Context) (string, error) {
	name, err := param(c, "name")
	if err != nil {
		return "", err
	}
	if api.CheckScheduleName(name) != nil {
		return "", fault.New(fault.NotFound, "there is no schedule of this name").
			WithHint("`aod schedule list` lists the schedules")
	}
	return name, nil
}

// putSchedule makes a schedule, or gives one another specification; or it says what would be done.
func (h scheduleHandlers) put(c echo.Context) error {
	name, err := param(c, "name")
	if err != nil {
		return err
	}
	if err := api.CheckScheduleName(name); err != nil {
		return err
	}
	onlyNew, err := httpwire.OnlyNew(c.Request())
	if err != nil {
		return err
	}
	q := queryOf(c, "dry_run")
	dry := q.flag("dry_run")
	if q.err != nil {
		return q.err
	}
	spec, files, err := h.specOf(c)
	if err != nil {
		return err
	}
	if spec.Unit == "" {
		h.bodies.release(c, files)
		return fault.New(fault.BadRequest, "the schedule names no unit").
			WithHint("set \"unit\"; `aod units` lists them")
	}
	// Each of these owns the files from here, even if it fails.
	if dry {
		would, err := h.feature().Try(c.Request().Context(), name, spec, files, onlyNew)
		return stored(c, "/v1/schedules/"+name, would, false, err)
	}
	put := h.feature().Put
	if onlyNew {
		put = h.feature().Add
	}
	schedule, created, err := put(c.Request().Context(), name, spec, files)
	return stored(c, "/v1/schedules/"+name, schedule, created, err)
}

func (h scheduleHandlers) get(ctx context.Context, name string) (api.Schedule, error) {
	return h.feature().Get(ctx, name)
}

func (h scheduleHandlers) occurrences(
	ctx context.Context, name string, before int64, limit int,
) (api.OccurrencePage, error) {
	return h.feature().Occurrences(ctx, name, before, limit)
}

// pausing is what pauses a schedule, or has it go on.
func (h scheduleHandlers) pausing(paused bool) func(context.Context, string) (api.Schedule, error) {
	return func(ctx context.Context, name string) (api.Schedule, error) {
		return h.feature().Pause(ctx, name, paused)
	}
}

func (h scheduleHandlers) remove(c echo.Context) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	if err := h.feature().Delete(c.Request().Context(), name); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// run starts a run of a schedule now.
func (h scheduleHandlers) run(c echo.Context) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	q := queryOf(c, "wait")
	how := ask{wait: q.wait()}
	if q.err != nil {
		return q.err
	}
	record, err := h.feature().Begin(c.Request().Context(), name)
	if err != nil {
		return err
	}
	return h.waits.accepted(c, how, record, false)
}

const maxTimes = 100 // of one answer

// times is how many times an answer has; 0 where nothing is said.
func (q *query) times() int {
	return int(q.integer("n", 1, maxTimes, "a number from 1 to 100"))
}

func (h scheduleHandlers) next(c echo.Context) error {
	name, err := scheduleName(c)
	if err != nil {
		return err
	}
	q := queryOf(c, "n")
	n := q.times()
	if q.err != nil {
		return q.err
	}
	times, err := h.feature().Next(c.Request().Context(), name, n)
	return replied(c, times, err)
}

// preview tells the times that a schedule would have. Nothing is made.
func (h scheduleHandlers) preview(c echo.Context) error {
	q := queryOf(c, "n")
	n := q.times()
	if q.err != nil {
		return q.err
	}
	spec, err := h.readSpec(c)
	if err != nil {
		return err
	}
	times, err := h.feature().Preview(spec, n)
	return replied(c, times, err)
}

// specOf reads the body in either of its forms. In a form the part schedule is what else is
// the body, and the others are files. Whoever gets the spool owns it.
func (h scheduleHandlers) specOf(c echo.Context) (spec api.ScheduleSpec, files *spool.Spool, err error) {
	if httpwire.MediaType(c.Request().Header) != echo.MIMEMultipartForm {
		spec, err = h.readSpec(c)
		return spec, nil, err
	}
	limit := h.bodies.objectBytes()
	f := &form{takes: map[string]int64{"schedule": limit}}
	if err := h.bodies.parseForm(c, f); err != nil {
		return spec, nil, err
	}
	fields, err := f.object("schedule", limit)
	if err == nil {
		err = take(fields, specMembers(&spec)...)
	}
	if err != nil {
		h.bodies.release(c, f.spool)
		return spec, nil, err
	}
	return spec, f.spool, nil
}

func (h scheduleHandlers) readSpec(c echo.Context) (spec api.ScheduleSpec, err error) {
	return spec, h.bodies.object(c, specMembers(&spec)...)
}

// specMembers are the members of a specification.
func specMembers(spec *api.ScheduleSpec) []member {
	return []member{
		{"unit", &spec.Unit},
		{"input", &spec.Input},
		{"metadata", &spec.Metadata},
		{"timeout", &spec.Timeout},
		{"ask", &spec.Ask},
		{"note", &spec.Note},
		{"cron", &spec.Cron},
		{"timezone", &spec.Timezone},
		{"every", &spec.Every},
		{"start", &spec.Start},
		{"at", &spec.At},
		{"missed", &spec.Missed},
		{"grace", &spec.Grace},
		{"overlap", &spec.Overlap},
		{"jitter", &spec.Jitter},
		{"until", &spec.Until},
		{"count", &spec.Count},
	}
}
