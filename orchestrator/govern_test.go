package orchestrator

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/units"
)

// short is less than any run here that isn't stopped.
const short = 300 * time.Millisecond

func TestNoRunIsLongerThanTheOperatorSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*settings)
		asked  time.Duration
		rule   string
	}{
		"what the unit asks for is held to max_timeout":   {func(o *settings) { o.MaxTimeout = short }, 0, "max_timeout"},
		"what a request asks for is held to the unit's":   {timeoutGiven(short), time.Hour, "unit.worker.timeout"},
		"what nobody asks for is held to the unit's":      {timeoutGiven(short), 0, "unit.worker.timeout"},
		"what the operator gives is held to his policy":   {timeoutBounded(time.Hour, short), 0, "policy.timeout"},
		"what a request asks for is held to the policy":   {timeoutBounded(0, short), time.Hour, "policy.timeout"},
		"what a request asks for may be less than others": {timeoutGiven(time.Hour), short, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, c.change)
			record, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker", Input: []byte(`{"until":"never"}`), Timeout: c.asked})
			if err != nil {
				t.Fatal(err)
			}
			record = w.await(record.ID)
			if record.Outcome != api.TimedOut || !strings.Contains(record.Error.Message, "300ms") || !strings.Contains(record.Error.Hint, c.rule) {
				t.Errorf("%s: %+v", record.Outcome, record.Error)
			}
			if told := slices.ContainsFunc(record.Warnings, func(s string) bool { return strings.Contains(s, "shortened to 300ms") }); told != (c.asked > short) {
				t.Errorf("warnings: %q", record.Warnings)
			}
		})
	}
}

// timeoutGiven gives "worker" a timeout.
func timeoutGiven(timeout time.Duration) func(*settings) {
	return func(o *settings) {
		o.Units["worker"] = units.Settings{Given: unit.Given{Limits: capsule.Limits{Timeout: timeout}}}
	}
}

// timeoutBounded gives "worker" a timeout, and bounds all units.
func timeoutBounded(timeout, most time.Duration) func(*settings) {
	return func(o *settings) {
		timeoutGiven(timeout)(o)
		o.Bounds = func(string, bool) unit.Bounds {
			return unit.Bounds{Limits: capsule.Limits{Timeout: most}, Rules: map[string]string{"timeout": "policy.timeout"}}
		}
	}
}

// sealed lets no unit have a network.
func sealed(o *settings) {
	o.Bounds = func(string, bool) unit.Bounds {
		return unit.Bounds{Networks: []string{"none"}, Rules: map[string]string{"networks": "policy.networks"}}
	}
}

func TestARefusedUnitCantBeCalled(t *testing.T) {
	t.Parallel()
	w := newCallFixture(t, sealed, func(o *settings) {
		o.Units["worker"] = units.Settings{Given: unit.Given{Network: "bridge"}}
		o.Units["caller"] = units.Settings{Given: unit.Given{MayCall: []string{"worker"}}}
	})
	id := w.submitScript(script{Mark: "a", Calls: []script{{Target: "worker"}}})
	w.await(id)
	answers := strings.Join(w.answers["a"], "\n")
	if !strings.Contains(answers, "403") || !strings.Contains(answers, "policy.networks doesn't allow it the network bridge") {
		t.Errorf("it got %s", answers)
	}
}

// A run that waits when the operator tightens the policy isn't run by the next process.
func TestARunThatIsNoLongerAllowedIsNotStarted(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(o *settings) {
		write(t, filepath.Join(o.Sources[0], "worker", "agent.yaml"), "name: worker\nnetwork: bridge\n")
		o.Concurrency = 1
	})
	running := w.submit(orders{Mark: "first", Until: "let go"})
	w.until(running, func(r api.Record) bool { return r.State == api.Running })
	waiting := w.submit(orders{Mark: "second"})
	w.stop()
	sealed(&w.opts)
	w.start()
	record := w.await(waiting)
	if record.Outcome == api.Success || record.Error == nil || !strings.Contains(record.Error.Message, "policy.networks") || w.starts("second") != 0 {
		t.Errorf("the one that waited: %s %+v", record.Outcome, record.Error)
	}
	w.open("let go")
	if record := w.await(running); record.Outcome != api.Success {
		t.Errorf("the one that ran: %s %+v", record.Outcome, record.Error)
	}
	if _, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker"}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a new one: %v", err)
	}
}
