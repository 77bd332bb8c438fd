package handoff

import (
	"encoding/json"
	"net/http"
)

// executed is the answer of POST /execute, which clients of other AOD orchestrators use. There
// a run is a session, and a run that failed is a request that succeeded.
type executed struct {
	Success bool              `json:"success"`
	Output  json.RawMessage   `json:"output"`
	Files   map[string]string `json:"files"` // paths in the caller's sandbox, by name
	Error   *string           `json:"error"`
	Session string            `json:"session_id"`
}

// postExecute makes a handoff, under the same rules, of a request in another format.
func (h *Handler) postExecute(w http.ResponseWriter, r *http.Request) error {
	id, err := h.start(w, r, h.readExecution)
	if err != nil {
		return err
	}
	result, err := h.await(r.Context(), id, wait{untilEnd: true})
	if err != nil {
		return err
	}
	if !result.Ended {
		return interrupted(id)
	}
	return h.answerExecuted(w, r, id, result)
}

func (h *Handler) answerExecuted(w http.ResponseWriter, r *http.Request, id string, result Result) error {
	answer := executed{Success: result.Success, Session: id}
	if !result.Success {
		message := "the run ended in the state " + result.State
		if result.Error != nil {
			message = result.Error.Message
		}
		answer.Error = &message
		return h.reply(w, r, http.StatusOK, answer)
	}
	files, err := h.broker.Deliver(r.Context(), id, result.Files)
	if err != nil {
		return err
	}
	answer.Output, answer.Files = result.Output, map[string]string{}
	for _, f := range files {
		answer.Files[f.Name] = f.Path
	}
	return h.reply(w, r, http.StatusOK, answer)
}
