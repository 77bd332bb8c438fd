package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
)

func TestALineageIsAPathFromTheRoot(t *testing.T) {
	caller := &unit.Unit{Name: "caller", Policy: unit.Policy{Recursion: 2, Budgets: capsule.Budgets{}}}
	root := NewLineage("r1", caller)
	if root.Parent != "" || root.Root != "r1" || len(root.Path) != 1 || root.Tree == nil || !root.Deadline.IsZero() {
		t.Errorf("root %+v", root)
	}
	deadline := time.Now().Add(time.Minute)
	child := root.Child("r2", &unit.Unit{Name: "called"}, deadline)
	other := root.Child("r3", &unit.Unit{Name: "other"}, time.Time{})
	grandchild := child.Child("r4", caller, deadline)
	for _, c := range []struct {
		name         string
		got          Lineage
		parent, path string
	}{
		{"a child", child, "r1", "r1:caller r2:called "},
		{"its sibling", other, "r1", "r1:caller r3:other "},
		{"its child", grandchild, "r2", "r1:caller r2:called r4:caller "},
		{"the root, as it was", root, "", "r1:caller "},
	} {
		path := ""
		for _, step := range c.got.Path {
			path += step.Run + ":" + step.Unit + " "
		}
		if c.got.Parent != c.parent || c.got.Root != "r1" || path != c.path || c.got.Tree != root.Tree {
			t.Errorf("%s: %+v", c.name, c.got)
		}
	}
	if !child.Deadline.Equal(deadline) || !other.Deadline.IsZero() || grandchild.Path[2].Recursion != 2 {
		t.Errorf("child %+v, other %+v, grandchild %+v", child, other, grandchild)
	}
}

func TestACallersTimeEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, stop := Lineage{Deadline: began.Add(time.Minute)}.Bound(t.Context())
		defer stop()
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrDeadline) || time.Since(began) != time.Minute {
			t.Errorf("ended with %v after %v", context.Cause(ctx), time.Since(began))
		}
		free, stop := Lineage{}.Bound(t.Context())
		time.Sleep(24 * time.Hour) // of the bubble
		if free.Err() != nil {
			t.Errorf("a root ended with %v", context.Cause(free))
		}
		stop()
	})
}

func TestTheDeadlineOfAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		earlier := now.Add(-30 * time.Second)
		for _, c := range []struct {
			name    string
			state   api.State
			started *time.Time
			caller  time.Time
			want    time.Duration // from now
		}{
			{"of its own time", api.Starting, nil, time.Time{}, time.Minute},
			{"of its caller's, which is sooner", api.Starting, nil, now.Add(10 * time.Second), 10 * time.Second},
			{"of its own, which is sooner than its caller's", api.Starting, nil, now.Add(time.Hour), time.Minute},
			{"that was resumed began earlier", api.Running, &earlier, time.Time{}, 30 * time.Second},
			{"that is new doesn't have the start of the one before", api.Starting, &earlier, time.Time{}, time.Minute},
		} {
			r := runIn(c.state)
			r.Record.StartedAt, r.Lineage.Deadline = c.started, c.caller
			if got := r.Deadline(time.Minute).Sub(now); got != c.want {
				t.Errorf("%s: in %v, want %v", c.name, got, c.want)
			}
		}
	})
}
