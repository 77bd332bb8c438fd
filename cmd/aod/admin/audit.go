package admin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// AuditCommand is `aod audit`.
func AuditCommand(env *cli.Env) *cobra.Command {
	var f api.AuditFilter
	var since time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who did what at a server, and who was refused it",
		Long: `List who did what at a server, the newest first: runs begun and cancelled, questions answered,
units, schedules, sessions, tokens; and who was refused something, by kind and minute. What was given
or told isn't in it. It needs the scope admin; the administrator of a team sees what is of the team.`,
		Example: "  aod audit --since 24h\n  aod audit --by token:ci\n  aod audit --object nightly --json",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, _ []string) error {
			if since > 0 {
				f.Since = time.Now().Add(-since)
			}
			return cli.Table(env, server.Audit(ctx, f), asJSON, "nothing is in the audit of that",
				[]string{"AT", "BY", "FROM", "DID", "OBJECT", "TEAM", "RESULT", "DETAIL"}, auditCells)
		}),
	}
	cmd.Flags().StringVar(&f.By, "by", "", "who did it: token:NAME, operator, anonymous or local:USER")
	cmd.Flags().StringVar(&f.Object, "object", "", "to what: an id or a name")
	cmd.Flags().DurationVar(&since, "since", 0, "not longer ago, e.g. 24h")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object an entry")
	return cmd
}

func auditCells(e api.AuditEntry) []string {
	result := e.Result
	if e.Count > 1 {
		result = fmt.Sprintf("%s, %d times", result, e.Count)
	}
	return []string{
		ui.Time(e.At), ui.Printable(e.Identity), cmp.Or(e.Address, "-"), e.Verb + " " + e.Noun,
		cmp.Or(ui.Printable(e.Object), "-"), e.Team, result, cmp.Or(ui.Printable(e.Detail), "-"),
	}
}
