package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// auHeader names the run in every answer about one: the body is the unit's output.
const auHeader = "AOD-Run"

// auAsk is a client's request for a run of an Agentic Unit: how to answer, and the unit's
// input beside its stdin.
type auAsk struct {
	ask
	toEnd   bool // wait without a time limit
	input   json.RawMessage
	timeout time.Duration
}

// auHandlers answer what is asked of Agentic Units in their own form.
type auHandlers struct {
	svc    *orchestrator.Service
	bodies bodies
	waits  waiter
}

// run runs an Agentic Unit with the body as its stdin, and answers with its output.
func (h auHandlers) run(c echo.Context, name string) error {
	asked, err := auAskOf(c)
	if err != nil {
		return err
	}
	stdin, err := h.readStdin(c, name)
	if err != nil {
		return err
	}
	// Submit owns the spool from here
	record, replayed, err := h.svc.Submit(c.Request().Context(), spool.Submission{
		Unit: name, Input: asked.input, Files: stdin, Timeout: asked.timeout,
		Key: asked.key, TraceParent: httpwire.TraceParent(c.Request()),
	})
	if err != nil {
		return err
	}
	announce(c, record, replayed)
	c.Response().Header().Set(auHeader, record.ID)
	return h.printed(c, asked, record)
}

func auAskOf(c echo.Context) (auAsk, error) {
	q := queryWith(c, "arg", "wait", "timeout", "prompt", "arg")
	wait := q.wait()
	timeout, mistimed := httpwire.Timeout(q.values.Get("timeout"))
	input, unreadable := auInput(q.values.Get("prompt"), q.values["arg"])
	key, unkeyed := httpwire.IdempotencyKey(c.Request())
	asked := auAsk{ask: ask{key: key, wait: wait}, toEnd: !q.values.Has("wait"), input: input, timeout: timeout}
	return asked, errors.Join(q.err, mistimed, unreadable, unkeyed)
}

// auInput is the unit's input without its stdin (capsule.AUCall).
func auInput(prompt string, args []string) (json.RawMessage, error) {
	input := map[string]any{}
	if prompt != "" {
		input["prompt"] = prompt
	}
	if len(args) > 0 {
		input["args"] = args
	}
	for _, text := range append([]string{prompt}, args...) {
		if !utf8.ValidString(text) { // JSON would change it
			return nil, fault.New(fault.BadRequest, "the prompt or an argument in the address is not UTF-8").
				WithHint("bytes go into the request's body, which is the unit's stdin")
		}
	}
	return json.Marshal(input)
}

// readStdin receives the body. A body larger than the unit accepts is refused before it is
// sent if its length is declared, else as soon as the excess arrives.
func (h auHandlers) readStdin(c echo.Context, unit string) (*spool.Spool, error) {
	limit, err := h.svc.Units.StdinLimit(c.Request().Context(), unit)
	if err != nil {
		return nil, err
	}
	limit = min(limit, h.bodies.upload)
	if c.Request().ContentLength > limit {
		return nil, stdinTooLarge(limit)
	}
	if err := h.bodies.room(c); err != nil {
		return nil, err
	}
	files, err := h.bodies.spools.NewSpool()
	if err != nil {
		return nil, err
	}
	stdin := bodyOf(c, limit)
	if err := stdin.Or(files.Add("stdin", "stdin", streamed(c, stdin), limit)); err != nil {
		h.bodies.release(c, files)
		if fault.Is(err, fault.TooLarge) {
			err = stdinTooLarge(limit)
		}
		return nil, err
	}
	return files, nil
}

func stdinTooLarge(limit int64) error {
	return fault.New(fault.TooLarge, "the body has more than the %d bytes that the unit takes on stdin", limit).
		WithHint("the unit's setting max_stdin, and upload_limit, say how much that is")
}

// printed answers with the unit's output, after the requested wait. As with POST /v1/runs,
// the run goes on if its client disconnects: a client that repeats the request with its key
// finds it.
func (h auHandlers) printed(c echo.Context, asked auAsk, record api.Record) error {
	var err error
	if asked.toEnd || asked.wait > 0 {
		record, err = h.waits.await(c.Request().Context(), record, asked.wait)
	}
	switch {
	case err != nil:
		return err
	case !ended(record) && asked.toEnd:
		return cutShort(record)
	case !ended(record):
		return reply(c, http.StatusAccepted, record)
	case record.Outcome != api.Success:
		return failureOf(record)
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, record.Output)
}

// failureOf is the error for a run without a result: the fault in its record if there is
// one, else that the unit failed.
func failureOf(record api.Record) error {
	e := record.Error
	kind, isFault := record.FaultKind()
	if !isFault {
		return &httpwire.UnitFailure{Message: e.Message, Hint: e.Hint, Findings: e.Findings}
	}
	return fault.New(kind, "%s", e.Message).WithHint("%s", e.Hint).WithFindings(e.Findings)
}
