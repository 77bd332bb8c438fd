package handoff

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func (h *Handler) postHandoff(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "wait", "recall")
	if err != nil {
		return err
	}
	recall, err := recallIn(query)
	if err != nil {
		return err
	}
	wait, err := waitIn(query, wait{untilEnd: true})
	if err != nil {
		return err
	}
	var foreign bool
	var unreadable error
	id, err := h.broker.StartRead(r.Context(), func() (asked Request, err error) {
		asked, foreign, unreadable = h.readRequest(w, r)
		if asked.Recall = recall; recall && asked.Key == "" && unreadable == nil {
			unreadable = fault.New(fault.BadRequest, "a call can't be recalled without a key").
				WithHint("send the header Idempotency-Key")
		}
		return asked, unreadable
	})
	switch {
	case foreign && wait.untilEnd && !httpwire.WantsProblem(r):
		return h.answerForeign(w, r, id, unreadable, err)
	case err != nil:
		return err
	}
	return h.answerWith(w, r, id, wait)
}

func (h *Handler) getHandoff(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "wait")
	if err != nil {
		return err
	}
	wait, err := waitIn(query, wait{})
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
	result, err := h.broker.Cancel(r.Context(), id, "cancelled by its caller")
	if err != nil {
		return err
	}
	return h.reply(w, r, http.StatusAccepted, unfinished{id, result.State})
}

// unfinished is the answer for a call that goes on.
type unfinished struct {
	ID    string `json:"handoff_id"`
	State string `json:"state"`
}

// finished is the answer for a call that has ended.
type finished struct {
	ID      string          `json:"handoff_id"`
	State   string          `json:"state"`
	Success bool            `json:"success"`
	Output  json.RawMessage `json:"output"`
	Files   []PlacedFile    `json:"files"`
	Error   *Failure        `json:"error"`
}

// await returns a call at its end. It returns the call as it stands when the time is up, the
// server ends or the client has gone; the call goes on.
func (h *Handler) await(ctx context.Context, id string, wait wait) (Result, error) {
	if !wait.untilEnd {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait.time)
		defer cancel()
	}
	return h.broker.Await(ctx, id)
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
		return h.reply(w, r, http.StatusAccepted, unfinished{id, result.State})
	}
	answer := finished{ID: id, State: result.State, Success: result.Success, Error: result.Error}
	if result.Success {
		answer.Output = result.Output
	}
	if answer.Files, err = h.broker.Deliver(r.Context(), id, result.Files); err != nil {
		return err
	}
	h.log.InfoContext(r.Context(), "handoff answered", "handoff", id, "state", result.State)
	return h.reply(w, r, http.StatusOK, answer)
}

func interrupted(id string) error {
	return fault.New(fault.Unavailable, "the server ends before the call does").
		WithHint("the call goes on; GET /handoff/%s tells how", id)
}
