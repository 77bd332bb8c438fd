package check

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/checklist"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/schemas"
)

// sectionHealth is AOD's own: the specification doesn't cover health.
const sectionHealth = "Health (docs/agent-http-contract.md)"

// checks lists every rule, in the order of a report.
func checks() []checklist.Rule[*evidence] {
	list := []checklist.Rule[*evidence]{
		rule("reachable", "the agent answers", document.SectionEndpoints, judgeReachable),
		rule("health", "GET /health is a JSON object with a status, or not there", sectionHealth, judgeHealth),
		rule("sync-status", "the sync endpoint answers a known task with 2xx", document.SectionEndpoints,
			judgeSyncStatus),
		rule("sync-content-type", "the sync answer is declared as JSON", document.SectionEndpoints, judgeSyncMedia),
		rule(document.SyncJSON, "the sync answer is one JSON object in UTF-8", document.SectionSync, judgeSyncJSON),
	}
	for _, r := range document.Sync {
		list = append(list, rule(r.ID, r.Title, r.Section, judgeSyncBy(r)))
	}
	list = append(list, answerChecks("sync", "the sync answer's", syncAnswer)...)
	list = append(
		list,
		rule(
			"sync-optional-fields", "a request needs no more than request_id and task_type", document.SectionRequest,
			judgeMinimal,
		),
		rule(
			"sync-request-id-required", "a request without request_id is refused with 4xx", document.SectionRequest,
			judgeWithoutID,
		),
		rule(
			"sync-task-type-required", "a request without task_type is refused with 4xx", document.SectionRequest,
			judgeWithoutTask,
		),
		rule(
			"sync-unsupported-status", "an unknown task_type is refused, with 4xx or the status error",
			document.SectionEndpoints, judgeUnsupported,
		),
		rule(
			"sync-unsupported-body", "that refusal has request_id, ok false, outputs and warnings",
			document.SectionEndpoints, judgeRefusalBody,
		),
		rule(
			"sync-unsupported-schema", "that refusal's members are all of the contract's types", document.SectionSync,
			judgeRefusalSchema,
		),
		rule("refusal-no-payload", "a refusal shows nothing of the inputs", document.SectionPHI, judgeNoPayload),
	)
	return append(list, streamChecks()...)
}

func judgeReachable(e *evidence) (Verdict, string) {
	if e.unreachable != "" {
		return Fail, e.unreachable
	}
	return Pass, ""
}

func judgeHealth(e *evidence) (Verdict, string) {
	switch status := e.health.status; {
	case e.health.problem != "":
		return NotApplicable, "there is no answer"
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented:
		return NotApplicable, "the agent has none"
	case !e.health.ok():
		return Fail, fmt.Sprintf("it is answered with %d", status)
	case e.health.docErr != nil:
		return Fail, "the body " + e.health.docErr.Error()
	case e.health.doc.Text("status") == "":
		return Fail, "status is missing, empty or no string"
	}
	return Pass, ""
}

func judgeSyncStatus(e *evidence) (Verdict, string) { return judgeStatus(&e.sync) }

func judgeStatus(a *answer) (Verdict, string) {
	switch {
	case a.skipped != "":
		return NotApplicable, a.skipped
	case a.problem != "":
		return Fail, a.problem
	case !a.ok():
		return Fail, fmt.Sprintf("it is answered with %d", a.status)
	}
	return Pass, ""
}

// needs says why an answer can't be judged; "" if it can.
func needs(a *answer) string {
	switch {
	case a.skipped != "":
		return a.skipped
	case !a.ok():
		return "there is no answer with 2xx"
	}
	return ""
}

func judgeSyncMedia(e *evidence) (Verdict, string) {
	if why := needs(&e.sync); why != "" {
		return NotApplicable, why
	}
	if e.sync.media != "application/json" {
		return Fail, "its Content-Type is not application/json"
	}
	return Pass, ""
}

func judgeSyncJSON(e *evidence) (Verdict, string) {
	if why := needs(&e.sync); why != "" {
		return NotApplicable, why
	}
	if e.sync.docErr != nil {
		return Fail, "the body " + e.sync.docErr.Error()
	}
	return Pass, ""
}

// syncAnswer is the answer to a known task.
func syncAnswer(e *evidence) (subject, string) {
	if why := needs(&e.sync); why != "" {
		return subject{}, why
	}
	if e.sync.docErr != nil {
		return subject{}, "there is no document"
	}
	return subject{e.sync.doc, e.sync.ids(), document.Sync}, ""
}

func judgeSyncBy(r document.Rule) func(*evidence) (Verdict, string) {
	return func(e *evidence) (Verdict, string) {
		a, why := syncAnswer(e)
		if why != "" {
			return NotApplicable, why
		}
		return judgeBy(r, a.doc, a.asked)
	}
}

// judgeBy applies a rule of an answer. A check needs a task that succeeds.
func judgeBy(r document.Rule, f document.Fields, asked document.Asked) (Verdict, string) {
	if why := r.Judge(f, asked); why != "" {
		return Fail, why
	}
	if isSuccessRule(r.ID) && document.Indicated(f) == document.Failure {
		return Fail, whyFailed(f)
	}
	return Pass, ""
}

func whyFailed(f document.Fields) string {
	if document.IsOddStatus(f.Text("status")) && !f.Has("ok") && !f.Has("success") {
		return "its status is neither ok nor success, and nothing else says how it went: that counts as a failure"
	}
	return "the agent says that the task failed: give it inputs with which it succeeds"
}

func isSuccessRule(id string) bool { return id == "sync-success" || id == "stream-terminal-success" }

func judgeMinimal(e *evidence) (Verdict, string) {
	if why := needs(&e.sync); why != "" {
		return NotApplicable, why
	}
	if e.sync.docErr != nil || document.Indicated(e.sync.doc) != document.Success {
		return NotApplicable, "the task doesn't succeed with all of them either"
	}
	if verdict, why := judgeStatus(&e.minimal); verdict != Pass {
		return verdict, why
	}
	if e.minimal.docErr != nil || document.Indicated(e.minimal.doc) != document.Success {
		return Fail, "the task succeeds with all members, and not with those alone"
	}
	return Pass, ""
}

// subject is an answer that a rule can judge.
type subject struct {
	doc   document.Fields
	asked document.Asked
	rules []document.Rule // that judge single members
}

// answerChecks are the rules for the types of an answer's members. read returns the answer, or
// why there is none.
func answerChecks(prefix, whose string, read func(*evidence) (subject, string)) []checklist.Rule[*evidence] {
	judged := func(judge func(subject) (Verdict, string)) func(*evidence) (Verdict, string) {
		return func(e *evidence) (Verdict, string) {
			answer, why := read(e)
			if why != "" {
				return NotApplicable, why
			}
			return judge(answer)
		}
	}
	return []checklist.Rule[*evidence]{
		rule(
			prefix+"-artifacts", whose+" artifacts are a list of texts: URLs, ids or paths", document.SectionSync,
			judged(judgeArtifacts),
		),
		rule(
			prefix+"-warnings", whose+" warnings are a list of texts, and there", document.SectionSync,
			judged(judgeWarnings),
		),
		rule(
			prefix+"-schema", whose+" members are all of the contract's types", document.SectionSync,
			judged(judgeSchema),
		),
	}
}

func judgeArtifacts(a subject) (Verdict, string) { return judgeHeld(a.doc, is("artifacts")) }

// judgeWarnings advises an agent that leaves them out: the specification recommends them.
func judgeWarnings(a subject) (Verdict, string) {
	if !a.doc.Has("warnings") {
		return Advice, "they are left out: the contract recommends them, as [] where there are none"
	}
	return judgeHeld(a.doc, is("warnings"))
}

func is(name string) func(string) bool { return func(member string) bool { return member == name } }

// judgeSchema leaves out what other rules judge: the members that have one, if they broke it.
func judgeSchema(a subject) (Verdict, string) {
	others := []string{"artifacts", "warnings", "type"}
	for _, r := range a.rules {
		if r.Judge(a.doc, a.asked) != "" {
			others = append(others, r.Members...)
			others = append(others, "") // what the answer lacks
		}
	}
	return judgeHeld(a.doc, func(member string) bool { return !slices.Contains(others, member) })
}

// answerSchema is compiled once. It is our own schema, so a compile error is a mistake of the
// build.
var answerSchema = sync.OnceValue(func() *contract.Schema {
	schema, findings := contract.Compile(schemas.AgentAnswer())
	if schema == nil {
		panic("check: the schema of answers doesn't compile: " + findings[0].String())
	}
	return schema
})

// held holds a whole answer against the contract's schema, and returns what breaks it. No
// finding shows a value. What the task gave is the task's own business.
func held(f document.Fields) ([]fault.Finding, error) {
	f = maps.Clone(f)
	for _, name := range []string{"outputs", "data"} {
		if f.Object(name) != nil {
			f[name] = []byte("{}")
		}
	}
	raw, err := strictjson.Encode(f)
	if err != nil {
		return nil, err
	}
	payload, err := contract.Decode(raw, maxAnswer)
	if err != nil {
		return nil, err
	}
	return answerSchema().Validate(payload), nil
}

// memberOf is the member of an answer that a finding is about, "" for the answer itself.
func memberOf(finding fault.Finding) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(finding.Pointer, "/"), "/")
	return first
}

// judgeHeld holds an answer against the schema, as far as a rule is about its members.
func judgeHeld(f document.Fields, isAbout func(member string) bool) (Verdict, string) {
	findings, err := held(f)
	if err != nil {
		return NotApplicable, "a name stands twice in it, or a number is out of range"
	}
	for _, finding := range findings {
		if isAbout(memberOf(finding)) {
			return Fail, finding.Pointer + ": " + finding.Message
		}
	}
	return Pass, ""
}
