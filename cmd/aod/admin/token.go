package admin

import (
	"cmp"
	"context"
	"iter"
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
		Short: "Make, rotate and revoke tokens with names, which allow a part of what a server does",
		Long: `Make, rotate and revoke tokens with names: for the server that --server or AOD_SERVER names
by its API, as an administrator, else for the one whose data directory is --data, in its file. A
server that runs sees each change with the next request, and ends what is open within some
seconds. What is stored of a token is its digest.

A token has scopes: read (runs, units, figures), run (begin and end runs, answer questions),
upload (bring, set back and remove units), approve (see and answer questions, a part of run),
metrics (/metrics alone, of all teams), admin (everything). read, run and upload aren't part
of one another. It may have limits: --rate of requests in a minute, --runs that go on at once;
what goes beyond is refused with 429. It may be limited to --unit: it knows of no others. It
may expire.

With --team it is one of a team: what is made with it belongs to that, and it sees nothing of
other teams. Without, it belongs to the team "default", and with admin it is for the whole server.`,
		Example: "  aod token add ci --scope run,read --expires 90d\n" +
			"  aod token add partner --scope run --unit summary --rate 60 --runs 5\n" +
			"  aod token add ada --team research --scope run,read,upload\n  aod token ls\n" +
			"  aod token rotate ci --grace 24h\n  aod token rm ci --stop",
		Args: cli.Exactly(0, "add, ls, rotate or rm"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tokenAddCommand(env), tokenListCommand(env), tokenRotateCommand(env), tokenRemoveCommand(env))
	return cmd
}

func tokenAddCommand(env *cli.Env) *cobra.Command {
	var asked api.TokenRequest
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a token and print it: it can't be read again",
		Example: "  aod token add ci --scope run,read >ci.token\n  AOD_TOKEN=$(cat ci.token) aod ps --server " +
			"http://127.0.0.1:7070",
		Args: cli.Exactly(1, "a name for the token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			asked.Name = args[0]
			all, _, err := tokensOf(env)
			if err != nil {
				return err
			}
			token, err := all.Add(cmd.Context(), asked)
			return printed(env, token, err)
		},
	}
	cmd.Flags().StringSliceVar(&asked.Scopes, "scope", nil,
		"read, run, upload, approve, admin, metrics; several with commas")
	cmd.Flags().StringSliceVar(&asked.Teams, "team", nil,
		"the team that owns what is made with it; several with commas, of which the first owns that")
	cmd.Flags().StringSliceVar(&asked.Units, "unit", nil,
		"the unit that it may use; several with commas; all by default")
	cmd.Flags().StringVar(&asked.Expires, "expires", "",
		"when it expires: 90d, 12h, 2027-01-31 (at 0:00 UTC) or 2027-01-31T12:00:00Z; never by default")
	cmd.Flags().IntVar(&asked.Rate, "rate", 0, "the most requests in a minute; no limit by default")
	cmd.Flags().IntVar(&asked.Runs, "runs", 0, "the most runs that go on or wait at once; no limit by default")
	return cmd
}

// printed prints a token that was made.
func printed(env *cli.Env, token string, err error) error {
	if err == nil {
		env.Out.Line("%s", token)
	}
	return err
}

func tokenRotateCommand(env *cli.Env) *cobra.Command {
	var grace string
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Make another token in place of one, and print it",
		Long: `Make another token under the name of one, with its scopes, teams, units, limits and end, and
print it. The earlier one is good until the grace is over. What was made with it belongs to the
name, and so to the new one.`,
		Example: "  aod token rotate ci >ci.token\n  aod token rotate ci --grace 0 >ci.token",
		Args:    cli.Exactly(1, "the name of a token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, _, err := tokensOf(env)
			if err != nil {
				return err
			}
			token, err := all.Rotate(cmd.Context(), args[0], grace)
			return printed(env, token, err)
		},
	}
	cmd.Flags().StringVar(&grace, "grace", "1h",
		"how long the earlier one is good; 0 ends it at once, with all that came before it")
	return cmd
}

func tokenListCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the tokens with names",
		Long: `List the tokens with names. When one was used last is known to the minute; a server that runs
writes it down once in a minute.`,
		Example: "  aod token ls",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			of, _, err := tokensOf(env)
			if err != nil {
				return err
			}
			all, err := of.List(cmd.Context())
			if err != nil {
				return err
			}
			titles := []string{"NAME", "SCOPES", "TEAM", "UNITS", "LIMITS", "CREATED", "EXPIRES", "LAST USED"}
			return cli.Table(env, cli.All(all), asJSON, "", titles, func(t api.Token) []string {
				return []string{
					t.Name, strings.Join(t.Scopes, ","), cmp.Or(strings.Join(t.Teams, ","), "-"),
					cmp.Or(strings.Join(t.Units, ","), "-"), limitsText(t.TokenGrant), minute(&t.CreatedAt, "-"),
					minute(t.ExpiresAt, "never"), minute(t.LastUsedAt, "never"),
				}
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a token")
	return cmd
}

// minute writes a time to the minute; none is what stands for nil.
func minute(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return t.Local().Format("2006-01-02 15:04")
}

// limitsText is what a token is limited to: "60/min, 5 runs", or "-".
func limitsText(g api.TokenGrant) string {
	var parts []string
	if g.Rate > 0 {
		parts = append(parts, strconv.Itoa(g.Rate)+"/min")
	}
	if g.Runs > 0 {
		parts = append(parts, ui.Plural(g.Runs, "run"))
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

func tokenRemoveCommand(env *cli.Env) *cobra.Command {
	var stop bool
	var give string
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Revoke a token, and stop what was made with it",
		Long: `Revoke a token. Its next request is refused, and a server that runs ends the streams that are
open with it within some seconds. Its runs, sessions, schedules and webhooks go on: those are
counted, and --stop ends the runs, closes the sessions, pauses the schedules and removes the
webhooks, also of one that was revoked before. --give has its schedules belong to another token,
which runs them from then on.`,
		Example: "  aod token rm ci\n  aod token rm ci --stop\n  aod token rm ada --give bob",
		Args:    cli.Exactly(1, "the name of a token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, server, err := tokensOf(env)
			if err != nil {
				return err
			}
			removed, err := all.Remove(cmd.Context(), args[0], give)
			if err != nil && (!stop || give != "" || !fault.Is(err, fault.NotFound)) {
				return err
			}
			if err == nil {
				env.Note("%s is revoked", ui.Printable(args[0]))
			}
			if give != "" && err == nil {
				env.Note("%s given to %s", ui.Plural(removed.Given, "schedule"), ui.Printable(give))
			}
			return leftBy(cmd.Context(), env, server, args[0], stop)
		},
	}
	cmd.Flags().BoolVar(&stop, "stop", false, "end, close, pause or remove what was made with it and goes on")
	cmd.Flags().StringVar(&give, "give", "", "the name of the token to which its schedules go")
	return cmd
}

// leftovers are what goes on that was made with a token.
type leftovers struct {
	runs, sessions, schedules, webhooks []string // ids, and names of schedules
}

func (l leftovers) text() string {
	var parts []string
	for _, part := range []struct {
		of   []string
		noun string
	}{{l.runs, "run"}, {l.sessions, "session"}, {l.schedules, "schedule"}, {l.webhooks, "webhook"}} {
		if len(part.of) > 0 {
			parts = append(parts, ui.Plural(len(part.of), part.noun))
		}
	}
	return strings.Join(parts, ", ")
}

// leftBy tells what goes on that was made with a revoked token, and stops it; without a server that is named at the one
// of the data directory.
func leftBy(ctx context.Context, env *cli.Env, server *client.Client, name string, stop bool) (err error) {
	if server == nil {
		server, err = env.ConnectHere()
	}
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
	left.webhooks, err = chosen(server.Webhooks.List(ctx), func(w api.Webhook) (string, bool) {
		return w.ID, w.By == by
	})
	if err != nil {
		return left, err
	}
	left.schedules, err = chosen(server.Schedules.List(ctx), func(s api.Schedule) (string, bool) {
		return s.Name, s.By == by && s.State != api.SchedulePaused && s.State != api.ScheduleEnded
	})
	if err != nil {
		return left, err
	}
	sessions := server.Sessions.List(ctx, client.SessionFilter{Open: true})
	left.sessions, err = chosen(sessions, func(s api.Session) (string, bool) { return s.ID, s.By == by })
	if err != nil {
		return left, err
	}
	runs := server.Runs.List(ctx, api.Filter{Active: true})
	left.runs, err = chosen(runs, func(r api.Summary) (string, bool) { return r.ID, r.By == by && r.Parent == "" })
	return left, err
}

// chosen are the names of those things of a list that are chosen.
func chosen[T any](all iter.Seq2[T, error], choose func(T) (name string, ok bool)) (names []string, err error) {
	for one, err := range all {
		if err != nil {
			return names, err
		}
		if name, ok := choose(one); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// stop stops all: the schedules first, so that none starts another run meanwhile. What has ended by
// itself needn't be stopped.
func (l leftovers) stop(ctx context.Context, server *client.Client, by string) error {
	for _, name := range l.schedules {
		if _, err := server.Schedules.Pause(ctx, name); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	for _, id := range l.webhooks {
		if err := server.Webhooks.Delete(ctx, id); err != nil && !fault.Is(err, fault.NotFound) {
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
