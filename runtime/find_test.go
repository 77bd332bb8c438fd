package runtime_test

import (
	"context"
	"errors"
	"testing"

	"github.com/agent-on-demand/aod/runtime"
)

// attempts makes a container for each attempt of a run.
func (b *harness) attempts(t *testing.T, run, owner string, n int) {
	t.Helper()
	for i := range n {
		spec := b.spec
		spec.Run, spec.Owner, spec.Attempt = run, owner, i+1
		s, err := runtime.Start(t.Context(), b, spec, b.layout, b.log)
		if err != nil {
			t.Fatal(err)
		}
		s.Release()
	}
}

func TestFindAndRemoveAllKnowARunByItsOwner(t *testing.T) {
	b := newBench(t, sleeper)
	b.attempts(t, "r1", "me", 3)
	b.attempts(t, "r2", "me", 1)
	b.attempts(t, "r3", "you", 1)
	cases := []struct {
		name, run, owner string
		want             int
	}{
		{"all attempts", "r1", "me", 3},
		{"nobody's", "r4", "me", 0},
		{"another owner's", "r3", "me", 0},
		{"no run in particular", "", "me", 0},
		{"no owner in particular", "r1", "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			refs, err := runtime.Find(t.Context(), b, c.run, c.owner)
			if err != nil || len(refs) != c.want {
				t.Errorf("found %+v, %v", refs, err)
			}
			for i, ref := range refs {
				if got, want := ref.Labels[runtime.LabelAttempt], string(rune('1'+i)); got != want || ref.State != runtime.StatusRunning {
					t.Errorf("attempt %s, want %s: %+v", got, want, ref)
				}
			}
		})
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	left := 5
	for _, c := range cases {
		if err := runtime.RemoveAll(over, b, c.run, c.owner); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		left -= c.want
		if refs, err := b.ContainersByLabel(t.Context(), nil); err != nil || len(refs) != left {
			t.Errorf("%s: left are %d, want %d (%v)", c.name, len(refs), left, err)
		}
	}
	for run, owner := range map[string]string{"r2": "me", "r3": "you"} {
		if err := runtime.RemoveAll(t.Context(), b, run, owner); err != nil {
			t.Error(err)
		}
	}
	b.nothingLeft(t)
}

func TestWhatCannotBeFoundOrRemovedIsLeftBehind(t *testing.T) {
	b := newBench(t, sleeper)
	b.attempts(t, "r1", "me", 2)
	b.breakWith(errAway, "ContainersByLabel")
	if refs, err := runtime.Find(t.Context(), b, "r1", "me"); !errors.Is(err, errAway) || refs != nil {
		t.Errorf("%v, %v", refs, err)
	}
	for _, method := range []string{"ContainersByLabel", "Remove"} {
		b.breakWith(errAway, method)
		if err := runtime.RemoveAll(t.Context(), b, "r1", "me"); !errors.Is(err, runtime.ErrLeftBehind) || !errors.Is(err, errAway) {
			t.Errorf("%s: %v", method, err)
		}
	}
	b.Hook = nil
	if err := runtime.RemoveAll(t.Context(), b, "r1", "me"); err != nil {
		t.Error(err)
	}
	b.nothingLeft(t)
}

func TestALostCreationRemovesItsOwnAttemptAlone(t *testing.T) {
	b := newBench(t, nil)
	b.attempts(t, "r1", "me", 1)
	b.spec.Attempt = 2
	if _, err := runtime.Start(t.Context(), lossy{b, func(context.Context) error { return errAway }}, b.spec, b.layout, b.log); !errors.Is(err, errAway) {
		t.Error(err)
	}
	refs, err := runtime.Find(t.Context(), b, "r1", "me")
	if err != nil || len(refs) != 1 || refs[0].Labels[runtime.LabelAttempt] != "1" {
		t.Errorf("left are %+v, %v", refs, err)
	}
	if err := runtime.RemoveAll(t.Context(), b, "r1", "me"); err != nil {
		t.Error(err)
	}
}
