package check

import (
	"bytes"
	"fmt"

	"github.com/agent-on-demand/aod/agentapi/internal/document"
)

func judgeWithoutID(e *evidence) (Verdict, string) { return judgeRefused(&e.sync, &e.withoutID) }

func judgeWithoutTask(e *evidence) (Verdict, string) { return judgeRefused(&e.sync, &e.withoutTask) }

func judgeUnsupported(e *evidence) (Verdict, string) { return judgeRefused(&e.sync, &e.unsupported) }

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
		return NotApplicable, "there is no refusal with 4xx"
	}
	f, why := document.ReadRefusal(e.unsupported.raw)
	if why == "" {
		why = document.JudgeRefusal(f, e.unsupported.ids())
	}
	if why != "" {
		return Fail, why
	}
	return Pass, ""
}

func judgeNoPayload(e *evidence) (Verdict, string) {
	var seen int
	for _, a := range []*answer{&e.unsupported, &e.withoutID, &e.withoutTask, &e.streamNoTask.answer, &e.streamNoID} {
		if a.status == 0 || a.ok() {
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
