package handoff

import (
	"encoding/json"
	"net/http"
)

// listed is a unit as GET /capsules shows it.
type listed struct {
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output"`
}

// getCapsules lists the units that the caller may call and that exist.
func (h *Handler) getCapsules(w http.ResponseWriter, r *http.Request) error {
	capsules := map[string]listed{}
	units, err := h.broker.Units(r.Context())
	if err != nil {
		return err
	}
	for name, unit := range units {
		capsules[name] = listed{unit.Description, unit.Contract.Input.Raw(), unit.Contract.Output.Raw()}
	}
	return h.reply(w, r, http.StatusOK, map[string]any{"capsules": capsules})
}

func (h *Handler) getSchema(w http.ResponseWriter, r *http.Request) error {
	unit, err := h.broker.Unit(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	h.send(w, r, http.StatusOK, "application/json", unit.Schema)
	return nil
}
