package handoff

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/fault"
)

func (h *Handler) postHandoff(w http.ResponseWriter, r *http.Request) error {
	wait, err := waitOf(r, wait{untilEnd: true})
	if err != nil {
		return err
	}
	id, err := h.accept(w, r, h.readAsk)
	if err != nil {
		return err
	}
	return h.answerWith(w, r, id, wait)
}

func (h *Handler) getHandoff(w http.ResponseWriter, r *http.Request) error {
	wait, err := waitOf(r, wait{})
	if err != nil {
		return err
	}
	id, err := handoffID(r)
	if err != nil {
		return err
	}
	return h.answerWith(w, r, id, wait)
}

// deleteHandoff cancels a call. One that has ended stays as it is.
func (h *Handler) deleteHandoff(w http.ResponseWriter, r *http.Request) error {
	id, err := handoffID(r)
	if err != nil {
		return err
	}
	result, err := h.await(r.Context(), id, wait{})
	if err != nil {
		return err
	}
	if !result.Ended {
		if err := h.runs.Cancel(r.Context(), id, "cancelled by its caller"); err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
		if result, err = h.await(r.Context(), id, wait{}); err != nil {
			return err
		}
	}
	return h.reply(w, r, http.StatusAccepted, underWay{id, result.State})
}

// underWay is a call as it is answered while it goes on.
type underWay struct {
	ID    string `json:"handoff_id"`
	State string `json:"state"`
}

// done is a call as it is answered at its end.
type done struct {
	ID      string          `json:"handoff_id"`
	State   string          `json:"state"`
	Success bool            `json:"success"`
	Output  json.RawMessage `json:"output"`
	Files   []placedFile    `json:"files"`
	Error   *Failure        `json:"error"`
}

// accept reads a request and has its call made, a few of a run's at a time: arguments
// take many times their size while they are checked, and files are open.
func (h *Handler) accept(w http.ResponseWriter, r *http.Request, read func(http.ResponseWriter, *http.Request) (ask, error)) (id string, err error) {
	select {
	case h.accepting <- struct{}{}:
		defer func() { <-h.accepting }()
	case <-r.Context().Done():
		return "", context.Cause(r.Context())
	}
	asked, err := read(w, r)
	if err != nil {
		return "", err
	}
	return h.start(r.Context(), asked)
}

// start has the call made, if every rule and the orchestrator allow it. A call with a key
// that was made before is not counted again, and joins what it made.
func (h *Handler) start(ctx context.Context, asked ask) (id string, err error) {
	began := time.Now()
	unit, err := h.permit(ctx, asked.target)
	if err != nil {
		return "", err
	}
	call, load, err := h.argue(unit, asked)
	if err != nil {
		return "", err
	}
	key, err := h.keys.enter(ctx, asked.key)
	if err != nil {
		return "", err
	}
	defer h.keys.leave(asked.key, key)
	if id, err = h.launch(ctx, call, load, key); err != nil {
		return "", err
	}
	h.log.InfoContext(ctx, "handoff accepted", "handoff", id, "took", time.Since(began))
	return id, nil
}

// argue makes the call of what was asked, if the arguments are good.
func (h *Handler) argue(unit *Unit, asked ask) (Call, cargo, error) {
	args, err := h.arguments(unit, asked)
	if err != nil {
		return Call{}, cargo{}, err
	}
	load, args, err := h.cargoOf(unit, asked, args)
	if err != nil {
		return Call{}, cargo{}, err
	}
	return Call{Target: unit, Args: args, Timeout: asked.timeout, Deadline: h.caller.Deadline, Key: asked.key}, load, nil
}

// launch opens the files, and counts and makes the call while they are open.
func (h *Handler) launch(ctx context.Context, call Call, load cargo, key *key) (id string, err error) {
	call.Files, err = h.carry(ctx, load)
	defer func() {
		for _, f := range call.Files {
			_ = f.Open.Close() // read only
		}
	}()
	if err != nil {
		return "", err
	}
	return h.count(ctx, call, key)
}

func (h *Handler) count(ctx context.Context, call Call, key *key) (id string, err error) {
	if key.spent {
		return h.runs.Start(ctx, call)
	}
	if err := h.caller.Tree.Spend(h.caller.Path, h.limits); err != nil {
		return "", err
	}
	if id, err = h.runs.Start(ctx, call); err != nil {
		h.caller.Tree.refund(h.caller.Path)
		return "", err
	}
	key.spent = call.Key != ""
	return id, nil
}

// await returns a call at its end, or as it stands when the time is up, the server ends
// or the client has gone. It goes on in any case.
func (h *Handler) await(ctx context.Context, id string, wait wait) (Result, error) {
	if !wait.untilEnd {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait.time)
		defer cancel()
	}
	return h.runs.Await(ctx, id)
}

func (h *Handler) answerWith(w http.ResponseWriter, r *http.Request, id string, wait wait) error {
	w.Header().Set("Location", "/handoff/"+id)
	result, err := h.await(r.Context(), id, wait)
	switch {
	case err != nil:
		return err
	case !result.Ended && wait.untilEnd:
		return interrupted(id)
	case !result.Ended:
		return h.reply(w, r, http.StatusAccepted, underWay{id, result.State})
	}
	files, err := h.place(r.Context(), id, result.Files)
	if err != nil {
		return err
	}
	h.log.InfoContext(r.Context(), "handoff answered", "handoff", id, "state", result.State)
	return h.reply(w, r, http.StatusOK, doneWith(id, result, files))
}

func interrupted(id string) error {
	return fault.New(fault.Unavailable, "the server ends before the call does").
		WithHint("the call goes on; GET /handoff/%s tells how", id)
}

func doneWith(id string, result Result, files []placedFile) done {
	answer := done{ID: id, State: result.State, Success: result.Success, Files: files, Error: result.Error}
	if result.Success {
		answer.Output = result.Output
	}
	return answer
}
