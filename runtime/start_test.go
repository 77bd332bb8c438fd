package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

func TestACallThatFailsBeforeTheStartLeavesNothing(t *testing.T) {
	for _, method := range []string{"Create", "Attach", "NextExit", "Start"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				b.breakWith(errAway, method)
				s, err := runtime.Start(t.Context(), b, b.spec, b.layout, b.log)
				if s != nil || !errors.Is(err, errAway) || errors.Is(err, runtime.ErrLeftBehind) {
					t.Errorf("%v, %v", s, err)
				}
				b.nothingLeft(t)
			})
		})
		t.Run(method+", and then the removal", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				b.breakWith(errAway, method, "Remove", "ContainersByLabel")
				_, err := runtime.Start(t.Context(), b, b.spec, b.layout, b.log)
				if !fault.Is(err, fault.Unavailable) || !errors.Is(err, runtime.ErrLeftBehind) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestNothingIsAskedForARunThatIsOver(t *testing.T) {
	b := newBench(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runtime.Start(ctx, b, b.spec, b.layout, b.log); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if calls := b.Calls(); len(calls) > 0 {
		t.Errorf("calls %v", calls)
	}
}

// lossy is an engine that makes a container and then can't say so.
type lossy struct {
	*harness
	answer func(ctx context.Context) error
}

func (l lossy) Create(ctx context.Context, spec runtime.ContainerSpec) (string, error) {
	id, err := l.harness.Create(ctx, spec)
	return id, errors.Join(err, l.answer(ctx))
}

func TestAContainerIsRemovedThoughNobodyKnowsItsID(t *testing.T) {
	cases := []struct {
		name   string
		answer error
		left   int
	}{
		{"when the connection broke over its making", errAway, 1},
		{"when the engine took too long over its making", context.DeadlineExceeded, 1},
		{"but not where the engine said no", fault.New(fault.Internal, "the name is taken"), 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			other := b.spec
			other.Owner = "somebody else"
			if _, err := b.Create(t.Context(), runtime.ContainerSpec{Image: "sha256:1", Labels: map[string]string{runtime.LabelRun: "r1", runtime.LabelOwner: other.Owner}}); err != nil {
				t.Fatal(err)
			}
			_, err := runtime.Start(t.Context(), lossy{b, func(context.Context) error { return c.answer }}, b.spec, b.layout, b.log)
			if !errors.Is(err, c.answer) {
				t.Error(err)
			}
			if refs, err := b.ContainersByLabel(t.Context(), nil); err != nil || len(refs) != c.left {
				t.Errorf("left: %v, %v", refs, err)
			}
		})
	}
}

func TestARunWithoutANameRemovesNobodysContainer(t *testing.T) {
	b := newBench(t, nil)
	id, err := b.Create(t.Context(), runtime.ContainerSpec{Image: "sha256:1", Labels: map[string]string{runtime.LabelRun: "r2", runtime.LabelOwner: "me"}})
	if err != nil {
		t.Fatal(err)
	}
	b.spec.Run, b.spec.Owner = "", ""
	b.breakWith(errAway, "Create")
	if _, err := runtime.Start(t.Context(), b, b.spec, b.layout, b.log); !errors.Is(err, errAway) {
		t.Error(err)
	}
	if _, found := b.Spec(id); !found {
		t.Error("the container of another run is gone")
	}
}

func TestCancellingDoesNotBreakOffTheMakingOfAContainer(t *testing.T) {
	b := newBench(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	answer := func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	}
	if _, err := runtime.Start(ctx, lossy{b, answer}, b.spec, b.layout, b.log); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if calls := strings.Join(b.Calls(), " "); !strings.HasPrefix(calls, "Create ") || !strings.HasSuffix(calls, " Remove") || strings.Contains(calls, "Start") {
		t.Errorf("calls %s", calls)
	}
	b.nothingLeft(t)
}
