package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Artifact is what is known of an output file, whose URL is in the list of artifacts.
type Artifact struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
	URL    string `json:"url"` // on this server
}

// Provenance tells which unit and run an answer comes from.
type Provenance struct {
	Unit     string `json:"unit,omitempty"`
	Version  string `json:"version,omitempty"`
	Contract string `json:"contract,omitempty"` // the digest of the unit's
	Image    string `json:"image,omitempty"`    // its digest
	RunID    string `json:"run_id"`
}

// Usage is what a run consumed.
type Usage struct {
	RunMS           float64 `json:"run_ms"`
	CPUSeconds      float64 `json:"cpu_seconds"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes"`
}

// Failed is an answer without success, with a reason that a program can read.
type Failed struct {
	agenthttp.Response
	Error Failure `json:"error"`
}

// Failure is a reason that a program can read.
type Failure struct {
	Code     string          `json:"code"` // as in a problem
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}

// StatusFailed is the status of an answer without success. The specification names none.
const StatusFailed = "error"

// answer returns the answer of a successful run.
func (t *task) answer(record api.Record) agenthttp.Response {
	r := agenthttp.Response{
		RequestID: t.RequestID, TaskType: t.TaskType, Status: agenthttp.StatusOK, OK: true,
		Outputs: outputsOf(record.Output),
		Provenance: object(Provenance{
			record.Unit, record.Version, contractDigest(t.schema), record.Image.ID,
			record.ID,
		}),
		Warnings: slices.Concat(t.warnings, record.Warnings),
	}
	if u := record.Usage; u != nil {
		r.Usage = object(Usage{record.Timings.Run, u.CPUSeconds, u.PeakMemoryBytes})
	}
	for _, f := range record.Files {
		at := (&url.URL{Path: "/v1/runs/" + record.ID + "/files/" + f.Name}).EscapedPath()
		r.Artifacts = append(r.Artifacts, at)
		r.ArtifactDetails = append(r.ArtifactDetails,
			json.RawMessage(object(Artifact{f.Name, f.SizeBytes, f.SHA256, at})))
	}
	return r
}

// outputsOf returns a unit's output as an object. An Agentic Unit may have printed an array.
func outputsOf(output json.RawMessage) agenthttp.Object {
	if bytes.HasPrefix(bytes.TrimSpace(output), []byte("{")) {
		return agenthttp.Object(output)
	}
	return object(map[string]json.RawMessage{"output": output})
}

// object encodes a value of this package. None of them can fail.
func object(v any) agenthttp.Object {
	raw, _ := json.Marshal(v)
	return raw
}

// taskError returns why a run did not succeed, or nil. It has no words of the unit, which may
// be made of its input (section "PHI-safe logging rules").
func taskError(record api.Record) error {
	switch {
	case !ended(record):
		return fault.New(fault.Unavailable, "the server ends before the run does").
			WithHint("the run goes on; GET /v1/runs/%s tells how", record.ID)
	case record.Outcome == api.Success:
		return nil
	}
	message, hint := "the run ended with the outcome "+string(record.Outcome), "GET /v1/runs/"+record.ID+" says why"
	if kind, isFault := record.FaultKind(); isFault {
		return fault.New(kind, "%s", message).WithHint("%s", hint)
	}
	return &httpwire.UnitFailure{Message: message, Hint: hint}
}

// refusal converts a problem to the contract's form.
func (t *task) refusal(p httpwire.Problem) Failed {
	r := Failed{
		Response: agenthttp.Response{Status: StatusFailed, Warnings: []string{p.Detail}},
		Error:    Failure{p.Code, p.Detail, p.Hint, p.Findings},
	}
	if len(t.RequestID) <= agenthttp.MaxIDBytes {
		r.RequestID = t.RequestID
	}
	if t.unit != "" { // else it may be anything
		r.TaskType = t.TaskType
	}
	if p.Run != "" {
		r.Provenance = object(Provenance{Unit: t.unit, Contract: contractDigest(t.schema), RunID: p.Run})
	}
	return r
}

var plainID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)

// attrs returns what a log may show of a task: a valid trace id, and a task type that named a
// unit.
func (t *task) attrs() []slog.Attr {
	var attrs []slog.Attr
	if plainID().MatchString(t.RequestID) {
		attrs = append(attrs, slog.String("request_id", t.RequestID))
	}
	if t.unit != "" {
		attrs = append(attrs, slog.String("task_type", t.TaskType))
	}
	return attrs
}

// The contract's own words for what is answered with 200.
const (
	codeInvalid = "VALIDATION_ERROR" // the inputs were refused
	codeFailed  = "TASK_FAILED"      // the unit ended without a result
)

// contractCode is the contract's own word for an error; "" is one of which it has none.
func contractCode(err error) string {
	var failed *httpwire.UnitFailure
	switch {
	case fault.Is(err, fault.Input):
		return codeInvalid
	case errors.As(err, &failed):
		return codeFailed
	}
	return ""
}

// refuses200 returns the code of an error that is answered with 200; "" is one that isn't.
func (h *handler) refuses200(t *task, err error) string {
	if !t.taken || !h.opts.Refuse200[t.unit] {
		return ""
	}
	return contractCode(err)
}

// streamRefusal answers with a stream that has the refusal as its only event.
func (c *call) streamRefusal(err error, code string) {
	c.notes.Report(err, false)
	httpwire.BeginStream(c.w, httpwire.TypeEvents)
	p := c.problem(err)
	p.Code = code
	last := httpwire.Event{Name: string(agenthttp.Final), Data: string(c.task.lastRefusal(p))}
	_ = httpwire.NewEventWriter(c.w).Write(last) // whoever asked has gone
}

// lastRefusal is the data of a terminal event that refuses.
func (t *task) lastRefusal(p httpwire.Problem) []byte {
	r := t.refusal(p)
	r.Type = agenthttp.Final
	return object(r)
}
