package capsuleapi

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
)

func TestAValueIsJudgedByTheSchemaThatIsSentWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const whole = `{"input":{"type":"object"},"output":{"$ref":"#/definitions/o"},"definitions":{"o":{"properties":{"v":{"type":"int"}}}}}`
	for _, c := range []struct{ name, body, want string }{
		{"what keeps it", `{"schema":{"properties":{"v":{"pattern":"^\\p{L}+$"}}},"value":{"v":"Zoë"}}`, `{"valid":true,"findings":[]}`},
		{"true is not 1", `{"schema":{"properties":{"v":{"enum":[1,2]}}},"value":{"v":true}}`, `{"valid":false,"findings":[{"pointer":"/v","message":"is not one of the allowed values: 1, 2"}]}`},
		{"a side of a contract", `{"schema":` + whole + `,"side":"output","value":{"v":"x"}}`, `{"valid":false,"findings":[{"pointer":"/v","message":"expected integer, got string"}]}`},
		{"its other side", `{"schema":` + whole + `,"side":"input","value":{"v":"x"}}`, `{"valid":true,"findings":[]}`},
	} {
		if rec := w.do("POST", "/validate", c.body); rec.Code != http.StatusOK || rec.Body.String() != c.want+"\n" {
			t.Errorf("%s: %d %s", c.name, rec.Code, rec.Body)
		}
	}
}

func TestWhatCannotBeJudgedIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits.ArgsBytes = 1000
	w.renew()
	for _, c := range []struct {
		name, body, want string
		status           int
	}{
		{"a schema that is none", `{"schema":{"properties":{"v":{"type":"colour"}}},"value":{}}`, `"pointer":"/properties/v/type"`, 422},
		{"one that would cost too much", `{"schema":{"pattern":"(a{1000}){1000}"},"value":{}}`, `"pointer":"/pattern"`, 422},
		{"no schema", `{"value":{}}`, "no schema", 400},
		{"no value", `{"schema":{}}`, "no value", 400},
		{"a value that isn't an object", `{"schema":{},"value":[1]}`, "expected an object", 400},
		{"a side that is none", `{"schema":{},"side":"left","value":{}}`, "there is no side", 400},
		{"a field that is none", `{"schema":{},"value":{},"x":1}`, "not known", 400},
		{"a value that is too deep", `{"schema":{},"value":{"v":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`, "not valid JSON", 400},
		{"a value that is too large", `{"schema":{},"value":{"v":"` + strings.Repeat("x", 1000) + `"}}`, "the limit is 1000", 413},
	} {
		if rec := w.do("POST", "/validate", c.body); rec.Code != c.status || !strings.Contains(rec.Body.String(), c.want) {
			t.Errorf("%s: %d %s", c.name, rec.Code, rec.Body)
		}
	}
}

func TestARunHasOneValueJudgedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := judging{pace: newPace(), turn: semaphore.NewWeighted(1)}
		if err := j.turn.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		_, err := j.judge(t.Context(), []byte(`{}`), "", contract.Payload{})
		if fault.KindOf(err) != fault.Unavailable {
			t.Errorf("beside the other one: %v", err)
		}
		j.turn.Release(1)
		if _, err := j.judge(t.Context(), []byte(`{}`), "", contract.Payload{}); err != nil {
			t.Error(err)
		}
	})
}

func TestTheTimeOfAJudgementCountsAsRequests(t *testing.T) {
	t.Parallel()
	p := newPace()
	p.took(time.Hour)
	began := time.Now()
	if turn := p.limiter.ReserveN(began, paceBurst); turn.DelayFrom(began) == 0 {
		t.Error("the whole burst is left")
	}
}
