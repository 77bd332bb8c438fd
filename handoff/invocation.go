package handoff

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

// invocation is what a program is to work on.
type invocation struct {
	runInfo
	Input json.RawMessage `json:"input,omitempty"`
}

const (
	// headerRemaining is how many further runs the program may serve, headerRun the id with
	// which it ends this one. Without them it ends as its run does.
	headerRemaining = "AOD-Remaining"
	headerRun       = "AOD-Run"
)

// EndLine is the line with which a program that may serve further runs ends a run's part of
// its stdout and of its stderr.
func EndLine(run string) string { return "\x1eaod-end " + run + "\x1e" }

// getInvocation answers at once: whoever has a handler has a run.
func (h *Handler) getInvocation(w http.ResponseWriter, r *http.Request) error {
	if h.programLeft() { // nobody waits here: somebody did in an earlier process
		return unclaimed(w, r)
	}
	h.asked.Store(true)
	if h.caller().Reuse && h.caller().Remaining > 0 {
		w.Header().Set(headerRemaining, strconv.Itoa(h.caller().Remaining))
		w.Header().Set(headerRun, h.caller().Run)
	}
	return h.reply(w, r, http.StatusOK, invocation{h.caller().info(), h.caller().Input})
}

// Asked reports whether the program has asked for its invocation: it speaks the handshake,
// so that its container may be started ahead of a run.
func (h *Handler) Asked() bool { return h.asked.Load() }

// Posted is closed when a result has been posted, perhaps to an earlier process.
func (h *Handler) Posted() <-chan struct{} { return h.posted }

// over reports whether the program may have gone on to another run.
func (h *Handler) programLeft() bool {
	if !h.caller().Reuse {
		return false
	}
	select {
	case <-h.posted:
		return true
	default:
		return false
	}
}

// postResult keeps a result. Whether it is a good one is decided when the run has ended,
// as it is of one that was written.
func (h *Handler) postResult(w http.ResponseWriter, r *http.Request) error {
	if h.caller().Result == "" {
		return fault.New(fault.NotFound, "results are not taken here").WithHint("write the result to /io/output.json")
	}
	if h.caller().Remaining > 0 && !h.Asked() { // it would be that of the run before
		return fault.New(fault.Conflict, "the program has not asked for this run yet").WithHint("GET /invocation comes first")
	}
	unlock, err := h.result.lock(r.Context())
	if err != nil {
		return err
	}
	defer unlock()
	result, err := readObject(w, r, h.broker.limits.ResultBytes)
	if err != nil {
		return httpwire.AsKind(fault.BadRequest, err)
	}
	if err := h.result.save(result.JSON()); err != nil {
		return err
	}
	h.post()
	w.WriteHeader(http.StatusNoContent)
	return nil
}
