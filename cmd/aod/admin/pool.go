package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// PoolCommand is `aod pool`.
func PoolCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pool",
		Short: "Show the containers that a server keeps started for its next runs",
		Long: `Show for each unit how many containers wait for its runs (WAITING) and should (WANTED), in
how many of them the program is loaded already (LOADED), how many are being started, and since
the server's start: runs that got one (HITS), runs that started one of their own (MISSES), and
containers that were started to wait (REFILLS).`,
		Example: "  aod pool\n  aod pool --json | jq '.units[] | {unit, hits, misses}'",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, _ []string) error {
			pool, err := server.Pool(ctx)
			return cli.Show(env, pool, err, asJSON, func(p api.PoolStats) error { return showPool(env, p) })
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object with every container")
	return cmd
}

func showPool(env *cli.Env, pool api.PoolStats) error {
	if pool.Size == 0 {
		env.Out.Line("no container ever waits here: the setting pool is 0, or the engine is elsewhere")
		return nil
	}
	if err := poolTable(env, pool.Units); err != nil {
		return err
	}
	env.Out.Line("%d of %d wait, with %s of %s of memory", pool.Waiting, pool.Size, ui.Bytes(pool.UsedBytes),
		ui.Bytes(pool.MemoryBytes))
	return nil
}

func poolTable(env *cli.Env, units []api.PoolUnit) error {
	table := ui.NewTable(env.Out, "UNIT", "WAITING", "WANTED", "LOADED", "STARTING", "HITS", "MISSES", "REFILLS",
		"OLDEST")
	now := time.Now()
	for _, u := range units {
		ui.Row(table, u.Unit, fmt.Sprint(len(u.Waiting)), fmt.Sprint(u.Wanted), fmt.Sprint(loaded(u.Waiting)),
			fmt.Sprint(u.Starting),
			fmt.Sprint(u.Hits), fmt.Sprint(u.Misses), fmt.Sprint(u.Refills), oldestText(u.Waiting, now))
	}
	return table.Flush()
}

func loaded(waiting []api.PoolSandbox) (n int) {
	for _, w := range waiting {
		if w.Loaded {
			n++
		}
	}
	return n
}

// oldestText is the age of the first sandbox, which has waited longest.
func oldestText(waiting []api.PoolSandbox, now time.Time) string {
	if len(waiting) == 0 {
		return ""
	}
	return ui.Age(now.Sub(waiting[0].Since))
}
