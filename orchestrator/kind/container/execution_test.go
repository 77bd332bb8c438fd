package container

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

func TestAnAttemptTakesItsResult(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.execution()
	result, err := x.Attempt(t.Context())
	if err != nil || result.Outcome != api.Success || string(result.Output) != `{"n":1}` || x.attempt.origin != fresh {
		t.Fatalf("%+v, %v", result, err)
	}
	if x.run.State() != api.Running || x.run.Record.Container.ID == "" || x.run.Record.StartedAt == nil || x.run.Record.Image.ID == "" {
		t.Errorf("record %+v", x.run.Record)
	}
	x.Settle(t.Context())
	if err := x.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.calls(); !strings.Contains(got, "Create Attach NextExit Start") || strings.Contains(got, "ContainersByLabel") || strings.Count(got, "Remove") != 1 {
		t.Errorf("the engine was asked for %s", got)
	}
	b.nothingLeft()
}

func TestAnEngineThatHasNothingIsAskedToRemoveNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, method string
		err          error
	}{
		{"when the image can't be built", "Build", fault.New(fault.Build, "no")},
		{"when the image can't be looked up", "Image", errAway},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.breaks(c.method, c.err)
			x := b.execution()
			if _, err := x.Attempt(t.Context()); fault.KindOf(err) != fault.KindOf(c.err) {
				t.Errorf("error %v", err)
			}
			x.Settle(t.Context())
			if err := x.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			if got := b.calls(); got != "" {
				t.Errorf("the engine was asked for %s", got)
			}
		})
	}
}

func TestWhatIsUncertainIsLookedForByItsLabels(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Create", "Attach", "Start"} {
		t.Run(method, func(t *testing.T) {
			b := newBench(t)
			b.breaks(method, errAway)
			x := b.execution()
			if _, err := x.Attempt(t.Context()); !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v", err)
			}
			b.breaks(method, nil)
			late := b.late("1")
			if err := x.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			if _, there := b.engine.Spec(late); there {
				t.Error("what came late is left")
			}
			b.nothingLeft()
		})
	}
}

func TestARemovalThatFailsIsDoneAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.execution()
	b.breaks("Remove", errAway) // before: it may be removed ahead
	if _, err := x.Attempt(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.Settle(t.Context())
	for range 2 {
		if err := x.Remove(t.Context()); err == nil {
			t.Error("it says that nothing is left")
		}
	}
	b.breaks("Remove", nil)
	if err := x.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	b.nothingLeft()
}

func TestTheNextAttemptRemovesWhatTheLastOneLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.breaks("Create", errAway)
	x := b.execution()
	if _, err := x.Attempt(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("error %v", err)
	}
	b.breaks("Create", nil)
	late := b.late("1")
	b.again(x)
	result, err := x.Attempt(t.Context())
	if err != nil || result.Outcome != api.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	if _, there := b.engine.Spec(late); there {
		t.Error("the container of the first attempt is left beside that of the second")
	}
	x.Settle(t.Context())
	if err := x.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	b.nothingLeft()
}

func TestAnEndSaysHowMuchHasEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		end  runtime.End
		want ending
	}{
		{runtime.End{}, exited}, {runtime.End{ExitCode: 3}, exited}, {runtime.End{Early: true}, reported}, {runtime.End{Early: true, Reusable: true}, posted},
	} {
		if got := endingOf(c.end); got != c.want {
			t.Errorf("%+v: %v, want %v", c.end, got, c.want)
		}
	}
}
