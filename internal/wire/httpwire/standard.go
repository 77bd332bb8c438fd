package httpwire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/terminal"
)

// Executed is the answer of the AOD standard to whoever asked for a run, well ended or not:
// the request itself succeeded. Without success everything but Error is null.
type Executed struct {
	Success   bool              `json:"success"`
	Output    json.RawMessage   `json:"output"`
	Files     []string          `json:"files"`      // names
	FilePaths map[string]string `json:"file_paths"` // where they are, by those names
	Error     *string           `json:"error"`
	Session   *string           `json:"session_id"` // the run's id
}

// NotExecuted is the answer for a run that gave no result, or that there won't be.
func NotExecuted(why string) Executed { return Executed{Error: &why} }

// Unreadable is the answer of the AOD standard to a body that isn't the shape.
type Unreadable struct {
	Detail []Violation `json:"detail"`
}

// Violation is one thing that is wrong with a body.
type Violation struct {
	Loc  []string `json:"loc"` // "body", and the keys that lead to the place
	Msg  string   `json:"msg"`
	Type string   `json:"type"` // the code of a problem
}

// UnreadableOf turns the problem of a body into the standard's form.
func UnreadableOf(p Problem) Unreadable {
	findings := p.Findings
	if len(findings) == 0 {
		findings = []fault.Finding{{Message: p.Detail}}
	}
	var u Unreadable
	for _, f := range findings {
		loc := append([]string{"body"}, strings.FieldsFunc(f.Pointer, func(c rune) bool { return c == '/' })...)
		msg := f.Message
		if hint := cmp.Or(f.Hint, p.Hint); hint != "" {
			msg += " (" + hint + ")"
		}
		u.Detail = append(u.Detail, Violation{loc, terminal.Plain(msg), p.Code})
	}
	return u
}

// TakeExecution reads the fields of POST /execute but its input. Other fields are nobody's
// concern: clients of other orchestrators send them. The error is a BadRequest fault for an
// empty name, and else an Input fault with every field that is wrong.
func TakeExecution(f Fields, unit *string, files *map[string]string) error {
	var wrong []fault.Finding
	for _, name := range []string{"capsule", "input"} {
		if f[name] == nil {
			wrong = append(wrong, fault.Finding{Pointer: "/" + name, Message: "the field is missing"})
		}
	}
	if Take(f, "capsule", unit) != nil {
		wrong = append(wrong, fault.Finding{Pointer: "/capsule", Message: "the field is not text"})
	}
	if Take(f, "files", files) != nil {
		wrong = append(wrong, fault.Finding{Pointer: "/files", Message: "the field isn't an object of texts"})
	}
	if len(wrong) > 0 {
		return fault.New(fault.Input, "the body is not the shape of a request").
			WithHint(`send {"capsule": "NAME", "input": {…}}`).WithFindings(wrong)
	}
	if *unit == "" {
		return Within(fault.New(fault.BadRequest, "the capsule's name is empty").WithHint("GET /capsules lists them"),
			"/capsule")
	}
	return nil
}

// Within says of a fault without findings at which place of the body it is.
func Within(err error, pointer string) error {
	var e *fault.Error
	if !errors.As(err, &e) || len(e.Findings) > 0 {
		return err
	}
	placed := *e
	return placed.WithFindings([]fault.Finding{{Pointer: pointer, Message: e.Msg}})
}

// IsAboutRun reports whether an error is about the run that somebody asked for, rather than
// about a server that can't run anything at the moment.
func IsAboutRun(err error) bool {
	switch fault.KindOf(err) {
	case fault.Internal, fault.Unavailable, fault.Busy, fault.Cancelled, fault.Unauthorized:
		return false
	}
	return true
}

// WantsProblem reports whether a client asks for problems in our own form.
func WantsProblem(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			if media, _, err := mime.ParseMediaType(part); err == nil && media == TypeProblem {
				return true
			}
		}
	}
	return false
}

// Failure is why a run gave no result.
type Failure struct {
	Type, Message, Hint string
	Findings            []fault.Finding
	ExitCode            *int   // nil: there is none
	Words               string // the last that the program wrote to stderr
}

// FailureOf is the failure that an error is.
func FailureOf(err error) Failure {
	public := fault.Public(err)
	return Failure{Message: public.Msg, Hint: public.Hint, Findings: public.Findings}
}

// Text is the failure as one text without control characters, but for tabs and line ends. It
// says of the program's words that they are its own.
func (f Failure) Text() string {
	var b strings.Builder
	if f.Type != "" {
		b.WriteString(f.Type + ": ")
	}
	b.WriteString(f.Message)
	if f.ExitCode != nil && !strings.Contains(f.Message, "exit code") {
		fmt.Fprintf(&b, " (exit code %d)", *f.ExitCode)
	}
	for _, finding := range f.Findings {
		b.WriteString("\n  " + finding.String())
	}
	if f.Hint != "" {
		b.WriteString("\nhint: " + f.Hint)
	}
	if f.Words != "" {
		b.WriteString("\nits own last words on stderr:\n" + f.Words)
	}
	return terminal.Plain(b.String())
}
