package httpapi

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/url"
	"regexp"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/agenthttp"
	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

// taskArtifact is an output file in the contract's list of artifacts.
type taskArtifact struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
	URL    string `json:"url"` // on this server
}

// taskProvenance says where an answer comes from.
type taskProvenance struct {
	Unit     string `json:"unit,omitempty"`
	Version  string `json:"version,omitempty"`
	Contract string `json:"contract,omitempty"` // the digest of the unit's
	Image    string `json:"image,omitempty"`    // its digest
	RunID    string `json:"run_id"`
}

// taskUsage is what a run took.
type taskUsage struct {
	RunMS           float64 `json:"run_ms"`
	CPUSeconds      float64 `json:"cpu_seconds"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes"`
}

// taskRefusal is an answer that is no success, with the reason as a program reads it.
type taskRefusal struct {
	agenthttp.Response
	Error taskFailure `json:"error"`
}

type taskFailure struct {
	Code     string          `json:"code"` // as in a problem
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}

// statusFailed is the status of an answer that is no success; the specification has none.
const statusFailed = "error"

// answer is what a run that went well answers.
func (t *task) answer(record api.Record) agenthttp.Response {
	r := agenthttp.Response{
		RequestID: t.RequestID, TaskType: t.TaskType, Status: agenthttp.StatusOK, OK: true,
		Outputs:    outputsOf(record.Output),
		Provenance: object(taskProvenance{record.Unit, record.Version, contractDigest(t.schema), record.Image.ID, record.ID}),
		Warnings:   slices.Concat(t.warnings, record.Warnings),
	}
	if u := record.Usage; u != nil {
		r.Usage = object(taskUsage{record.Timings.Run, u.CPUSeconds, u.PeakMemoryBytes})
	}
	for _, f := range record.Files {
		at := (&url.URL{Path: "/v1/runs/" + record.ID + "/files/" + f.Name}).EscapedPath()
		r.Artifacts = append(r.Artifacts, json.RawMessage(object(taskArtifact{f.Name, f.SizeBytes, f.SHA256, at})))
	}
	return r
}

// outputsOf makes an object of what a unit gave: an Agentic Unit may print an array.
func outputsOf(output json.RawMessage) agenthttp.Object {
	if bytes.HasPrefix(bytes.TrimSpace(output), []byte("{")) {
		return agenthttp.Object(output)
	}
	return object(map[string]json.RawMessage{"output": output})
}

// object encodes a value of ours, none of which can fail.
func object(v any) agenthttp.Object {
	raw, _ := json.Marshal(v)
	return raw
}

// taskError says why a run is no success, nil if it is. It has none of the unit's own
// words: they may be made of its input (section "PHI-safe logging rules").
func taskError(record api.Record) error {
	switch {
	case !ended(record):
		return cutShort(record)
	case record.Outcome == api.Success:
		return nil
	}
	told := api.RunError{
		Message: "the run ended with the outcome " + string(record.Outcome),
		Hint:    "GET /v1/runs/" + record.ID + " says why",
	}
	if record.Error != nil {
		told.Kind = record.Error.Kind
	}
	record.Error = &told
	return failureOf(record)
}

// refusal is the contract's form of a problem.
func (t *task) refusal(p httpwire.Problem) taskRefusal {
	r := taskRefusal{
		Response: agenthttp.Response{Status: statusFailed, Warnings: []string{p.Detail}},
		Error:    taskFailure{p.Code, p.Detail, p.Hint, p.Findings},
	}
	if len(t.RequestID) <= agenthttp.MaxIDBytes {
		r.RequestID = t.RequestID
	}
	if t.unit != "" { // else it may be anything
		r.TaskType = t.TaskType
	}
	if p.Run != "" {
		r.Provenance = object(taskProvenance{Unit: t.unit, Contract: contractDigest(t.schema), RunID: p.Run})
	}
	return r
}

// shaped is a problem as the route's wire writes it.
func (a *API) shaped(c echo.Context, p httpwire.Problem) (contentType string, body any) {
	if t, _ := a.traits(c); t&contracted != 0 {
		return echo.MIMEApplicationJSON, taskOf(c).refusal(p)
	}
	return httpwire.TypeProblem, p
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)

// taskAttrs is what a log may have of a task: its trace id, if it looks like one, and the
// type that named a unit.
func taskAttrs(c echo.Context) []slog.Attr {
	t := taskOf(c)
	var attrs []slog.Attr
	if plainID.MatchString(t.RequestID) {
		attrs = append(attrs, slog.String("request_id", t.RequestID))
	}
	if t.unit != "" {
		attrs = append(attrs, slog.String("task_type", t.TaskType))
	}
	return attrs
}
