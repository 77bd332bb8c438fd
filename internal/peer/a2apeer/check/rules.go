package check

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-on-demand/aod/client/agenthttp/check"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
)

// The parts of the protocol's specification.
const (
	sectionCard   = "Agent Card"
	sectionErrors = "Error Handling"
	sectionSend   = "Send Message"
	sectionTasks  = "Get Task, Cancel Task"
	sectionStream = "Send Streaming Message, Subscribe to Task"
)

// rule is one rule of a report.
type rule struct {
	id, title, section string
	judge              func(*evidence) (check.Verdict, string)
}

// rules lists every rule, in the order of a report.
func rules() []rule {
	return []rule{
		{
			"card", "the card can be fetched and read, and has an interface at the origin of its address", sectionCard,
			judgeCard,
		},
		{"card-members", "the card has the members that each card has", sectionCard, judgeMembers},
		{"card-skills", "each skill of the card has id, name, description and tags", sectionCard, judgeSkills},
		{
			"card-version", "an interface of the card is answered in the version that it names", sectionCard,
			judgeVersion,
		},
		{
			"error-not-json", "what is no JSON is refused with -32700", sectionErrors,
			judgeCode(-32700, func(e *evidence) envelope { return e.notJSON }),
		},
		{
			"error-unknown-method", "a method that there isn't is refused with -32601", sectionErrors,
			judgeCode(-32601, func(e *evidence) envelope { return e.noMethod }),
		},
		{
			"error-unknown-task", "a task that there isn't is TASK_NOT_FOUND", sectionErrors,
			judgeRefused(sentOne, func(e *evidence) error { return e.unknown }, "TASK_NOT_FOUND"),
		},
		{
			"error-cancel-unknown-task", "so is one that is to be cancelled", sectionErrors,
			judgeRefused(sentOne, func(e *evidence) error { return e.cancelUnknown }, "TASK_NOT_FOUND"),
		},
		{"send", "a message is answered with a task or a message", sectionSend, judgeSend},
		{"send-completed", "the task comes to its end, completed", sectionSend, judgeCompleted},
		{"send-result", "what a completed task has made is in its artifacts", sectionSend, judgeResult},
		{"get-same", "a task that is over is told of alike when it is looked at", sectionTasks, judgeSame},
		{
			"error-cancel-ended", "a task that is over can't be cancelled: TASK_NOT_CANCELABLE", sectionTasks,
			judgeRefused(overOne, func(e *evidence) error { return e.ended }, "TASK_NOT_CANCELABLE"),
		},
		{"error-message-ended", "a task that is over takes no message: UNSUPPORTED_OPERATION", sectionTasks, judgeLate},
		{"stream", "a stream tells of the task until its end", sectionStream, judgeStream},
		{"error-subscribe-ended", "a task that is over can't be subscribed to", sectionStream, judgeResubscribed},
		{"cancel", "a task that goes on can be cancelled", sectionTasks, judgeCancel},
	}
}

func (e *evidence) report(target string) check.Report {
	r := check.Report{Target: target, Checks: []check.Result{}}
	for _, each := range rules() {
		result := check.Result{ID: each.id, Title: each.title, Section: each.section}
		result.Verdict, result.Why = each.judge(e)
		r.Checks = append(r.Checks, result)
	}
	return r
}

func judgeCard(e *evidence) (check.Verdict, string) {
	if e.cardErr != nil {
		return check.Fail, why(e.cardErr)
	}
	return check.Pass, ""
}

const noCard = "there is no card"

// membersOf are the members of each card in both versions.
var membersOf = []string{
	"name", "description", "version", "capabilities", "defaultInputModes", "defaultOutputModes",
	"skills",
}

func judgeMembers(e *evidence) (check.Verdict, string) {
	if e.cardErr != nil {
		return check.NotApplicable, noCard
	}
	return judgeHas(e.card.Raw, "", membersOf)
}

// judgeHas wants members of an object that aren't null.
func judgeHas(raw json.RawMessage, where string, members []string) (check.Verdict, string) {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return check.Fail, where + "it is no object"
	}
	for _, name := range members {
		if value := object[name]; len(value) == 0 || string(value) == "null" {
			return check.Fail, where + name + " is missing or null"
		}
	}
	return check.Pass, ""
}

func judgeSkills(e *evidence) (check.Verdict, string) {
	var card struct {
		Skills []json.RawMessage `json:"skills"`
	}
	switch {
	case e.cardErr != nil:
		return check.NotApplicable, noCard
	case json.Unmarshal(e.card.Raw, &card) != nil:
		return check.Fail, "skills is no list"
	case len(card.Skills) == 0:
		return check.Advice, "the card has no skill: who looks for an agent finds nothing that it can do"
	}
	for i, skill := range card.Skills {
		if verdict, says := judgeHas(skill, fmt.Sprintf("in skill %d of %d: ", i+1, len(card.Skills)),
			[]string{"id", "name", "description", "tags"}); verdict != check.Pass {
			return verdict, says
		}
	}
	return check.Pass, ""
}

func judgeVersion(e *evidence) (check.Verdict, string) {
	switch {
	case !e.sent.made || e.sent.err != nil:
		return check.NotApplicable, "there is no answer to a message"
	case e.at != e.card.Interfaces[0]:
		return check.Fail, fmt.Sprintf("the first that was asked isn't spoken; %s in version %s is", e.at.Binding,
			e.at.Version)
	}
	return check.Pass, ""
}

// judgeCode wants an error of JSON-RPC.
func judgeCode(code int, of func(*evidence) envelope) func(*evidence) (check.Verdict, string) {
	return func(e *evidence) (check.Verdict, string) {
		switch got := of(e); {
		case !got.made:
			return check.NotApplicable, "the agent isn't asked by JSON-RPC"
		case got.err != nil:
			return check.Fail, why(got.err)
		case got.code == 0:
			return check.Fail, fmt.Sprintf("it is answered with the status %d and no error of JSON-RPC", got.status)
		case got.code != code:
			return check.Fail, fmt.Sprintf("it is refused with %d", got.code)
		}
		return check.Pass, ""
	}
}

// sentOne says why nothing was asked after the message; "" if it was.
func sentOne(e *evidence) string {
	if !e.sent.made || e.sent.err != nil {
		return "there is no answer to a message"
	}
	return ""
}

// overOne says why nothing was asked of a task that is over; "" if it was.
func overOne(e *evidence) string {
	if !e.looked.made {
		return "there is no task that is over"
	}
	return ""
}

// judgeRefused wants a refusal for one of the given reasons.
func judgeRefused(
	needs func(*evidence) string, of func(*evidence) error, reasons ...string,
) func(*evidence) (check.Verdict, string) {
	return func(e *evidence) (check.Verdict, string) {
		if lacks := needs(e); lacks != "" {
			return check.NotApplicable, lacks
		}
		err := of(e)
		switch {
		case err == nil:
			return check.Fail, "it is not refused"
		case slices.ContainsFunc(reasons, func(reason string) bool { return a2apeer.IsReason(err, reason) }):
			return check.Pass, ""
		}
		return check.Fail, why(err)
	}
}

func judgeSend(e *evidence) (check.Verdict, string) {
	switch {
	case !e.sent.made:
		return check.NotApplicable, noCard
	case e.sent.err != nil:
		return check.Fail, why(e.sent.err)
	}
	return check.Pass, ""
}

func judgeCompleted(e *evidence) (check.Verdict, string) {
	if lacks := sentOne(e); lacks != "" {
		return check.NotApplicable, lacks
	}
	switch state := e.sent.task.State; {
	case state == a2apeer.Completed:
		return check.Pass, ""
	case state.Asks():
		return check.Advice, fmt.Sprintf("it is %s: give it inputs with which it can go on by itself", state)
	case state.Over():
		return check.Fail, fmt.Sprintf("it is %s: give it inputs with which it succeeds", state)
	}
	return check.Fail, "it didn't end in time"
}

func judgeResult(e *evidence) (check.Verdict, string) {
	switch {
	case sentOne(e) != "" || e.sent.task.State != a2apeer.Completed:
		return check.NotApplicable, "there is no completed task"
	case len(e.sent.task.Artifacts) == 0:
		return check.Advice, "it has none: who looks there finds nothing"
	}
	return check.Pass, ""
}

func judgeSame(e *evidence) (check.Verdict, string) {
	if lacks := overOne(e); lacks != "" {
		return check.NotApplicable, lacks
	}
	switch {
	case e.looked.err != nil:
		return check.Fail, why(e.looked.err)
	case e.looked.task.State != e.sent.task.State:
		return check.Fail, fmt.Sprintf("it was %s, and is %s", e.sent.task.State, e.looked.task.State)
	case len(e.looked.task.Artifacts) != len(e.sent.task.Artifacts):
		return check.Fail, fmt.Sprintf("it had %d artifacts, and has %d", len(e.sent.task.Artifacts),
			len(e.looked.task.Artifacts))
	}
	return check.Pass, ""
}

// judgeLate wants a message to a task that is over refused. Which error that is differs between SDKs.
func judgeLate(e *evidence) (check.Verdict, string) {
	verdict, says := judgeRefused(overOne, func(e *evidence) error { return e.after }, "UNSUPPORTED_OPERATION")(e)
	if verdict == check.Fail && a2apeer.IsReason(e.after, "INVALID_PARAMS") {
		return check.Advice, "it is refused with INVALID_PARAMS, as if another message could be taken"
	}
	return verdict, says
}

func judgeStream(e *evidence) (check.Verdict, string) {
	switch {
	case !e.stream.made:
		return check.NotApplicable, "the card has no streaming"
	case e.stream.err != nil:
		return check.Fail, why(e.stream.err)
	case e.stream.task.State == "":
		return check.Fail, "it told of no task"
	case !e.stream.task.State.Over() && !e.stream.task.State.Asks():
		return check.Fail, fmt.Sprintf("it ended when the task was %s", e.stream.task.State)
	}
	return check.Pass, ""
}

func judgeResubscribed(e *evidence) (check.Verdict, string) {
	if !e.card.Streams {
		return check.NotApplicable, "the card has no streaming"
	}
	verdict, says := judgeRefused(overOne, func(e *evidence) error { return e.resub }, "UNSUPPORTED_OPERATION")(e)
	if verdict == check.Fail && a2apeer.IsReason(e.resub, "TASK_NOT_FOUND") {
		return check.Advice,
			"it is refused with TASK_NOT_FOUND, though the task is there; UNSUPPORTED_OPERATION says what is wrong"
	}
	return verdict, says
}

func judgeCancel(e *evidence) (check.Verdict, string) {
	switch {
	case !e.stopped.made:
		return check.NotApplicable, "there is no task that could be cancelled before it was over"
	case e.stopped.task.State == a2apeer.Completed &&
		(e.stopped.err == nil || a2apeer.IsReason(e.stopped.err, "TASK_NOT_CANCELABLE")):
		return check.NotApplicable, "it was over before it could be cancelled"
	case e.stopped.task.State == a2apeer.Completed: // an agent whose task ends at that moment may say so in its own way
		return check.Advice, "it was over by itself, but not refused with TASK_NOT_CANCELABLE: " + why(e.stopped.err)
	case e.stopped.err != nil:
		return check.Fail, why(e.stopped.err)
	case e.stopped.task.State != a2apeer.Canceled:
		return check.Fail, fmt.Sprintf("it is %s afterwards", e.stopped.task.State)
	}
	return check.Pass, ""
}
