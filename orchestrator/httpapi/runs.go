package httpapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// getRun looks at the service when it is called. The value of a method that the service embeds reads
// it at once, and an API that only lists its routes has none.
func (a *API) getRun(ctx context.Context, id string) (api.Record, error) { return a.svc.Get(ctx, id) }

func (a *API) listRuns(c echo.Context) error {
	filter, err := filterOf(c)
	if err != nil {
		return err
	}
	page, err := a.svc.List(c.Request().Context(), filter)
	if err != nil {
		return err
	}
	if page.Runs == nil {
		page.Runs = []api.Summary{}
	}
	return reply(c, http.StatusOK, page)
}

const maxPage = 1000

func filterOf(c echo.Context) (api.Filter, error) {
	q := queryWith(c, "metadata", "unit", "state", "metadata", "parent", "session", "context", "schedule", "since",
		"until", "active", "waiting", "limit", "cursor")
	filter := api.Filter{
		Unit:     q.text("unit"),
		Parent:   q.id("parent"),
		Session:  q.id("session"),
		Context:  q.text("context"),
		Schedule: q.text("schedule"),
		States:   parse(q, "state", "a list of states with commas between them, such as queued,running", parseStates),
		Active:   q.flag("active"),
		Waiting:  q.flag("waiting"),
		Metadata: q.pairs("metadata"),
		Since:    q.time("since"),
		Until:    q.time("until"),
		Limit:    int(q.integer("limit", 1, maxPage, "a number from 1 to 1000")),
		Cursor:   q.text("cursor"),
	}
	return filter, q.err
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

// recordOf returns the record of the run in the request's path.
func (a *API) recordOf(c echo.Context) (api.Record, error) {
	id, err := runID(c)
	if err != nil {
		return api.Record{}, err
	}
	return a.svc.Get(c.Request().Context(), id)
}

func (a *API) getOutput(c echo.Context) error {
	record, err := a.recordOf(c)
	switch {
	case err != nil:
		return err
	case !ended(record):
		return fault.New(fault.Conflict, "the run has not ended").WithHint("GET /v1/runs/ID/events tells when it has")
	case !hasOutput(record):
		return fault.New(fault.NotFound, "the run ended without an output").WithHint("its record says why")
	}
	return reply(c, http.StatusOK, record.Output)
}

func hasOutput(record api.Record) bool {
	return len(record.Output) > 0 && !bytes.Equal(record.Output, []byte("null"))
}

func (a *API) cancelRun(c echo.Context, id string) error {
	reason, err := reasonOf(c)
	if err != nil {
		return err
	}
	record, err := a.svc.Cancel(c.Request().Context(), id, reason)
	if err != nil {
		return err
	}
	return reply(c, http.StatusAccepted, record)
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

func (a *API) rerun(c echo.Context, id string) error {
	ask, err := askOf(c)
	if err != nil {
		return err
	}
	from, err := a.rerunOf(c)
	if err != nil {
		return err
	}
	record, replayed, err := a.svc.Rerun(c.Request().Context(), id, ask.key, from)
	if err != nil {
		return err
	}
	return a.accepted(c, ask, record, replayed)
}

// rerunOf reads where a flow is to begin again; a request without a body doesn't say.
func (a *API) rerunOf(c echo.Context) (from api.Rerun, err error) {
	if c.Request().ContentLength == 0 {
		return from, nil
	}
	err = readObject(c, a.opts.PayloadBytes+httpwire.SmallBody, member{"from", &from.From}, member{"set", &from.Set})
	if err == nil && from.From == "" && len(from.Set) > 0 {
		err = fault.New(fault.BadRequest, "`set` needs `from`: the step before which it is set")
	}
	return from, err
}
