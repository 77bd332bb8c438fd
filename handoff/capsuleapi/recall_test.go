package capsuleapi

import (
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
)

const recallBody = `{"target":"callee","args":{"n":1}}`

func TestACallIsRecalledUncountedWithItsFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	earlier := w.runs.Outcome(idOf(50), handoff.Call{})
	earlier.Files = []handoff.Output{w.made("r", "a.txt", "as before")}
	w.runs.Results[idOf(50)] = earlier
	w.runs.Recalled = map[string]string{"k": idOf(50)}
	for range 2 { // also when it is asked for again
		got := answered[finished](t, w.do("POST", "/handoff?recall=true", recallBody, "Idempotency-Key: k"), 200)
		if got.ID != idOf(50) || !got.Success || len(got.Files) != 1 || read(t, w.path("io/handoff/incoming/a.txt")) != "as before" {
			t.Errorf("%+v", got)
		}
	}
	if w.runs.Started() != 0 || w.spent() != 0 {
		t.Errorf("%d calls were started, %d counted", w.runs.Started(), w.spent())
	}
	// Without the wish, and with a key that no earlier attempt knows, it is a call like any other.
	answered[finished](t, w.do("POST", "/handoff", recallBody, "Idempotency-Key: k"), 200)
	answered[finished](t, w.do("POST", "/handoff?recall=false", recallBody, "Idempotency-Key: j"), 200)
	answered[finished](t, w.do("POST", "/handoff?wait=true&recall=true", recallBody, "Idempotency-Key: new"), 200)
	if w.runs.Started() != 3 || w.spent() != 3 {
		t.Errorf("%d calls were started, %d counted", w.runs.Started(), w.spent())
	}
}

func TestTheKeyOfThisAttemptComesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answered[finished](t, w.do("POST", "/handoff?recall=true", recallBody, "Idempotency-Key: k"), 200)
	w.runs.Recalled = map[string]string{"k": idOf(50)}
	if got := answered[finished](t, w.do("POST", "/handoff?recall=true", recallBody, "Idempotency-Key: k"), 200); got.ID == idOf(50) {
		t.Error("a call of this attempt was passed over for one of an earlier attempt")
	}
	if w.spent() != 1 {
		t.Errorf("%d calls were counted", w.spent())
	}
}

func TestRecallIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for query, headers := range map[string][]string{
		"recall=true": nil, "recall=yes": {"Idempotency-Key: k"}, "recall=true&recall=true": {"Idempotency-Key: k"}, "recal=true": nil,
	} {
		answered[problem](t, w.do("POST", "/handoff?"+query, recallBody, headers...), 400)
	}
	answered[problem](t, w.do("GET", "/handoff/"+idOf(1)+"?recall=true", ""), 400)
	w.runs.Unlike = fault.New(fault.Input, "the flow took another way")
	answered[problem](t, w.do("POST", "/handoff?recall=true", recallBody, "Idempotency-Key: k"), 422)
	if w.runs.Started() != 0 || w.spent() != 0 {
		t.Errorf("%d calls were started, %d counted", w.runs.Started(), w.spent())
	}
}
