package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

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

// accepted answers with an accepted run, after the requested wait.
func (a *API) accepted(c echo.Context, ask ask, record api.Record, replayed bool) error {
	announce(c, record, replayed)
	if ask.wait == 0 {
		return reply(c, http.StatusAccepted, record)
	}
	record, err := a.await(c.Request().Context(), record, ask.wait)
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
		WithHint("the run goes on; GET /v1/runs/%s tells how", record.ID)
}

// await returns the run at its end, or as it is when the time is up (0 is no limit), when
// the server ends or when the client disconnects. The run goes on in any case.
func (a *API) await(request context.Context, record api.Record, wait time.Duration) (api.Record, error) {
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
	return a.svc.Await(ctx, record.ID)
}

// waitedInVain reports whether a run never got a slot.
func waitedInVain(record api.Record) bool {
	return record.Error != nil && record.Error.Kind == api.KindQueueTimeout
}

// ended reports whether a run has its outcome, even if its clean-up goes on.
func ended(record api.Record) bool { return record.Outcome != "" }
