package flows

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

func statsCommand(env *cli.Env) *cobra.Command {
	var last int
	cmd := &cobra.Command{
		Use:     "stats UNIT",
		Short:   "Show how long the nodes of a flow take on a server, and how often they fail",
		Example: "  aod flow stats letter\n  aod flow stats letter --last 20",
		Args:    cli.Exactly(1, "the name of a flow"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			return stats(ctx, env, server, args[0], last)
		}),
	}
	cmd.Flags().IntVar(&last, "last", 100, "how many of the flow's last runs count")
	return cmd
}

func stats(ctx context.Context, env *cli.Env, server *client.Client, unit string, last int) error {
	stats := nodeStats{}
	for summary, err := range cli.First(last, server.Runs.List(ctx, api.Filter{Unit: unit, Limit: min(last, 1000)})) {
		if err != nil {
			return err
		}
		for step, err := range server.Flows.Steps(ctx, summary.ID) {
			if err != nil {
				return err
			}
			stats.add(step)
		}
	}
	table := ui.NewTable(env.Out, "NODE", "RUNS", "FAILED", "RETRIES", "P50", "P95", "SHARE")
	for _, s := range stats.sorted() {
		ui.Row(table, s.node, fmt.Sprint(s.ends), fmt.Sprint(s.failed), fmt.Sprint(s.retries),
			quantileText(s.took, 0.5), quantileText(s.took, 0.95), s.shareText(stats.total()))
	}
	return table.Flush()
}

// nodeStats are the figures of nodes, by flow.NodePath.
type nodeStats map[string]*nodeFigures

type nodeFigures struct {
	node                  string
	ends, failed, retries int
	took                  []time.Duration
}

func (n nodeStats) add(s api.Step) {
	node := flow.NodePath(s.Address)
	if n[node] == nil {
		n[node] = &nodeFigures{node: node}
	}
	f := n[node]
	if s.Try > 1 {
		f.retries++
	}
	if s.Ended == nil {
		return
	}
	f.ends++
	if s.State == api.FailedStep {
		f.failed++
	}
	f.took = append(f.took, s.Ended.Sub(s.Began))
}

// sorted returns the nodes, those that took most of the time first.
func (n nodeStats) sorted() []*nodeFigures {
	all := make([]*nodeFigures, 0, len(n))
	for _, f := range n {
		slices.Sort(f.took)
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *nodeFigures) int {
		if d := int(sumOf(b.took) - sumOf(a.took)); d != 0 {
			return d
		}
		return strings.Compare(a.node, b.node)
	})
	return all
}

// total is the time of all nodes of the flow itself: what is inside others counts once.
func (n nodeStats) total() (all time.Duration) {
	for node, f := range n {
		if !strings.Contains(node, "/") {
			all += sumOf(f.took)
		}
	}
	return all
}

func (f *nodeFigures) shareText(total time.Duration) string {
	if total <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(sumOf(f.took))/float64(total))
}

func sumOf(list []time.Duration) (sum time.Duration) {
	for _, d := range list {
		sum += d
	}
	return sum
}

// quantileText is a quantile of a sorted list.
func quantileText(sorted []time.Duration, q float64) string {
	if len(sorted) == 0 {
		return ""
	}
	return ui.RoundTime(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]).String()
}
