package admin

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// UsageCommand is `aod usage`.
func UsageCommand(env *cli.Env) *cobra.Command {
	var f api.UsageFilter
	var days int
	var asJSON, left bool
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Tell what runs and models used at a server",
		Long: `Tell what was used at a server by runs that ended and by calls of models, in sums by what --by
names: team, identity, unit, outcome, model and day (UTC). It stays when runs are removed. A token of
a team is told of that. With --left it tells what is left of all that bounds the teams and the token.`,
		Example: "  aod usage --by unit\n  aod usage --by team,model --days 30\n  aod usage --left",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, _ []string) error {
			if left {
				return listQuotas(ctx, env, server, asJSON)
			}
			if days > 0 {
				f.Since = time.Now().UTC().AddDate(0, 0, 1-days)
			}
			used, err := server.Usage(ctx, f)
			if err != nil {
				return err
			}
			titles := []string{"RUNS", "WAITED", "RAN", "CPU", "CALLS", "TOKENS", "COST"}
			for i, by := range f.By {
				titles = append(titles[:i:i], append([]string{strings.ToUpper(by)}, titles[i:]...)...)
			}
			return cli.Table(env, cli.All(used), asJSON, "nothing was used", titles,
				func(u api.UsageSum) []string { return usageCells(f.By, u) })
		}),
	}
	cmd.Flags().StringSliceVar(&f.By, "by", nil, "team, identity, unit, outcome, model, day; several with commas")
	cmd.Flags().IntVar(&days, "days", 0, "only of so many last days, with today")
	cmd.Flags().BoolVar(&left, "left", false, "tell what is left of slots, room and money")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a sum")
	cmd.MarkFlagsMutuallyExclusive("left", "by")
	cmd.MarkFlagsMutuallyExclusive("left", "days")
	return cmd
}

func listQuotas(ctx context.Context, env *cli.Env, server *client.Client, asJSON bool) error {
	quotas, err := server.Quotas(ctx)
	if err != nil {
		return err
	}
	titles := []string{"RULE", "LIMIT", "USED", "LEFT", "OPENS"}
	return cli.Table(env, cli.All(quotas), asJSON, "nothing is bounded", titles,
		func(q api.Quota) []string {
			return []string{
				ui.Printable(q.Rule), q.Limit.String(), q.Used.String(), q.Left.String(), minute(q.Opens, "-"),
			}
		})
}

func usageCells(by []string, u api.UsageSum) []string {
	groups := map[string]string{
		"team": u.Team, "identity": u.Identity, "unit": u.Unit, "outcome": string(u.Outcome), "model": u.Model,
		"day": u.Day,
	}
	var cells []string
	for _, name := range by {
		cells = append(cells, cmp.Or(ui.Printable(groups[name]), "-"))
	}
	took := func(ms int64) string { return ui.RoundTime(time.Duration(ms) * time.Millisecond).String() }
	return append(cells, strconv.FormatInt(u.Runs, 10), took(u.WaitMS), took(u.RunMS), took(u.CPUMS),
		strconv.FormatInt(u.Calls, 10), strconv.FormatInt(u.Tokens, 10), u.Cost.String())
}
