package capsuleapi

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
)

func TestACallAnswersWithItsResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.caller.Deadline = time.Now().Add(time.Hour)
	w.renew()
	rec := w.do("POST", "/handoff", `{"target":"callee","args":{"n":1},"timeout":"30s"}`)
	const want = `{"handoff_id":"00000000-0000-7000-8000-000000000100","state":"completed","success":true,"output":{"ok":true},"files":[],"error":null}` + "\n"
	if rec.Code != 200 || rec.Body.String() != want || rec.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	call := w.runs.Calls[0]
	if call.Target.Name != "callee" || call.Timeout != 30*time.Second || !call.Deadline.Equal(w.caller.Deadline) || string(call.Args.JSON()) != `{"n":1}` || call.Key != "" {
		t.Errorf("%+v", call)
	}
}

func TestACalleeThatFailsIsAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Outcome = func(id string, _ handoff.Call) handoff.Result {
		return handoff.Result{
			ID: id, Ended: true, State: "failed", Output: json.RawMessage(`{"half":1}`), Files: []handoff.Output{w.made(id, "partial.txt", "x")},
			Error: &handoff.Failure{Category: "AgentError", Kind: "capsule_error", Type: "ValueError", Message: "no", Hint: "yes", Findings: []fault.Finding{{Message: "m"}}},
		}
	}
	answer := w.call(200, `{}`)
	want := &handoff.Failure{Category: "AgentError", Kind: "capsule_error", Type: "ValueError", Message: "no", Hint: "yes", Findings: []fault.Finding{{Message: "m"}}}
	if diff := cmp.Diff(want, answer.Error); diff != "" {
		t.Error(diff)
	}
	if answer.Success || answer.State != "failed" || string(answer.Output) != "null" || len(answer.Files) != 1 {
		t.Errorf("%+v", answer)
	}
}

func TestWithoutArgumentsTheyAreEmpty(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"target":"callee"}`, `{"target":"callee","args":null}`} {
		w := newWorld(t)
		answered[finished](t, w.do("POST", "/handoff", body), 200)
		if got := string(w.runs.Calls[0].Args.JSON()); got != "{}" {
			t.Errorf("%s: %s", body, got)
		}
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Hold = make(chan struct{})
	rec := w.do("POST", "/handoff?wait=false", `{"target":"callee"}`)
	if got := answered[unfinished](t, rec, 202); got != (unfinished{idOf(100), "running"}) || rec.Header().Get("Location") != "/handoff/"+idOf(100) {
		t.Errorf("%+v %v", got, rec.Header())
	}
	for _, target := range []string{"/handoff/" + idOf(100), "/handoff/" + idOf(100) + "?wait=1ms", "/handoff/" + idOf(100) + "?wait=false"} {
		answered[unfinished](t, w.do("GET", target, ""), 202)
	}
	close(w.runs.Hold)
	for _, target := range []string{"/handoff/" + idOf(100), "/handoff/" + idOf(100) + "?wait=5m", "/handoff/" + idOf(100) + "?wait=true"} {
		if got := answered[finished](t, w.do("GET", target, ""), 200); !got.Success {
			t.Errorf("%+v", got)
		}
	}
	for _, wait := range []string{"x", "-1s", "6m", "30", "1s&wait=1s", "1s&then=x"} {
		answered[problem](t, w.do("GET", "/handoff/"+idOf(100)+"?wait="+wait, ""), 400)
	}
	answered[problem](t, w.do("POST", "/handoff?wait=maybe", `{"target":"callee"}`), 400)
	if w.runs.Started() != 1 {
		t.Error("a call with a bad query was made")
	}
}

func TestAHandoffOfSomebodyElseIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{idOf(999), "x", "..%2f..%2fetc", strings.Repeat("0", 36)} {
		for _, method := range []string{"GET", "DELETE"} {
			answered[problem](t, w.do(method, "/handoff/"+id, ""), 404)
		}
	}
	if len(w.runs.Cancels) != 0 {
		t.Errorf("cancelled %q", w.runs.Cancels)
	}
}

func TestCancelling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Hold = make(chan struct{})
	answered[unfinished](t, w.do("POST", "/handoff?wait=0s", `{"target":"callee"}`), 202)
	answered[unfinished](t, w.do("DELETE", "/handoff/"+idOf(100), ""), 202)
	close(w.runs.Hold)
	if got := answered[unfinished](t, w.do("DELETE", "/handoff/"+idOf(100), ""), 202); got.State != "completed" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{idOf(100)}, w.runs.Cancels); diff != "" {
		t.Error(diff)
	}
}

func TestAKeyThatWasSeenIsNotCountedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.call(200, `{"n":1}`, "Idempotency-Key: k")
	second := w.call(200, `{"n":1}`, "Idempotency-Key: k")
	if first.ID != second.ID || w.spent() != 1 || w.runs.Started() != 1 {
		t.Errorf("%s, %s: %d counted", first.ID, second.ID, w.spent())
	}
	w.call(200, `{"n":1}`, "Idempotency-Key: other")
	if w.spent() != 2 {
		t.Errorf("%d counted", w.spent())
	}
}

func TestAKeyOfAnEarlierProcessJoinsWithASpentBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.call(200, `{}`, "Idempotency-Key: k")
	w.limits.Calls = 1
	w.caller.Tree = handoff.NewTree()
	w.caller.Tree.Restore(handoff.BudgetCalls, w.caller.Run, 1)
	w.renew()
	w.call(429, `{}`, "Idempotency-Key: k")
	w.h.Remember("k")
	if again := w.call(200, `{}`, "Idempotency-Key: k"); again.ID != first.ID || w.spent() != 1 {
		t.Errorf("%+v, %d counted", again, w.spent())
	}
}

func TestACallThatIsRefusedCountsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Refuse = fault.New(fault.Busy, "the queue is full")
	w.call(429, `{}`, "Idempotency-Key: k")
	w.call(429, `{}`)
	if w.spent() != 0 {
		t.Errorf("%d counted", w.spent())
	}
	w.runs.Refuse = nil
	w.call(200, `{}`, "Idempotency-Key: k")
	if w.spent() != 1 {
		t.Errorf("%d counted", w.spent())
	}
}

func TestOneKeyManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits.Calls = 1
	w.renew()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if rec := w.do("POST", "/handoff", `{"target":"callee"}`, "Idempotency-Key: k"); rec.Code != 200 {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
		})
	}
	wg.Wait()
	if w.runs.Started() != 1 || w.spent() != 1 {
		t.Errorf("%d started, %d counted", w.runs.Started(), w.spent())
	}
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, headers := range [][]string{{"Idempotency-Key: "}, {"Idempotency-Key: a b"}, {"Idempotency-Key: é"}, {"Idempotency-Key: " + strings.Repeat("k", 256)}, {"Idempotency-Key: a", "Idempotency-Key: b"}} {
		w.call(400, `{}`, headers...)
	}
	w.call(200, `{}`, "Idempotency-Key: "+strings.Repeat("k", 255))
}

func TestAClientThatGoesAwayLeavesTheCallGoing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.runs.Hold = make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			r := httptest.NewRequestWithContext(ctx, "POST", "/handoff", strings.NewReader(`{"target":"callee"}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", "k")
			w.h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		synctest.Wait()
		leave()
		<-gone
		close(w.runs.Hold)
		if again := w.call(200, `{}`, "Idempotency-Key: k"); again.ID != idOf(100) || w.runs.Started() != 1 || len(w.runs.Cancels) != 0 {
			t.Errorf("%+v: %d started, %q cancelled", again, w.runs.Started(), w.runs.Cancels)
		}
	})
}

func TestTooManyRequestsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.limits.Calls = maxRequests + 1
		w.renew()
		w.runs.Hold = make(chan struct{})
		var wg sync.WaitGroup
		for range maxRequests {
			wg.Go(func() { w.call(200, `{}`) })
		}
		synctest.Wait()
		rec := w.do("GET", "/health", "")
		if answered[problem](t, rec, 503).Code != "unavailable" || rec.Header().Get("Retry-After") == "" {
			t.Errorf("%v %s", rec.Header(), rec.Body)
		}
		close(w.runs.Hold)
		wg.Wait()
		answered[map[string]string](t, w.do("GET", "/health", ""), 200)
	})
}

func TestARunWithoutAPathHasOneOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.caller.Path, w.caller.Tree, w.limits.Calls = nil, nil, 1
	w.renew()
	w.call(200, `{}`)
	w.call(429, `{}`)
}
