package handoff

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// invocation is what a program is to work on.
type invocation struct {
	runInfo
	Input json.RawMessage `json:"input,omitempty"`
}

const (
	// headerRemaining has the number of further runs that the program may serve. headerRun
	// has the id that the program puts into its EndLine. A program that gets neither ends
	// with its run.
	headerRemaining = "AOD-Remaining"
	headerRun       = "AOD-Run"
)

// EndLine is the line that ends the output of one run, on stdout and on stderr, where the
// program may serve further runs.
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

// Asked reports whether the program has asked for its invocation. The container of such a
// program may be started ahead of a run.
func (h *Handler) Asked() bool { return h.asked.Load() }

// Posted is closed when a result has been posted, perhaps to an earlier process.
func (h *Handler) Posted() <-chan struct{} { return h.posted }

// programLeft reports whether the program may have gone on to another run.
func (h *Handler) programLeft() bool {
	return h.caller().Reuse && pause.Over(h.posted)
}

// postResult saves a result. Nobody checks it here: at the end of the run it is judged like
// a result that was written to a file.
func (h *Handler) postResult(w http.ResponseWriter, r *http.Request) error {
	if h.caller().Result == "" {
		return fault.New(fault.NotFound, "results are not taken here").WithHint("write the result to /io/output.json")
	}
	if h.caller().Remaining > 0 && !h.Asked() { // the result is that of the run before
		return fault.New(fault.Conflict, "the program has not asked for this run yet").
			WithHint("GET /invocation comes first")
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
