package check

import (
	"fmt"
	"net/http"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
)

// sectionHealth is AOD's own: the specification doesn't cover health.
const sectionHealth = "Health (docs/agent-http-contract.md)"

// check is one rule of a Report.
type check struct {
	id, title, section string
	judge              func(*evidence) (Verdict, string)
}

// checks lists every rule, in the order of a report.
func checks() []check {
	list := []check{
		{"reachable", "the agent answers", document.SectionEndpoints, judgeReachable},
		{"health", "GET /health is a JSON object with a status, or not there", sectionHealth, judgeHealth},
		{"sync-status", "the sync endpoint answers a known task with 2xx", document.SectionEndpoints, judgeSyncStatus},
		{"sync-content-type", "the sync answer is declared as JSON", document.SectionEndpoints, judgeSyncMedia},
		{document.SyncJSON, "the sync answer is one JSON object in UTF-8", document.SectionSync, judgeSyncJSON},
	}
	for _, r := range document.Sync {
		list = append(list, check{r.ID, r.Title, r.Section, judgeSyncBy(r)})
	}
	list = append(list, answerChecks("sync", "the sync answer's", syncAnswer)...)
	list = append(
		list,
		check{
			"sync-optional-fields", "a request needs no more than request_id and task_type", document.SectionRequest,
			judgeMinimal,
		},
		check{
			"sync-request-id-required", "a request without request_id is refused with 4xx", document.SectionRequest,
			judgeWithoutID,
		},
		check{
			"sync-task-type-required", "a request without task_type is refused with 4xx", document.SectionRequest,
			judgeWithoutTask,
		},
		check{
			"sync-unsupported-status", "an unknown task_type is refused, with 4xx or the status error",
			document.SectionEndpoints, judgeUnsupported,
		},
		check{
			"sync-unsupported-body", "that refusal has request_id, ok false, outputs and warnings",
			document.SectionEndpoints, judgeRefusalBody,
		},
		check{
			"sync-unsupported-schema", "that refusal's members are all of the contract's types", document.SectionSync,
			judgeRefusalSchema,
		},
		check{"refusal-no-payload", "a refusal shows nothing of the inputs", document.SectionPHI, judgeNoPayload},
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
