package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/records"
)

// runHandlers answer what is asked of runs.
type runHandlers struct {
	svc    *orchestrator.Service
	bodies bodies
	waits  waiter
}

func (h runHandlers) list(c echo.Context) error {
	filter, q := filterOf(c)
	if q.err != nil {
		return q.err
	}
	filter.Unit = h.svc.Units.FullName(c.Request().Context(), filter.Unit)
	page, err := h.svc.Runs.List(c.Request().Context(), filter)
	if err != nil {
		return err
	}
	if page.Runs == nil {
		page.Runs = []api.Summary{}
	}
	return reply(c, http.StatusOK, page)
}

const maxPage = 1000

func (h runHandlers) facet(c echo.Context) error {
	filter, q := filterOf(c, "by")
	by := q.text("by")
	if q.err != nil {
		return q.err
	}
	filter.Unit = h.svc.Units.FullName(c.Request().Context(), filter.Unit)
	facet, err := h.svc.Figures.Facet(c.Request().Context(), filter, by)
	return replied(c, facet, err)
}

// filterOf reads a filter, which may have more parameters beside it.
func filterOf(c echo.Context, more ...string) (api.Filter, *query) {
	q := queryWith(c, "metadata", append(more, "unit", "state", "metadata", "parent", "session", "context", "schedule",
		"made_by", "since", "until", "roots", "active", "waiting", "limit", "cursor")...)
	filter := api.Filter{
		Unit:     q.text("unit"),
		Parent:   q.id("parent"),
		Session:  q.id("session"),
		Context:  q.text("context"),
		Schedule: q.text("schedule"),
		By:       q.text("made_by"),
		States:   parse(q, "state", "a list of states with commas between them, such as queued,running", parseStates),
		Roots:    q.flag("roots"),
		Active:   q.flag("active"),
		Waiting:  q.flag("waiting"),
		Metadata: q.pairs("metadata"),
		Since:    q.time("since"),
		Until:    q.time("until"),
		Limit:    int(q.integer("limit", 1, maxPage, "a number from 1 to 1000")),
		Cursor:   q.text("cursor"),
	}
	return filter, q
}

// states are the states that a record can show.
var states = []api.State{
	api.Idle, api.Starting, api.Running, api.Completed,
	api.Failed, api.Timeout, api.Cancelled,
}

func parseStates(text string) ([]api.State, bool) {
	var chosen []api.State
	for name := range strings.SplitSeq(text, ",") {
		state := api.StateOf(api.Status(name))
		if !slices.Contains(states, state) {
			return nil, false
		}
		if !slices.Contains(chosen, state) {
			chosen = append(chosen, state)
		}
	}
	return chosen, true
}

func (h runHandlers) output(c echo.Context, id string) error {
	record, err := h.svc.Runs.Get(c.Request().Context(), id)
	switch {
	case err != nil:
		return err
	case !ended(record):
		return fault.New(fault.Conflict, "the run has not ended").WithHint("`aod logs -f ID` waits for its end")
	case !hasOutput(record):
		return fault.New(fault.NotFound, "the run ended without an output").WithHint("its record says why")
	}
	return reply(c, http.StatusOK, record.Output)
}

// get tells of a run as it is, or with ?wait= at its end.
func (h runHandlers) get(c echo.Context, id string) error {
	q := queryOf(c, "wait")
	wait := q.wait()
	if q.err != nil {
		return q.err
	}
	record, err := h.svc.Runs.Get(c.Request().Context(), id)
	if err == nil && wait > 0 {
		record, err = h.waits.await(c.Request().Context(), record, wait)
	}
	return replied(c, record, err)
}

func hasOutput(record api.Record) bool {
	return len(record.Output) > 0 && !bytes.Equal(record.Output, []byte("null"))
}

// files lists the output files of a run.
func (h runHandlers) files(ctx context.Context, id string) ([]api.File, error) {
	record, err := h.svc.Runs.Get(ctx, id)
	return record.Files, err
}

func (h runHandlers) cancel(c echo.Context, id string) error {
	reason, err := reasonOf(c)
	if err != nil {
		return err
	}
	record, err := h.svc.Cancel(c.Request().Context(), id, reason)
	if err != nil {
		return err
	}
	return reply(c, http.StatusAccepted, record)
}

func (h runHandlers) remove(c echo.Context, id string) error {
	removed, err := h.svc.Retention.Remove(c.Request().Context(), id)
	return replied(c, removed, err)
}

// reasonOf reads an optional body.
func reasonOf(c echo.Context) (string, error) {
	raw, err := io.ReadAll(bodyOf(c, httpwire.SmallBody))
	if err != nil || len(raw) == 0 {
		return "", err
	}
	f, err := decodeFields(raw, httpwire.SmallBody)
	if err != nil {
		return "", httpwire.AsKind(fault.BadRequest, err)
	}
	var reason string
	return reason, take(f, member{"reason", &reason})
}

func (h runHandlers) rerun(c echo.Context, id string) error {
	ask, err := askOf(c)
	if err != nil {
		return err
	}
	from, err := h.rerunOf(c)
	if err != nil {
		return err
	}
	record, replayed, err := h.svc.Rerun(c.Request().Context(), id, ask.key, from)
	if err != nil {
		return err
	}
	return h.waits.accepted(c, ask, record, replayed)
}

// rerunOf reads where a flow is to begin again; a request without a body doesn't say.
func (h runHandlers) rerunOf(c echo.Context) (from api.Rerun, err error) {
	if c.Request().ContentLength == 0 {
		return from, nil
	}
	err = h.bodies.object(c, member{"from", &from.From}, member{"set", &from.Set})
	if err == nil && from.From == "" && len(from.Set) > 0 {
		err = fault.New(fault.BadRequest, "`set` needs `from`: the step before which it is set")
	}
	return from, err
}

func (h runHandlers) submit(c echo.Context) error {
	ask, err := askOf(c)
	if err != nil {
		return err
	}
	sub, err := h.bodies.submission(c, "")
	if err != nil {
		return err
	}
	sub.Key, sub.TraceParent = ask.key, httpwire.TraceParent(c.Request())
	// Submit owns the files from here, even if it fails
	record, replayed, err := h.svc.Submit(c.Request().Context(), sub)
	if err != nil {
		return err
	}
	return h.waits.accepted(c, ask, record, replayed)
}

// ask is a client's request for a run, without the run's input: how to answer.
type ask struct {
	key  string
	wait time.Duration
}

func askOf(c echo.Context) (ask, error) {
	q := queryOf(c, "wait")
	wait := q.wait()
	key, err := httpwire.IdempotencyKey(c.Request())
	return ask{key: key, wait: wait}, errors.Join(q.err, err)
}

// waiter waits for the ends of runs.
type waiter struct {
	runs interface {
		Await(ctx context.Context, id string) (api.Record, error)
	}
}

// accepted answers with an accepted run, after the requested wait.
func (w waiter) accepted(c echo.Context, ask ask, record api.Record, replayed bool) error {
	announce(c, record, replayed)
	if ask.wait == 0 {
		return reply(c, http.StatusAccepted, record)
	}
	record, err := w.await(c.Request().Context(), record, ask.wait)
	switch {
	case err != nil:
		return err
	case !ended(record):
		return reply(c, http.StatusAccepted, record)
	case waitedInVain(record):
		return fault.New(fault.Unavailable, "%s", record.Error.Message).WithHint("%s", record.Error.Hint)
	}
	return reply(c, http.StatusOK, record)
}

// announce names the run in the headers of the answer, whatever the answer says of it.
func announce(c echo.Context, record api.Record, replayed bool) {
	setRun(c, record.ID)
	header := c.Response().Header()
	header.Set(echo.HeaderLocation, "/v1/runs/"+record.ID)
	if replayed {
		header.Set("Idempotent-Replayed", "true")
	}
}

// cutShort is the error when the server ends before the run does.
func cutShort(record api.Record) error {
	return fault.New(fault.Unavailable, "the server ends before the run does").
		WithHint("the run goes on; `aod runs %s` tells how", record.ID)
}

// await returns the run at its end, or as it is when the time is up (0 is no limit), when
// the server ends or when the client disconnects. The run goes on in any case.
func (w waiter) await(request context.Context, record api.Record, wait time.Duration) (api.Record, error) {
	if ended(record) {
		return record, nil
	}
	ctx, stop := httpwire.Attached(request)
	defer stop()
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	return w.runs.Await(ctx, record.ID)
}

// waitedInVain reports whether a run never got a slot.
func waitedInVain(record api.Record) bool {
	return record.Error != nil && record.Error.Kind == api.KindQueueTimeout
}

// ended reports whether a run has its outcome, even if its clean-up goes on.
func ended(record api.Record) bool { return record.Outcome != "" }

func (h runHandlers) pushes(ctx context.Context, id string) ([]api.Push, error) {
	told, _ := orchestrator.FeatureOf[*pushes.Feature](h.svc)
	return told.Pushes(ctx, id)
}

func (h runHandlers) steps(ctx context.Context, run string, after int64, limit int) (api.StepPage, error) {
	return h.svc.Flows.Steps(ctx, run, records.StepFilter{After: after, Limit: limit})
}
