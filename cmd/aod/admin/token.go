package admin

import (
	"cmp"
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/audit"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// NamedTokens are the tokens with names of the server with a home.
func NamedTokens(home string) *access.Tokens {
	return access.NewTokens(filepath.Join(home, layout.Tokens))
}

// TokenCommand is `aod token`.
func TokenCommand(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make and revoke tokens with names, which allow a part of what a server does",
		Long: `Make and revoke tokens with names for the server whose data directory is --data. A server
that runs sees each change with the next request, and ends what is open within some seconds.
What is stored of a token is its digest.

A token has scopes: read (runs, units, figures), run (begin and end runs, answer questions),
upload (bring, set back and remove units), metrics (/metrics alone, of all teams), admin
(everything). None of the first three is part of another. It may have limits: --rate of
requests in a minute, --runs that go on at once; what goes beyond is refused with 429.

With --team it is one of a team: what is made with it belongs to that, and it sees nothing of
other teams. Without, it belongs to the team "default", and with admin it is for the whole server.`,
		Example: "  aod token add ci --scope run,read\n  aod token add partner --scope run --rate 60 --runs 5\n" +
			"  aod token add ada --team research --scope run,read,upload\n  aod token ls\n  aod token rm ci --stop",
		Args: cli.Exactly(0, "add, ls or rm"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tokenAddCommand(env), tokenListCommand(env), tokenRemoveCommand(env))
	return cmd
}

func tokenAddCommand(env *cli.Env) *cobra.Command {
	var scopes []string
	var grant access.Grant
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a token and print it: it can't be read again",
		Example: "  aod token add ci --scope run,read >ci.token\n  AOD_TOKEN=$(cat ci.token) aod ps --server " +
			"http://127.0.0.1:7070",
		Args: cli.Exactly(1, "a name for the token"),
		RunE: func(_ *cobra.Command, args []string) error {
			grant.Name = args[0]
			if len(scopes) > 0 {
				var err error
				if grant.Scopes, err = access.ParseScopes(scopes); err != nil {
					return err
				}
			}
			token, err := NamedTokens(env.Home()).Add(grant)
			if err == nil {
				err = audit.Leave(env.Home(), "add", "token", grant.Name, scopesText(grant.Scopes))
			}
			if err != nil {
				return err
			}
			env.Out.Line("%s", token)
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "read, run, upload, admin or metrics; several with commas")
	cmd.Flags().StringSliceVar(&grant.Teams, "team", nil,
		"the team that owns what is made with it; several with commas, of which the first owns that")
	cmd.Flags().IntVar(&grant.Limits.Rate, "rate", 0, "the most requests in a minute; no limit by default")
	cmd.Flags().IntVar(&grant.Limits.Runs, "runs", 0, "the most runs that go on or wait at once; no limit by default")
	return cmd
}

func tokenListCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the tokens with names",
		Example: "  aod token ls",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: func(*cobra.Command, []string) error {
			all, err := NamedTokens(env.Home()).List()
			if err != nil {
				return err
			}
			var tokens []listedToken
			for _, token := range all {
				tokens = append(tokens, listedToken{token.Name, token.Scopes, token.Teams, token.Created, token.Limits})
			}
			return cli.Table(env, cli.All(tokens), asJSON, "", []string{"NAME", "SCOPES", "TEAM", "LIMITS", "CREATED"},
				func(t listedToken) []string {
					team := cmp.Or(strings.Join(t.Teams, ","), "-")
					return []string{t.Name, scopesText(t.Scopes), team, limitsText(t.Limits), ui.Time(t.Created)}
				})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a token")
	return cmd
}

// listedToken is a line of the list as JSON.
type listedToken struct {
	Name    string         `json:"name"`
	Scopes  []access.Scope `json:"scopes"`
	Teams   []string       `json:"teams,omitempty"`
	Created time.Time      `json:"created_at"`
	access.Limits
}

// limitsText is what a token is limited to: "60/min, 5 runs", or "-".
func limitsText(l access.Limits) string {
	var parts []string
	if l.Rate > 0 {
		parts = append(parts, strconv.Itoa(l.Rate)+"/min")
	}
	if l.Runs > 0 {
		parts = append(parts, ui.Plural(l.Runs, "run"))
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

func scopesText(scopes []access.Scope) string {
	var names []string
	for _, scope := range scopes {
		names = append(names, string(scope))
	}
	return strings.Join(names, ",")
}

func tokenRemoveCommand(env *cli.Env) *cobra.Command {
	var stop bool
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Revoke a token, and stop what was made with it",
		Long: `Revoke a token. Its next request is refused, and a server that runs ends the streams that are
open with it within some seconds. Its runs, sessions and schedules go on: those are counted, and
--stop ends the runs, closes the sessions and pauses the schedules, also of one that was revoked
before.`,
		Example: "  aod token rm ci\n  aod token rm ci --stop",
		Args:    cli.Exactly(1, "the name of a token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := NamedTokens(env.Home()).Remove(args[0])
			if err != nil && (!stop || !fault.Is(err, fault.NotFound)) {
				return err
			}
			if err == nil {
				env.Note("%s is revoked", ui.Printable(args[0]))
				if err := audit.Leave(env.Home(), "remove", "token", args[0], ""); err != nil {
					return err
				}
			}
			return leftBy(cmd.Context(), env, args[0], stop)
		},
	}
	cmd.Flags().BoolVar(&stop, "stop", false, "end its runs, close its sessions and pause its schedules")
	return cmd
}

// leftovers are what goes on that was made with a token.
type leftovers struct {
	runs, sessions, schedules []string // ids, and names of schedules
}

func (l leftovers) text() string {
	var parts []string
	for _, part := range []struct {
		of   []string
		noun string
	}{{l.runs, "run"}, {l.sessions, "session"}, {l.schedules, "schedule"}} {
		if len(part.of) > 0 {
			parts = append(parts, ui.Plural(len(part.of), part.noun))
		}
	}
	return strings.Join(parts, ", ")
}

// leftBy tells what goes on that was made with a revoked token, and stops it.
func leftBy(ctx context.Context, env *cli.Env, name string, stop bool) error {
	server, err := env.ConnectHere()
	if fault.Is(err, fault.Unavailable) && !stop {
		env.Note("no server runs here: what was made with it goes on when one does, unless --stop stops it then")
		return nil
	}
	if err != nil {
		return err
	}
	left, err := findLeft(ctx, server, name)
	switch {
	case err != nil:
		return err
	case left.text() == "":
		env.Note("nothing goes on that was made with it")
	case !stop:
		env.Note("%s made with it: `aod token rm %s --stop` stops what goes on", left.text(), ui.Printable(name))
	default:
		if err := left.stop(ctx, server, name); err != nil {
			return err
		}
		env.Note("stopped %s made with it", left.text())
	}
	return nil
}

// findLeft finds what goes on that was made with a token. A call ends with its caller, and a turn
// with its session.
func findLeft(ctx context.Context, server *client.Client, by string) (left leftovers, err error) {
	for schedule, err := range server.Schedules.List(ctx) {
		if err != nil {
			return left, err
		}
		if schedule.By == by && schedule.State != api.SchedulePaused && schedule.State != api.ScheduleEnded {
			left.schedules = append(left.schedules, schedule.Name)
		}
	}
	for session, err := range server.Sessions.List(ctx, client.SessionFilter{Open: true}) {
		if err != nil {
			return left, err
		}
		if session.By == by {
			left.sessions = append(left.sessions, session.ID)
		}
	}
	for run, err := range server.Runs.List(ctx, api.Filter{Active: true}) {
		if err != nil {
			return left, err
		}
		if run.By == by && run.Parent == "" {
			left.runs = append(left.runs, run.ID)
		}
	}
	return left, nil
}

// stop stops all: the schedules first, so that none starts another run meanwhile. What has ended by
// itself needn't be stopped.
func (l leftovers) stop(ctx context.Context, server *client.Client, by string) error {
	for _, name := range l.schedules {
		if _, err := server.Schedules.Pause(ctx, name); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	for _, id := range l.sessions {
		if _, err := server.Sessions.Close(ctx, id); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	for _, id := range l.runs {
		_, err := server.Runs.Cancel(ctx, id, "the token "+by+" was revoked")
		if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return nil
}
