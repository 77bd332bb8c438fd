package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func aStep(address string, try int) Step {
	return Step{
		Address: address, Try: try, State: "failed", Call: "c", Cached: true, Action: "error", Delta: []byte(`{"a":1}`), Value: []byte(`[1]`),
		Error: []byte(`{"kind":"x"}`), Until: epoch.Add(time.Hour), Began: epoch, Ended: epoch.Add(time.Minute),
	}
}

// without returns a step as it is listed.
func (s Step) without() Step {
	s.Delta, s.Value = nil, nil
	return s
}

func TestStepsComeBackInTheOrderOfTheirChanges(t *testing.T) {
	s, r, other := open(t), aRun(1), aRun(2)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	must(t, s.Runs.Insert(t.Context(), other, Key{}))
	first, second := aStep("a", 1), aStep("a", 2)
	waiting := Step{Address: "b", Try: 1, State: "open", Began: epoch}
	for _, step := range []Step{first, waiting, second} {
		must(t, s.Steps.Keep(t.Context(), r.ID, step, event("node")))
	}
	must(t, s.Steps.Keep(t.Context(), other.ID, aStep("a", 1)))
	done := Step{Address: "b", Try: 1, State: "done", Action: "default", Began: epoch, Ended: epoch.Add(1)}
	must(t, s.Steps.Keep(t.Context(), r.ID, done))
	first.Seq, second.Seq, done.Seq = 1, 3, 4
	got, err := s.Steps.List(t.Context(), r.ID, 0, 0)
	must(t, err)
	if diff := cmp.Diff([]Step{first, second, done}, got); diff != "" {
		t.Error(diff)
	}
	got, err = s.Steps.Heads(t.Context(), r.ID, 1, 1)
	must(t, err)
	if diff := cmp.Diff([]Step{second.without()}, got); diff != "" {
		t.Error(diff)
	}
	counts, err := s.Steps.Counts(t.Context(), r.ID)
	must(t, err)
	if diff := cmp.Diff(StepCounts{"failed": 2, "done": 1}, counts); diff != "" {
		t.Error(diff)
	}
	if got := events(t, s, r.ID); len(got) != 3 {
		t.Errorf("events %v", got)
	}
}

func TestStepsOfARunThatIsNotThere(t *testing.T) {
	s := open(t)
	wantKind(t, s.Steps.Keep(t.Context(), newID(), aStep("a", 1), event("node")), fault.NotFound)
	if steps, err := s.Steps.List(t.Context(), newID(), 0, 0); err != nil || len(steps) > 0 {
		t.Errorf("%v %v", steps, err)
	}
	if counts, err := s.Steps.Counts(t.Context(), newID()); err != nil || len(counts) > 0 {
		t.Errorf("%v %v", counts, err)
	}
}

func TestStepsGoWithTheirRun(t *testing.T) {
	s, r := open(t), aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	must(t, s.Steps.Keep(t.Context(), r.ID, aStep("a", 1)))
	_, err := s.Questions.Open(t.Context(), aQuestion(r.ID, "ask"))
	must(t, err)
	must(t, s.Runs.Save(t.Context(), ended(r)))
	must(t, s.Runs.Delete(t.Context(), r.ID))
	if steps, err := s.Steps.List(t.Context(), r.ID, 0, 0); err != nil || len(steps) > 0 {
		t.Errorf("%v %v", steps, err)
	}
}

func TestRunsBelowARootThatGoesOnAreNotOld(t *testing.T) {
	s, root := open(t), aRun(1)
	child := ended(aRun(2))
	child.Parent, child.Root = root.ID, root.ID
	orphan := ended(aRun(3))
	orphan.Root = newID() // pruned
	for _, r := range []Run{root, child, orphan} {
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
	}
	ids := func() (ids []string) {
		rows, err := s.Runs.Oldest(t.Context(), Old{})
		must(t, err)
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		return ids
	}
	if diff := cmp.Diff([]string{orphan.ID}, ids()); diff != "" {
		t.Error(diff)
	}
	must(t, s.Runs.Save(t.Context(), ended(root)))
	if got := ids(); len(got) != 3 {
		t.Errorf("%v", got)
	}
}
