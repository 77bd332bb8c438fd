package capsuleapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/handoff"
)

// facts answers what a run may know of itself, and of the units that it may call.
type facts struct {
	responder responder
	broker    *handoff.Broker
}

// listed is a unit as GET /capsules shows it.
type listed struct {
	Kind        string          `json:"kind,omitempty"` // of a unit that is called otherwise than by a handoff
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output"`
}

// getCapsules lists the units that the caller may call and that exist. With ?schema=json
// their contracts are plain JSON Schema, such as models take.
func (f facts) getCapsules(w http.ResponseWriter, r *http.Request) error {
	write, err := schemaWriter(r)
	if err != nil {
		return err
	}
	capsules := map[string]listed{}
	units, err := f.broker.Units(r.Context())
	if err != nil {
		return err
	}
	for name, unit := range units {
		capsules[name] = listed{unit.Kind, unit.Description, write(unit.Contract.Input), write(unit.Contract.Output)}
	}
	return f.responder.reply(w, r, http.StatusOK, map[string]any{"capsules": capsules})
}

// schemaWriter returns what writes the schemas of an answer as the query wants them.
func schemaWriter(r *http.Request) (func(*contract.Schema) json.RawMessage, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.Wrap(fault.BadRequest, err, "the query of the address can't be read")
	}
	given := query["schema"]
	switch {
	case len(query) == 0:
		return (*contract.Schema).Raw, nil
	case len(query) == 1 && len(given) == 1 && given[0] == "json":
		return (*contract.Schema).Plain, nil
	}
	return nil, fault.New(fault.BadRequest, "the address has a query that is not known").
		WithHint("its only parameter is schema, and that is json")
}

func (f facts) getSchema(w http.ResponseWriter, r *http.Request) error {
	unit, err := f.broker.Unit(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	f.responder.send(w, r, http.StatusOK, "application/json", unit.Schema)
	return nil
}

// runInfo is what a run is told about itself.
type runInfo struct {
	Run      string     `json:"run"`
	Root     string     `json:"root"`
	Parent   *string    `json:"parent"`
	Unit     string     `json:"unit"`
	Depth    int        `json:"depth"` // handoffs between the root and it
	Deadline *time.Time `json:"deadline"`
}

func (f facts) getRun(w http.ResponseWriter, r *http.Request) error {
	return f.responder.reply(w, r, http.StatusOK, infoOf(f.broker.Caller()))
}

func infoOf(c handoff.Caller) runInfo {
	info := runInfo{Run: c.Run, Root: c.Root, Unit: c.Unit, Depth: c.Depth()}
	if c.Parent != "" {
		info.Parent = &c.Parent
	}
	if !c.Deadline.IsZero() {
		deadline := c.Deadline.UTC()
		info.Deadline = &deadline
	}
	return info
}
