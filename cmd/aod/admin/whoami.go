package admin

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// WhoamiCommand is `aod whoami`.
func WhoamiCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Show what a server knows of the token that this command has",
		Long: `Show whose token this command has, and what a server allows to it: scopes, teams, units,
limits, and when it expires. AOD_TEAM names one of its teams, in which everything is done then.`,
		Example: "  aod whoami\n  AOD_TEAM=research aod whoami --json | jq .teams",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, _ []string) error {
			me, err := server.Whoami(ctx)
			return cli.Show(env, me, err, asJSON, func(me api.Whoami) error {
				showWhoami(env, server.Server(), me)
				return nil
			})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func showWhoami(env *cli.Env, server string, me api.Whoami) {
	teams := strings.Join(me.Teams, ", ")
	switch {
	case teams != "":
	case slices.Contains(me.Scopes, "admin"):
		teams = "all"
	default:
		teams = api.DefaultTeam
	}
	page := ui.Page{Out: env.Out}
	page.Field("server", strings.TrimSuffix(server+", aod "+me.Version, ", aod "))
	if !api.IsUser(me.Name) {
		page.Field("token", cmp.Or(me.Name, "the server's own, or none where none is needed"))
	}
	page.Field("identity", me.Identity)
	page.Field("scopes", strings.Join(me.Scopes, ", "))
	page.Field("teams", teams)
	page.Field("groups", strings.Join(me.Groups, ", "))
	page.Field("units", cmp.Or(strings.Join(me.Units, ", "), "all"))
	page.Field("limits", limitsText(me.TokenGrant))
	if !api.IsUser(me.Name) {
		page.Field("expires", minute(me.ExpiresAt, "never"))
	}
}
