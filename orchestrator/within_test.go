package orchestrator

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

func TestWithinOnlyShortensTheTimeout(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	u, err := w.service.Units.Get(trusted.Context(t), "worker") // it has 20 s
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ asked, within, want time.Duration }{
		{0, 0, 2 * time.Minute},
		{0, time.Hour, 2 * time.Minute},
		{0, 5 * time.Second, 5 * time.Second},
		{3 * time.Second, 5 * time.Second, 3 * time.Second},
		{time.Hour, 5 * time.Second, 5 * time.Second},
	} {
		asked, err := w.service.prepare(trusted.Context(t), u, spool.Submission{Unit: "worker", Timeout: c.asked, Within: c.within})
		if got := asked.Limits(w.service.opts.Limits).Timeout; err != nil || got != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

func TestAKeyIsForOneWithin(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	sub := spool.Submission{Unit: "worker", Input: json.RawMessage(`{}`), Key: "k", Within: time.Minute}
	for _, joins := range []bool{false, true} {
		if _, joined, err := w.service.Submit(trusted.Context(t), sub); err != nil || joined != joins {
			t.Errorf("joined %v, %v", joined, err)
		}
	}
	sub.Within = time.Second
	if _, _, err := w.service.Submit(trusted.Context(t), sub); !fault.Is(err, fault.Input) {
		t.Errorf("with another: %v", err)
	}
}
