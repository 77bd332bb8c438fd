package handoff

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// unnamedArtifact is the id of an artifact that has neither an id nor a name.
const unnamedArtifact = "artifact"

// postArtifact takes a part of an artifact. A file of /io/output is taken as it is now.
func (h *Handler) postArtifact(w http.ResponseWriter, r *http.Request) error {
	told, err := readArtifact(w, r)
	if err != nil {
		return err
	}
	a := Artifact{Part: told}
	if a.Key, err = httpwire.IdempotencyKey(r); err != nil {
		return err
	}
	if len(told.Parts) > 0 && told.Parts[0].File != nil {
		a.Open = func() (File, error) { return h.broker.openOutput(told.Parts[0].File.Name) }
	}
	if err := h.broker.runs.Artifact(r.Context(), a); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readArtifact reads the body of POST /artifact.
func readArtifact(w http.ResponseWriter, r *http.Request) (told api.ArtifactEvent, err error) {
	f, err := readFields(w, r, api.MaxPartBytes+httpwire.SmallBody)
	if err != nil {
		return told, httpwire.AsKind(fault.BadRequest, err)
	}
	var text, file *string
	var part api.Part
	err = errors.Join(f.Only("id", "name", "text", "data", "file", "media_type", "append", "last"),
		httpwire.Take(f, "id", &told.ID), httpwire.Take(f, "name", &told.Name), httpwire.Take(f, "text", &text),
		httpwire.Take(f, "file", &file),
		httpwire.Take(f, "media_type", &part.MediaType), httpwire.Take(f, "append", &told.Append),
		httpwire.Take(f, "last", &told.Last))
	if err != nil {
		return told, err
	}
	told.ID = cmp.Or(told.ID, told.Name, unnamedArtifact)
	if told.Parts, err = artifactParts(part, text, file, f["data"]); err != nil {
		return told, err
	}
	return told, api.CheckArtifact(told)
}

// artifactParts makes the one part of what a request gives, or none of a request that gives nothing.
func artifactParts(part api.Part, text, file *string, data json.RawMessage) ([]api.Part, error) {
	given := 0
	if text != nil && *text != "" {
		part.Text, given = *text, given+1
	}
	if data != nil {
		part.Data, given = data, given+1
	}
	if file != nil {
		name, err := contract.CleanName(*file, contract.StageOutput)
		if err != nil {
			return nil, err
		}
		part.File, given = &api.File{Name: name}, given+1
	}
	switch given {
	case 0:
		return nil, nil
	case 1:
		return []api.Part{part}, nil
	}
	return nil, fault.New(fault.Input, "the request has several of text, data and file").
		WithHint("send each for itself, with append")
}
