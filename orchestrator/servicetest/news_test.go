package servicetest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
)

// until follows the news from a number on, until something was told, and returns the last of each thing.
func until(h *servicetest.Harness, after *int64, over func(last map[string]api.News) bool) map[string]api.News {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	last := map[string]api.News{}
	for one, err := range h.Service.News.Follow(ctx, api.NewsFilter{}, *after) {
		if err != nil {
			h.Fatal(err, last)
		}
		if one.Seq <= *after && one.Noun != api.NewsCursor {
			h.Errorf("%d comes after %d", one.Seq, *after)
		}
		*after = one.Seq
		if last[one.ID] = one; over(last) {
			break
		}
	}
	return last
}

func TestNewsOfRealRunsGoOnOverARestart(t *testing.T) {
	t.Parallel()
	h := servicetest.New(t)
	after, err := h.Service.News.Cursor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range 12 {
		orders := servicetest.Orders{Mark: "m", Until: "gate"}
		if i%2 == 0 {
			orders.Until = ""
		}
		ids = append(ids, h.Submit("worker", orders))
	}
	until(h, &after, func(last map[string]api.News) bool { return last[ids[0]].Outcome == api.Success })
	h.Restart()
	h.OpenGate("gate")
	for _, id := range ids {
		h.Await(id)
	}
	h.Restart() // nobody followed meanwhile
	ended := map[string]bool{ids[0]: true}
	until(h, &after, func(last map[string]api.News) bool {
		for id, one := range last {
			if one.State == string(api.Completed) && one.Outcome == api.Success && one.Root == id && one.Unit == "worker" {
				ended[id] = true
			}
		}
		return len(ended) == len(ids)
	})

	h.Service.Units.Tell(t.Context())
	last := until(h, &after, func(last map[string]api.News) bool { return last["worker"].Noun == api.NewsUnit })
	if diff := cmp.Diff(api.News{Seq: after, Noun: api.NewsUnit, ID: "worker"}, last["worker"]); diff != "" {
		t.Error(diff)
	}
	h.Service.Units.Tell(t.Context()) // nothing has changed
	if now, err := h.Service.News.Cursor(t.Context()); now != after || err != nil {
		t.Errorf("%d after %d, %v", now, after, err)
	}
	if _, err := h.Service.Retention.Prune(t.Context(), api.PruneOptions{MaxBytes: 1}); err != nil {
		t.Fatal(err)
	}
	last = until(h, &after, func(last map[string]api.News) bool { return len(last) == len(ids) })
	for id, one := range last {
		if one.State != api.NewsGone || !slices.Contains(ids, id) {
			t.Errorf("%+v", one)
		}
	}
}
