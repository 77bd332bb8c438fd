package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/agenthttp"
	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
)

// The agent HTTP contract: every unit is an agent, and its name a task type.

// task is what a request of the contract asks for.
type task struct {
	agenthttp.Request
	unit     string // that does it; "" until it is found
	schema   []byte // the unit's contract
	metadata map[string]string
	detached bool // the run goes on when its client goes away
	within   time.Duration
	warnings []string
}

// runTask does a task and answers when it is done, however long that takes.
func (a *API) runTask(c echo.Context) error {
	t, record, err := a.beginTask(c)
	if err != nil {
		return err
	}
	request := c.Request().Context()
	record, err = a.await(request, record, 0)
	if err == nil {
		err = taskError(record)
	}
	if request.Err() != nil {
		a.abandon(request, t, record.ID)
	}
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, t.answer(record))
}

// beginTask reads a request and starts its run. What is refused is refused here: all that
// comes later is about a run.
func (a *API) beginTask(c echo.Context) (*task, api.Record, error) {
	t, err := a.readTask(c)
	if err != nil {
		return nil, api.Record{}, err
	}
	record, _, err := a.svc.Submit(c.Request().Context(), orchestrator.Submission{
		Unit: t.unit, Input: []byte(t.Inputs), Within: t.within, TraceParent: traceParent(c.Request()), Metadata: t.metadata,
	})
	if err != nil {
		return nil, api.Record{}, discreet(err, t.unit, t.schema)
	}
	setRun(c, record.ID)
	c.Response().Header().Set(auHeader, record.ID)
	return t, record, nil
}

const taskKey = "task"

// taskOf returns what the request asks for, as far as it was read.
func taskOf(c echo.Context) *task {
	if t, ok := c.Get(taskKey).(*task); ok {
		return t
	}
	return &task{}
}

func (a *API) readTask(c echo.Context) (*task, error) {
	if err := httpwire.RequireJSON(c.Request()); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(bodyOf(c, a.opts.PayloadBytes+httpwire.SmallBody))
	if err != nil {
		return nil, err
	}
	t := &task{}
	t.Request, err = agenthttp.ParseRequest(raw)
	c.Set(taskKey, t) // a refusal echoes what it can
	if err != nil {
		return nil, err
	}
	var unheard, unbudgeted, unkept error
	t.detached, unheard = detaches(c.Request())
	t.within, t.warnings, unbudgeted = readBudgets(t.Budgets)
	t.metadata, unkept = metadataOf(t.Request)
	if err := errors.Join(unheard, unbudgeted, unkept); err != nil {
		return nil, err
	}
	if err := a.findUnit(c, t); err != nil {
		return nil, err
	}
	if err := a.opts.Agents.permit(t.unit, t.metadata); err != nil {
		return nil, err
	}
	if t.Mode == "" {
		t.metadata[fieldMode] = agenthttp.DefaultMode
	}
	return t, nil
}

// disconnectHeader says what becomes of the run when its client goes away before the end.
const disconnectHeader = "AOD-On-Disconnect"

func detaches(r *http.Request) (bool, error) {
	switch r.Header.Get(disconnectHeader) {
	case "", "cancel":
		return false, nil
	case "continue":
		return true, nil
	}
	return false, fault.New(fault.BadRequest, "the header %s is not valid", disconnectHeader).
		WithHint("it is cancel, the default, or continue")
}

// findUnit finds the unit that the task type names. At the address of one unit no other is.
func (a *API) findUnit(c echo.Context, t *task) error {
	only, err := param(c, "unit")
	if err != nil {
		return err
	}
	for _, name := range a.opts.Agents.unitNames(t.TaskType) {
		if only != "" && name != only || api.CheckUnitName(name) != nil {
			continue
		}
		schema, err := a.svc.Schema(c.Request().Context(), name)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		t.unit, t.schema = name, schema
		return errors.Join(err, discreet(a.namesNoFile(schema, t.Inputs), name, schema))
	}
	return fault.New(fault.NotFound, "no unit at this address has the name that task_type gives").
		WithHint("GET /v1/units lists the units; csv-report is CSV_REPORT as well")
}

// namesNoFile refuses inputs that name files, which can't come along. The Service would
// refuse them as well, but by their names.
func (a *API) namesNoFile(schema []byte, inputs agenthttp.Object) error {
	known, _ := contract.Parse(schema)
	if known == nil || inputs.IsZero() {
		return nil // there is a fault of the unit to tell, or nothing to look at
	}
	input, err := contract.Decode(inputs, a.opts.PayloadBytes)
	if err != nil {
		return err
	}
	var found []fault.Finding
	for _, ref := range known.Input.FileRefs(input) {
		found = append(found, fault.Finding{Pointer: ref.Pointer, Message: "names a file, and the agent HTTP contract carries none"})
	}
	if len(found) == 0 {
		return nil
	}
	return fault.New(fault.Input, "the inputs name files").
		WithHint("POST /v1/runs takes files, in a form").WithFindings(found)
}

// contractDigest is that of a unit's contract, as its address gives it; "" is that of none.
func contractDigest(schema []byte) string {
	if len(schema) == 0 {
		return ""
	}
	sum := sha256.Sum256(schema)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// unitNames are the names that a task type may stand for, the likeliest first. One that the
// operator has given to a unit stands for that alone.
func (p AgentPolicy) unitNames(taskType string) []string {
	if name, given := p.TaskTypes[taskType]; given {
		return []string{name}
	}
	lower := strings.ToLower(taskType)
	return slices.Compact([]string{taskType, strings.ReplaceAll(lower, "_", "-"), lower})
}

const abandonTime = 10 * time.Second

// abandon ends the run of a client that has gone, unless that wanted it to go on. A server
// that ends takes its clients with it: their runs are the next one's.
func (a *API) abandon(request context.Context, t *task, run string) {
	if t.detached || httpwire.ServerEnds(request) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(request), abandonTime)
	defer cancel()
	_, err := a.svc.Cancel(ctx, run, "the client went away")
	if err != nil && !fault.Is(err, fault.Conflict) { // it has ended by itself
		a.opts.Logger.WarnContext(ctx, "run of a client that went away not cancelled", "run", run, "error", err)
	}
}

// agentReady says in the contract's words whether a task would get anywhere.
func (a *API) agentReady(c echo.Context) error {
	status, word := http.StatusOK, "ready"
	if err := a.svc.Ready(c.Request().Context()); err != nil {
		status, word = fault.HTTPStatus(fault.New(fault.Unavailable, "%s", word)), "degraded"
	}
	return reply(c, status, map[string]string{"status": word, "service": "aod"})
}
