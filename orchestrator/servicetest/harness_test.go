package servicetest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

func TestServicesComeAndGoOverOneHomeAndEngine(t *testing.T) {
	t.Parallel()
	h := servicetest.New(t)
	id := h.Submit("worker", servicetest.Orders{Mark: "once", Until: "gate", Lines: 2, File: "a.txt"})
	h.Until(id, servicetest.Running)
	h.Restart()
	h.Stop()
	h.OpenGate("gate") // while nobody is there
	h.Start()
	if record := h.Await(id); record.Outcome != api.Success || h.Starts("once") != 1 {
		t.Errorf("%d starts, record %s", h.Starts("once"), servicetest.JSON(record))
	}
}

func TestAProgramIsAFunctionThatAsks(t *testing.T) {
	t.Parallel()
	ask := func(ctx context.Context, s servicetest.Sandbox) int {
		answer := s.Ask(ctx, "POST", "/handoff", "k", servicetest.JSON(map[string]any{
			"target": "worker", "args": servicetest.Orders{Mark: "called"},
		}))
		s.Output(map[string]string{"answer": answer})
		return 0
	}
	h := servicetest.New(t,
		servicetest.Capsule("asker", "", servicetest.AnyContract, ask),
		servicetest.Tools("asker", "- {name: work, capsule: worker}\n"),
		servicetest.Flow("flow", "", "start: a\nnodes:\n  a: {run: asker, set: {a: \"${{ out.answer }}\"}, action: done}\n"+
			"output: {all: \"${{ state.a }}\"}\n"))
	record := h.Await(h.Submit("flow", map[string]any{}))
	if record.Outcome != api.Success || !strings.Contains(string(record.Output), "200 ") || h.Starts("called") != 1 {
		t.Errorf("record %s", servicetest.JSON(record))
	}
}

func TestTheEngineFailsAsTheTestSays(t *testing.T) {
	t.Parallel()
	h := servicetest.New(t)
	lost := false
	h.OnReturn(func(method string) error {
		if method == "Start" && !lost {
			lost = true
			return fault.Wrap(fault.Unavailable, errors.New("cut"), "the engine is away")
		}
		return nil
	})
	record := h.Await(h.Submit("worker", servicetest.Orders{Mark: "lost"}))
	if record.Outcome != api.Success || !lost {
		t.Errorf("record %s", servicetest.JSON(record))
	}
}
