package servicetest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
)

// heard is what a follower was told last of each thing, and where it is.
type heard struct {
	after int64
	seen  map[int64]bool // numbers, of which none comes twice
	last  map[string]api.News
}

// until follows until something was told.
func (f *heard) until(h *servicetest.Harness, over func() bool) {
	h.Helper()
	ctx, cancel := context.WithTimeout(access.WithServer(context.Background()), testkit.Patience)
	defer cancel()
	if over() {
		return
	}
	for one, err := range h.Service.News.Follow(ctx, api.NewsFilter{}, f.after) {
		if err != nil {
			h.Fatal(err, f.last)
		}
		if f.seen[one.Seq] {
			h.Errorf("%d comes again", one.Seq)
		}
		f.after, f.seen[one.Seq] = one.Seq, true
		if f.last[one.ID] = one; over() {
			return
		}
	}
}

func TestNewsOfRealRunsGoOnOverARestart(t *testing.T) {
	t.Parallel()
	h := servicetest.New(t)
	var ids []string
	for i := range 12 {
		orders := servicetest.Orders{Mark: "m", Until: "gate"}
		if i%2 == 0 {
			orders.Until = ""
		}
		ids = append(ids, h.Submit("worker", orders))
	}
	f := heard{seen: map[int64]bool{}, last: map[string]api.News{}}
	are := func(state string) func() bool {
		return func() bool {
			return !slices.ContainsFunc(ids, func(id string) bool {
				one := f.last[id]
				return one.State != state || one.Outcome != api.Success || one.Root != id || one.Unit != "worker"
			})
		}
	}
	f.until(h, func() bool { return f.last[ids[0]].Outcome == api.Success })
	h.Restart()
	h.OpenGate("gate")
	for _, id := range ids {
		h.Await(id)
	}
	h.Restart() // nobody followed meanwhile
	f.until(h, are(string(api.Completed)))

	h.Service.Units.Tell(trusted.Context(t))
	f.until(h, func() bool { return f.last["worker"].Noun == api.NewsUnit })
	h.Service.Units.Tell(trusted.Context(t)) // nothing has changed
	if now, err := h.Service.News.Cursor(trusted.Context(t)); now != f.last["worker"].Seq || err != nil {
		t.Errorf("%d after %+v, %v", now, f.last["worker"], err)
	}
	if _, err := h.Service.Retention.Prune(trusted.Context(t), api.PruneOptions{MaxBytes: 1}); err != nil {
		t.Fatal(err)
	}
	f.until(h, are(api.NewsGone))
}
