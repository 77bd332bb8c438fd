package check

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-on-demand/aod/internal/checklist"
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

// rule makes one rule of a report.
var rule = checklist.NewRule[*evidence]

// rules lists every rule, in the order of a report.
func rules() []checklist.Rule[*evidence] {
	return []checklist.Rule[*evidence]{
		rule(
			"card", "the card can be fetched and read, and has an interface at the origin of its address", sectionCard,
			judgeCard,
		),
		rule("card-members", "the card has the members that each card has", sectionCard, judgeMembers),
		rule("card-skills", "each skill of the card has id, name, description and tags", sectionCard, judgeSkills),
		rule(
			"card-version", "an interface of the card is answered in the version that it names", sectionCard,
			judgeVersion,
		),
		rule(
			"error-not-json", "what isn't JSON is refused with -32700", sectionErrors,
			judgeCode(-32700, func(e *evidence) envelope { return e.notJSON }),
		),
		rule(
			"error-unknown-method", "a method that there isn't is refused with -32601", sectionErrors,
			judgeCode(-32601, func(e *evidence) envelope { return e.noMethod }),
		),
		rule(
			"error-unknown-task", "a task that there isn't is TASK_NOT_FOUND", sectionErrors,
			judgeRefused(sentOne, func(e *evidence) error { return e.unknown }, "TASK_NOT_FOUND"),
		),
		rule(
			"error-cancel-unknown-task", "so is one that is to be cancelled", sectionErrors,
			judgeRefused(sentOne, func(e *evidence) error { return e.cancelUnknown }, "TASK_NOT_FOUND"),
		),
		rule("send", "a message is answered with a task or a message", sectionSend, judgeSend),
		rule("send-completed", "the task comes to its end, completed", sectionSend, judgeCompleted),
		rule("send-result", "what a completed task has made is in its artifacts", sectionSend, judgeResult),
		rule("get-same", "a task that is over is told of alike when it is looked at", sectionTasks, judgeSame),
		rule(
			"error-cancel-ended", "a task that is over can't be cancelled: TASK_NOT_CANCELABLE", sectionTasks,
			judgeRefused(overOne, func(e *evidence) error { return e.ended }, "TASK_NOT_CANCELABLE"),
		),
		rule("error-message-ended", "a task that is over takes no message: UNSUPPORTED_OPERATION", sectionTasks,
			judgeLate),
		rule("stream", "a stream tells of the task until its end", sectionStream, judgeStream),
		rule("error-subscribe-ended", "a task that is over can't be subscribed to", sectionStream, judgeResubscribed),
		rule("cancel", "a task that goes on can be cancelled", sectionTasks, judgeCancel),
	}
}

func judgeCard(e *evidence) (checklist.Verdict, string) {
	if e.cardErr != nil {
		return checklist.Fail, why(e.cardErr)
	}
	return checklist.Pass, ""
}

const noCard = "there is no card"

// membersOf are the members of each card in both versions.
var membersOf = []string{
	"name", "description", "version", "capabilities", "defaultInputModes", "defaultOutputModes",
	"skills",
}

func judgeMembers(e *evidence) (checklist.Verdict, string) {
	if e.cardErr != nil {
		return checklist.NotApplicable, noCard
	}
	return judgeHas(e.card.Raw, "", membersOf)
}

// judgeHas wants members of an object that aren't null.
func judgeHas(raw json.RawMessage, where string, members []string) (checklist.Verdict, string) {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return checklist.Fail, where + "it isn't an object"
	}
	for _, name := range members {
		if value := object[name]; len(value) == 0 || string(value) == "null" {
			return checklist.Fail, where + name + " is missing or null"
		}
	}
	return checklist.Pass, ""
}

func judgeSkills(e *evidence) (checklist.Verdict, string) {
	var card struct {
		Skills []json.RawMessage `json:"skills"`
	}
	switch {
	case e.cardErr != nil:
		return checklist.NotApplicable, noCard
	case json.Unmarshal(e.card.Raw, &card) != nil:
		return checklist.Fail, "skills is no list"
	case len(card.Skills) == 0:
		return checklist.Advice, "the card has no skill: who looks for an agent finds nothing that it can do"
	}
	for i, skill := range card.Skills {
		if verdict, says := judgeHas(skill, fmt.Sprintf("in skill %d of %d: ", i+1, len(card.Skills)),
			[]string{"id", "name", "description", "tags"}); verdict != checklist.Pass {
			return verdict, says
		}
	}
	return checklist.Pass, ""
}

func judgeVersion(e *evidence) (checklist.Verdict, string) {
	switch {
	case !e.sent.made || e.sent.err != nil:
		return checklist.NotApplicable, "there is no answer to a message"
	case e.at != e.card.Interfaces[0]:
		return checklist.Fail, fmt.Sprintf("the first that was asked isn't spoken; %s in version %s is", e.at.Binding,
			e.at.Version)
	}
	return checklist.Pass, ""
}

// judgeCode wants an error of JSON-RPC.
func judgeCode(code int, of func(*evidence) envelope) func(*evidence) (checklist.Verdict, string) {
	return func(e *evidence) (checklist.Verdict, string) {
		switch got := of(e); {
		case !got.made:
			return checklist.NotApplicable, "the agent isn't asked by JSON-RPC"
		case got.err != nil:
			return checklist.Fail, why(got.err)
		case got.code == 0:
			return checklist.Fail, fmt.Sprintf("it is answered with the status %d and no error of JSON-RPC", got.status)
		case got.code != code:
			return checklist.Fail, fmt.Sprintf("it is refused with %d", got.code)
		}
		return checklist.Pass, ""
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
) func(*evidence) (checklist.Verdict, string) {
	return func(e *evidence) (checklist.Verdict, string) {
		if lacks := needs(e); lacks != "" {
			return checklist.NotApplicable, lacks
		}
		err := of(e)
		switch {
		case err == nil:
			return checklist.Fail, "it is not refused"
		case slices.ContainsFunc(reasons, func(reason string) bool { return a2apeer.IsReason(err, reason) }):
			return checklist.Pass, ""
		}
		return checklist.Fail, why(err)
	}
}

func judgeSend(e *evidence) (checklist.Verdict, string) {
	switch {
	case !e.sent.made:
		return checklist.NotApplicable, noCard
	case e.sent.err != nil:
		return checklist.Fail, why(e.sent.err)
	}
	return checklist.Pass, ""
}

func judgeCompleted(e *evidence) (checklist.Verdict, string) {
	if lacks := sentOne(e); lacks != "" {
		return checklist.NotApplicable, lacks
	}
	switch state := e.sent.task.State; {
	case state == a2apeer.Completed:
		return checklist.Pass, ""
	case state.Asks():
		return checklist.Advice, fmt.Sprintf("it is %s: give it inputs with which it can go on by itself", state)
	case state.Over():
		return checklist.Fail, fmt.Sprintf("it is %s: give it inputs with which it succeeds", state)
	}
	return checklist.Fail, "it didn't end in time"
}

func judgeResult(e *evidence) (checklist.Verdict, string) {
	switch {
	case sentOne(e) != "" || e.sent.task.State != a2apeer.Completed:
		return checklist.NotApplicable, "there is no completed task"
	case len(e.sent.task.Artifacts) == 0:
		return checklist.Advice, "it has none: who looks there finds nothing"
	}
	return checklist.Pass, ""
}

func judgeSame(e *evidence) (checklist.Verdict, string) {
	if lacks := overOne(e); lacks != "" {
		return checklist.NotApplicable, lacks
	}
	switch {
	case e.looked.err != nil:
		return checklist.Fail, why(e.looked.err)
	case e.looked.task.State != e.sent.task.State:
		return checklist.Fail, fmt.Sprintf("it was %s, and is %s", e.sent.task.State, e.looked.task.State)
	case len(e.looked.task.Artifacts) != len(e.sent.task.Artifacts):
		return checklist.Fail, fmt.Sprintf("it had %d artifacts, and has %d", len(e.sent.task.Artifacts),
			len(e.looked.task.Artifacts))
	}
	return checklist.Pass, ""
}

// judgeLate wants a message to a task that is over refused. Which error that is differs between SDKs.
func judgeLate(e *evidence) (checklist.Verdict, string) {
	verdict, says := judgeRefused(overOne, func(e *evidence) error { return e.after }, "UNSUPPORTED_OPERATION")(e)
	if verdict == checklist.Fail && a2apeer.IsReason(e.after, "INVALID_PARAMS") {
		return checklist.Advice, "it is refused with INVALID_PARAMS, as if another message could be taken"
	}
	return verdict, says
}

func judgeStream(e *evidence) (checklist.Verdict, string) {
	switch {
	case !e.stream.made:
		return checklist.NotApplicable, "the card has no streaming"
	case e.stream.err != nil:
		return checklist.Fail, why(e.stream.err)
	case e.stream.task.State == "":
		return checklist.Fail, "it told of no task"
	case !e.stream.task.State.Over() && !e.stream.task.State.Asks():
		return checklist.Fail, fmt.Sprintf("it ended when the task was %s", e.stream.task.State)
	}
	return checklist.Pass, ""
}

func judgeResubscribed(e *evidence) (checklist.Verdict, string) {
	if !e.card.Streams {
		return checklist.NotApplicable, "the card has no streaming"
	}
	verdict, says := judgeRefused(overOne, func(e *evidence) error { return e.resub }, "UNSUPPORTED_OPERATION")(e)
	if verdict == checklist.Fail && a2apeer.IsReason(e.resub, "TASK_NOT_FOUND") {
		return checklist.Advice,
			"it is refused with TASK_NOT_FOUND, though the task is there; UNSUPPORTED_OPERATION says what is wrong"
	}
	return verdict, says
}

func judgeCancel(e *evidence) (checklist.Verdict, string) {
	switch {
	case !e.stopped.made:
		return checklist.NotApplicable, "there is no task that could be cancelled before it was over"
	case e.stopped.task.State == a2apeer.Completed &&
		(e.stopped.err == nil || a2apeer.IsReason(e.stopped.err, "TASK_NOT_CANCELABLE")):
		return checklist.NotApplicable, "it was over before it could be cancelled"
	case e.stopped.task.State == a2apeer.Completed: // an agent whose task ends at that moment may say so in its own way
		return checklist.Advice,
			"it was over by itself, but not refused with TASK_NOT_CANCELABLE: " + why(e.stopped.err)
	case e.stopped.err != nil:
		return checklist.Fail, why(e.stopped.err)
	case e.stopped.task.State != a2apeer.Canceled:
		return checklist.Fail, fmt.Sprintf("it is %s afterwards", e.stopped.task.State)
	}
	return checklist.Pass, ""
}
