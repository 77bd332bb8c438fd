package check

import (
	"bytes"
	"fmt"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
)

func judgeWithoutID(e *evidence) (Verdict, string) { return judgeRefused(&e.sync, &e.withoutID) }

func judgeWithoutTask(e *evidence) (Verdict, string) { return judgeRefused(&e.sync, &e.withoutTask) }

// judgeUnsupported takes a failure with 2xx as a refusal, too: the specification says that an
// agent may use a 4xx.
func judgeUnsupported(e *evidence) (Verdict, string) {
	if e.unsupported.failed() {
		return Pass, ""
	}
	return judgeRefused(&e.sync, &e.unsupported)
}

// judgeRefused requires a 4xx if the endpoint is known to work.
func judgeRefused(known, refused *answer) (Verdict, string) {
	switch {
	case refused.skipped != "":
		return NotApplicable, refused.skipped
	case known.skipped == "" && !known.ok():
		return NotApplicable, "the endpoint doesn't answer a known task with 2xx"
	case refused.problem != "":
		return Fail, refused.problem
	case !refused.refused():
		return Fail, fmt.Sprintf("it is answered with %d", refused.status)
	}
	return Pass, ""
}

func judgeRefusalBody(e *evidence) (Verdict, string) {
	if verdict, _ := judgeUnsupported(e); verdict != Pass {
		return NotApplicable, "there is no refusal"
	}
	if _, why := refusalOf(&e.unsupported); why != "" {
		return Fail, why
	}
	return Pass, ""
}

// refusalOf reads a refusal, and says what it lacks of the contract's shape. With 2xx the status
// may say alone that it is one.
func refusalOf(a *answer) (document.Fields, string) {
	f, why := document.ReadRefusal(a.raw)
	if why != "" {
		return nil, why
	}
	if a.ok() && !f.Has("ok") {
		f["ok"] = []byte("false") // judgeUnsupported has read it in the status
	}
	return f, document.JudgeRefusal(f, a.ids())
}

func judgeRefusalSchema(e *evidence) (Verdict, string) {
	if verdict, _ := judgeRefusalBody(e); verdict != Pass {
		return NotApplicable, "there is no refusal of the contract's shape"
	}
	f, _ := refusalOf(&e.unsupported)
	return judgeHeld(f, func(string) bool { return true })
}

func judgeNoPayload(e *evidence) (Verdict, string) {
	var seen int
	for _, a := range []*answer{&e.unsupported, &e.withoutID, &e.withoutTask, &e.streamNoTask.answer, &e.streamNoID} {
		if a.status == 0 || a.ok() && !a.failed() {
			continue
		}
		seen++
		if bytes.Contains(a.raw, []byte(e.canary)) {
			return Fail, "the body of a refusal holds a value of the inputs"
		}
	}
	if seen == 0 {
		return NotApplicable, "there is no refusal"
	}
	return Pass, ""
}
