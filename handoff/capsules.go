package handoff

import (
	"encoding/json"
	"net/http"

	"github.com/agent-on-demand/aod/fault"
)

// listed is a unit as GET /capsules shows it.
type listed struct {
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output"`
}

// getCapsules lists what is granted and exists.
func (h *Handler) getCapsules(w http.ResponseWriter, r *http.Request) error {
	capsules := map[string]listed{}
	for _, name := range h.caller.Grants {
		unit, err := h.runs.Unit(r.Context(), name)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		capsules[name] = listed{unit.Description, unit.Contract.Input.Raw(), unit.Contract.Output.Raw()}
	}
	return h.reply(w, r, http.StatusOK, map[string]any{"capsules": capsules})
}

func (h *Handler) getSchema(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := h.granted(name); err != nil {
		return err
	}
	unit, err := h.runs.Unit(r.Context(), name)
	if err != nil {
		return err
	}
	h.send(w, r, http.StatusOK, "application/json", unit.Schema)
	return nil
}
