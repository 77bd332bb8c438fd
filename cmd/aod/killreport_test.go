package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// report is a table of the runs by kind.
func (c *killing) report() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	ui.Row(table, "kind", "runs", "right", "attempts", "programs started", "in flight at a kill", "kills met", "containers taken")
	byKind := map[string][]*order{}
	for _, o := range c.orders {
		byKind[o.kind] = append(byKind[o.kind], o)
		byKind["all"] = append(byKind["all"], o)
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		c.reportKind(table, kind, byKind[kind])
	}
	_ = table.Flush()
	return text.String()
}

func (c *killing) reportKind(table *tabwriter.Writer, kind string, orders []*order) {
	var right, attempts, starts, met, hit, taken int
	for _, o := range orders {
		if o.err == nil {
			right++
		}
		n := c.killsMet(o)
		met += n
		hit += min(n, 1)
		attempts, starts, taken = attempts+o.attempts(), starts+o.starts, taken+o.taken
	}
	ui.Row(table, kind, fmt.Sprint(len(orders)), fmt.Sprint(right), fmt.Sprint(attempts), fmt.Sprint(starts),
		fmt.Sprint(hit), fmt.Sprint(met), fmt.Sprint(taken))
}

// killsMet is how many kills came between the acceptance of a run and its end.
func (c *killing) killsMet(o *order) (n int) {
	for _, at := range c.kills {
		if o.record.FinishedAt != nil && at.After(o.record.CreatedAt) && at.Before(*o.record.FinishedAt) {
			n++
		}
	}
	return n
}
