package api

import "encoding/json"

// Submission is what POST /v1/runs takes as JSON (schemas/openapi.json, "Submission"). As a
// form it has the same fields, and the caller's files beside them.
type Submission struct {
	Unit     string            `json:"unit"`
	Input    json.RawMessage   `json:"input"`              // a JSON object
	Timeout  string            `json:"timeout,omitempty"`  // a duration such as "30s"; "": the unit's, or the server's
	Metadata map[string]string `json:"metadata,omitempty"` // what the run is about: see CheckMetadata
}
