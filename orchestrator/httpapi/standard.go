package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
)

// The addresses of other AOD orchestrators, in their terms: a run is a session, and a run
// that failed is a request that succeeded.

// execution is the body of POST /execute.
type execution struct {
	unit  string
	input contract.Payload
	files map[string]string // paths on this host, by their names in the input
}

// executed is the answer of POST /execute.
type executed struct {
	Success bool              `json:"success"`
	Output  json.RawMessage   `json:"output"`
	Files   map[string]string `json:"files"` // paths on this host, by name
	Error   *string           `json:"error"`
	Session string            `json:"session_id"`
}

// execute runs a unit and waits for its end, without a time limit.
func (a *API) execute(c echo.Context) error {
	asked, err := a.readExecution(c)
	if err != nil {
		return err
	}
	spool, err := a.takeHostFiles(c, asked)
	if err != nil {
		return err
	}
	record, _, err := a.svc.Submit(c.Request().Context(), orchestrator.Submission{
		Unit: asked.unit, Input: asked.input.JSON(), Files: spool, TraceParent: httpwire.TraceParent(c.Request()),
	})
	if err != nil {
		return err
	}
	setRun(c, record.ID)
	record, err = a.await(c.Request().Context(), record, 0)
	switch {
	case err != nil:
		return err
	case !ended(record):
		return cutShort(record)
	}
	return reply(c, http.StatusOK, a.executedOf(record))
}

func (a *API) executedOf(record api.Record) executed {
	answer := executed{Success: record.Outcome == api.Success, Session: record.ID}
	if !answer.Success {
		message := "the run ended with the outcome " + string(record.Outcome)
		if record.Error != nil {
			message = record.Error.Message
		}
		answer.Error = &message
		return answer
	}
	answer.Output, answer.Files = record.Output, map[string]string{}
	for _, f := range record.Files {
		answer.Files[f.Name] = a.svc.FilePath(record.ID, f.Name)
	}
	return answer
}

// readExecution ignores unknown fields: the clients of other orchestrators send them.
func (a *API) readExecution(c echo.Context) (execution, error) {
	limit := a.opts.PayloadBytes + httpwire.SmallBody
	f, err := readFields(c, limit)
	if err != nil {
		return execution{}, err
	}
	if f["capsule"] == nil || f["input"] == nil {
		return execution{}, fault.New(fault.Input, `the body has no "capsule" or no "input"`).
			WithHint(`send {"capsule": "NAME", "input": {…}}`)
	}
	var asked execution
	err = errors.Join(httpwire.Take(f, "capsule", &asked.unit), httpwire.Take(f, "files", &asked.files))
	if err != nil {
		return execution{}, httpwire.AsKind(fault.Input, err)
	}
	if asked.unit == "" {
		return execution{}, fault.New(fault.BadRequest, "the capsule's name is empty").WithHint("GET /capsules lists them")
	}
	asked.input, err = contract.Decode(f["input"], a.opts.PayloadBytes)
	return asked, err
}

func (a *API) listCapsules(c echo.Context) error {
	units, err := a.svc.Units(c.Request().Context())
	if err != nil {
		return err
	}
	type place struct {
		Path  string `json:"path"`
		Image string `json:"image"`
	}
	capsules := map[string]place{}
	for _, u := range units {
		if u.Problem == nil {
			capsules[u.Name] = place{Path: u.Origin, Image: u.Image}
		}
	}
	return reply(c, http.StatusOK, map[string]any{"capsules": capsules})
}

func (a *API) health(c echo.Context) error {
	return reply(c, http.StatusOK, map[string]string{"status": "ok", "service": "aod"})
}
