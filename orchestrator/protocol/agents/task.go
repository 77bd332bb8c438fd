package agents

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

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// task is a request of the contract, read and checked.
type task struct {
	agenthttp.Request
	unit     string // that does it; "" until it is found
	taken    bool   // the request is in order: an Input fault is about the unit's inputs
	schema   []byte // the unit's contract
	metadata map[string]string
	detached bool // the run goes on when its client goes away
	within   time.Duration
	warnings []string
}

// sync does a task and answers when it is done, however long that takes.
func (h *handler) sync(c *call) error {
	record, err := h.begin(c)
	if err != nil {
		return err
	}
	request := c.r.Context()
	record, err = h.await(request, record)
	if err == nil {
		err = taskError(record)
	}
	if request.Err() != nil {
		h.abandon(request, c.task, record.ID)
	}
	if err != nil {
		return err
	}
	return httpwire.Reply(c.w, http.StatusOK, httpwire.TypeJSON, c.task.answer(record))
}

// await returns the run at its end, or its current record when the server ends or the client
// has gone. The run goes on in any case.
func (h *handler) await(request context.Context, record api.Record) (api.Record, error) {
	if ended(record) {
		return record, nil
	}
	ctx, stop := httpwire.Attached(request)
	defer stop()
	return h.svc.Await(ctx, record.ID)
}

// ended reports whether a run has its outcome, though it may not be cleaned up yet.
func ended(record api.Record) bool { return record.Outcome != "" }

// runHeader names the run in every answer about one.
const runHeader = "AOD-Run"

// begin reads a request and starts its run. Every refusal happens here: after it there is a
// run.
func (h *handler) begin(c *call) (api.Record, error) {
	if err := h.read(c); err != nil {
		return api.Record{}, err
	}
	t := c.task
	record, _, err := h.svc.Submit(c.r.Context(), spool.Submission{
		Unit: t.unit, Input: []byte(t.Inputs), Within: t.within, TraceParent: httpwire.TraceParent(c.r),
		Metadata: t.metadata,
	})
	if err != nil {
		return api.Record{}, redact(err, t.unit, t.schema)
	}
	c.notes.Run = record.ID
	c.w.Header().Set(runHeader, record.ID)
	return record, nil
}

// read fills in the call's task as far as possible, also before an error: a refusal echoes the
// request's ids.
func (h *handler) read(c *call) error {
	if err := httpwire.RequireJSON(c.r); err != nil {
		return err
	}
	raw, err := io.ReadAll(httpwire.BodyOf(c.r, h.opts.PayloadBytes+httpwire.SmallBody))
	if err != nil {
		return err
	}
	t := c.task
	if t.Request, err = agenthttp.ParseRequest(raw); err != nil {
		return err
	}
	var unheard, unbudgeted, unkept error
	t.detached, unheard = detaches(c.r)
	t.within, t.warnings, unbudgeted = readBudgets(t.Budgets)
	t.metadata, unkept = metadataOf(t.Request)
	if err := errors.Join(unheard, unbudgeted, unkept); err != nil {
		return err
	}
	if err := h.findUnit(c); err != nil {
		return err
	}
	if err := h.opts.permit(t.unit, t.metadata); err != nil {
		return err
	}
	if t.Mode == "" {
		t.metadata[fieldMode] = agenthttp.DefaultMode
	}
	t.taken = true
	return redact(h.namesNoFile(t.schema, t.Inputs), t.unit, t.schema)
}

// DisconnectHeader is the header by which a client chooses whether its run goes on when the
// client disconnects.
const DisconnectHeader = "AOD-On-Disconnect"

func detaches(r *http.Request) (bool, error) {
	switch r.Header.Get(DisconnectHeader) {
	case "", "cancel":
		return false, nil
	case "continue":
		return true, nil
	}
	return false, fault.New(fault.BadRequest, "the header %s is not valid", DisconnectHeader).
		WithHint("it is cancel, the default, or continue")
}

// findUnit finds the unit that the task type names. At the address of a unit it has to be that
// unit.
func (h *handler) findUnit(c *call) error {
	t := c.task
	for _, name := range h.opts.unitNames(t.TaskType) {
		if c.only != "" && name != c.only || api.CheckUnitName(name) != nil {
			continue
		}
		schema, err := h.svc.Schema(c.r.Context(), name)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		t.unit, t.schema = h.svc.FullName(c.r.Context(), name), schema
		return err
	}
	return fault.New(fault.NotFound, "no unit at this address has the name that task_type gives").
		WithHint("`aod units` lists the units; csv-report is CSV_REPORT as well")
}

// namesNoFile refuses inputs that name files, since a request can't bring any. The Service
// would refuse them as well, but its error would show their names.
func (h *handler) namesNoFile(schema []byte, inputs agenthttp.Object) error {
	known, _ := contract.Parse(schema)
	if known == nil || inputs.IsZero() {
		return nil // there is a fault of the unit to tell, or nothing to look at
	}
	input, err := contract.Decode(inputs, h.opts.PayloadBytes)
	if err != nil {
		return err
	}
	var found []fault.Finding
	for _, ref := range known.Input.FileRefs(input) {
		found = append(found,
			fault.Finding{Pointer: ref.Pointer, Message: "names a file, and the agent HTTP contract carries none"})
	}
	if len(found) == 0 {
		return nil
	}
	return fault.New(fault.Input, "the inputs name files").
		WithHint("POST /v1/runs takes files, in a form").WithFindings(found)
}

// contractDigest returns the digest of a unit's contract, or "" without one.
func contractDigest(schema []byte) string {
	if len(schema) == 0 {
		return ""
	}
	sum := sha256.Sum256(schema)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// unitNames returns the names of units that a task type may stand for, the likeliest first. A
// task type that the operator has assigned to a unit stands for that unit only.
func (p Policy) unitNames(taskType string) []string {
	if name, given := p.TaskTypes[taskType]; given {
		return []string{name}
	}
	lower := strings.ToLower(taskType)
	return slices.Compact([]string{taskType, strings.ReplaceAll(lower, "_", "-"), lower})
}

const abandonTime = 10 * time.Second

// abandon cancels the run of a client that has gone, unless the client wanted it to go on. When
// the server ends, the runs of its clients go on in the next process.
func (h *handler) abandon(request context.Context, t *task, run string) {
	if t.detached || httpwire.ServerEnds(request) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(request), abandonTime)
	defer cancel()
	_, err := h.svc.Cancel(ctx, run, "the client went away")
	if err != nil && !fault.Is(err, fault.Conflict) { // it has ended by itself
		h.opts.Logger.WarnContext(ctx, "run of a client that went away not cancelled", "run", run, "error", err)
	}
}
