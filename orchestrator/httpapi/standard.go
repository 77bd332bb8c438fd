package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// The addresses of other AOD orchestrators, in their terms: a run is a session, and a run
// that failed is a request that succeeded.

// execution is the body of POST /execute.
type execution struct {
	unit  string
	input contract.Payload
	files map[string]string // paths on this host, by their names in the input
}

// standardHandlers answer at the addresses of the AOD standard.
type standardHandlers struct {
	svc    *orchestrator.Service
	bodies bodies
	waits  waiter
	files  hostFiles
	// problems has execute answer what is wrong with a run with problems and their status.
	problems bool
}

// execute runs a unit and waits for its end, without a time limit. Whatever is wrong with the
// run is an answer like any other.
func (h standardHandlers) execute(c echo.Context) error {
	asked, err := h.readExecution(c)
	if err != nil {
		return h.unreadable(c, err)
	}
	answer, err := h.carryOut(c, asked)
	if err != nil && httpwire.IsAboutRun(err) && !h.tellsProblems(c) {
		answer, err = httpwire.NotExecuted(httpwire.FailureOf(err).Text()), nil
	}
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, answer)
}

func (h standardHandlers) carryOut(c echo.Context, asked execution) (httpwire.Executed, error) {
	var none httpwire.Executed
	files, err := h.files.take(c, asked)
	if err != nil {
		return none, err
	}
	record, _, err := h.svc.Submit(c.Request().Context(), spool.Submission{
		Unit: asked.unit, Input: asked.input.JSON(), Files: files, TraceParent: httpwire.TraceParent(c.Request()),
	})
	if err != nil {
		return none, err
	}
	setRun(c, record.ID)
	record, err = h.waits.await(c.Request().Context(), record, 0)
	switch {
	case err != nil:
		return none, err
	case !ended(record):
		return none, cutShort(record)
	}
	return h.executedOf(record), nil
}

func (h standardHandlers) executedOf(record api.Record) httpwire.Executed {
	if record.Outcome != api.Success {
		why := httpwire.Failure{
			Message:  "the run ended with the outcome " + string(record.Outcome),
			ExitCode: record.ExitCode, Words: h.svc.Runs.LastWords(record),
		}
		if e := record.Error; e != nil {
			why.Type, why.Message, why.Hint, why.Findings = e.Type, e.Message, e.Hint, e.Findings
		}
		return httpwire.NotExecuted(why.Text())
	}
	answer := httpwire.Executed{
		Success: true, Output: record.Output, Files: []string{}, FilePaths: map[string]string{}, Session: &record.ID,
	}
	for _, f := range record.Files {
		answer.Files = append(answer.Files, f.Name)
		answer.FilePaths[f.Name] = h.svc.Runs.FilePath(record.ID, f.Name)
	}
	return answer
}

// tellsProblems reports whether the answer to a request that fails is a problem.
func (h standardHandlers) tellsProblems(c echo.Context) bool {
	return h.problems || httpwire.WantsProblem(c.Request())
}

// unreadable answers a body that isn't the shape.
func (h standardHandlers) unreadable(c echo.Context, err error) error {
	p := problemOf(err)
	if h.tellsProblems(c) || !httpwire.IsAboutRun(err) {
		return err
	}
	return reply(c, p.Status, httpwire.UnreadableOf(p))
}

// readExecution ignores unknown fields: the clients of other orchestrators send them.
func (h standardHandlers) readExecution(c echo.Context) (execution, error) {
	f, err := readFields(c, h.bodies.objectBytes())
	if err != nil {
		return execution{}, err
	}
	var asked execution
	if err := httpwire.TakeExecution(f, &asked.unit, &asked.files); err != nil {
		return execution{}, err
	}
	asked.input, err = contract.Decode(f["input"], h.bodies.payload)
	return asked, httpwire.Within(err, "/input")
}

func (h standardHandlers) capsules(c echo.Context) error {
	units, err := h.svc.Units.List(c.Request().Context())
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

func (h standardHandlers) health(c echo.Context) error {
	return reply(c, http.StatusOK, map[string]string{"status": "healthy", "service": "aod"})
}
