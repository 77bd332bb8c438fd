package httpwire

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Problem is the body of an answer that is an error (RFC 9457,
// schemas/problem.schema.json).
type Problem struct {
	Type     string          `json:"type"`
	Title    string          `json:"title"`
	Status   int             `json:"status"`
	Detail   string          `json:"detail"`
	Code     string          `json:"code"`
	Rule     string          `json:"rule,omitempty"` // the policy that a call of the capsule API breaks
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
	Run      string          `json:"run,omitempty"` // the id of the run that it is about

	// Retry is after how long the same request may succeed; 0: nobody knows.
	Retry time.Duration `json:"-"`
}

// CodeUnitFailed is the code of a run that its unit ended without a result. No kind of
// fault has it: the server did what it was asked to.
const CodeUnitFailed = "unit_failed"

// retryAfter is the header Retry-After of answers that may be asked for again, where nobody knows when.
const retryAfter = 5 * time.Second

// maxProblem bounds a problem that is read, in bytes.
const maxProblem = 1 << 20

const problemType = "urn:aod:fault:"

// UnitFailure is a run that its unit ended without a result, though it was asked well.
type UnitFailure struct {
	Message, Hint string
	Findings      []fault.Finding
}

func (f *UnitFailure) Error() string { return f.Message }

// ProblemOf returns what a client may know of an error.
func ProblemOf(err error) Problem {
	var failure *UnitFailure
	if errors.As(err, &failure) {
		p := StatusProblem(http.StatusBadGateway, CodeUnitFailed, failure.Message, failure.Hint)
		p.Title, p.Findings = "the unit failed", failure.Findings
		return p
	}
	public := fault.Public(err)
	return Problem{
		Type:     problemType + public.Kind.String(),
		Title:    public.Kind.Title(),
		Status:   fault.HTTPStatus(public),
		Detail:   public.Msg,
		Code:     public.Kind.String(),
		Hint:     public.Hint,
		Findings: public.Findings,
		Retry:    public.Retry,
	}
}

// StatusProblem returns a problem that no kind of fault stands for. Its title is the
// status's own.
func StatusProblem(status int, code, detail, hint string) Problem {
	return Problem{
		Type: problemType + code, Title: http.StatusText(status), Status: status, Detail: detail, Code: code,
		Hint: hint,
	}
}

// MethodNotAllowed is the problem of a request with a method that its address doesn't take.
func MethodNotAllowed() Problem {
	return StatusProblem(http.StatusMethodNotAllowed, "method_not_allowed", "this address does not take the method",
		"the header Allow lists those that it takes")
}

// MayRetry reports whether the same request may succeed later.
func (p Problem) MayRetry() bool {
	return p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable
}

// RetryAfter returns the header Retry-After of a problem that may pass, in seconds.
func (p Problem) RetryAfter() string { return RetryText(p.Retry) }

// RetryText is a time as the header Retry-After has it; of 0 it is the customary one.
func RetryText(after time.Duration) string { return strconv.Itoa(Seconds(cmp.Or(after, retryAfter))) }

// ReadProblem reads the problem in an answer, up to 1 MiB, and reports whether there is one.
func ReadProblem(response *http.Response) (Problem, bool) {
	var p Problem
	if MediaType(response.Header) != TypeProblem {
		return p, false
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return p, false
	}
	return p, p.Code != "" && p.Detail+p.Title != ""
}

// Fault returns the fault that a problem tells of. The kind of a code that isn't known is
// Unsupported: the server is newer than its client.
func (p Problem) Fault() *fault.Error {
	kind, known := fault.KindNamed(p.Code)
	switch {
	case known:
	case p.Code == CodeUnitFailed:
		kind = fault.Capsule
	default:
		kind = fault.Unsupported
	}
	message := p.Detail
	if message == "" {
		message = p.Title
	}
	return &fault.Error{Kind: kind, Msg: message, Hint: p.Hint, Findings: p.Findings}
}
