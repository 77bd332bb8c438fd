package capsuleapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// unnamedArtifact is the id of an artifact that has neither an id nor a name.
const unnamedArtifact = "artifact"

// ArtifactMount takes the parts of artifacts that a run shows. Before take returns it copies the file of
// one, with File.CopyTo: a file of /io/output is taken as it is then.
func ArtifactMount(take func(ctx context.Context, a handoff.Artifact) error) Mount {
	return Mount{Path: "/artifact", actions: func(_ responder, b *handoff.Broker) map[string]action {
		return map[string]action{http.MethodPost: artifacts{b, take}.post}
	}}
}

// artifacts takes what a run shows.
type artifacts struct {
	broker *handoff.Broker
	take   func(ctx context.Context, a handoff.Artifact) error
}

func (s artifacts) post(w http.ResponseWriter, r *http.Request) error {
	a, err := s.read(w, r)
	if err == nil {
		err = s.take(r.Context(), a)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (s artifacts) read(w http.ResponseWriter, r *http.Request) (a handoff.Artifact, err error) {
	if a.Part, err = readArtifact(w, r); err != nil {
		return a, err
	}
	if len(a.Part.Parts) > 0 && a.Part.Parts[0].File != nil {
		a.Open = func() (handoff.File, error) { return s.broker.OpenOutput(r.Context(), a.Part.Parts[0].File.Name) }
	}
	a.Key, err = httpwire.IdempotencyKey(r)
	return a, err
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
