// Package workers is `aod worker`: the machines that take runs from a server. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package workers

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/complete"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// Command is `aod worker`.
func Command(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Invite, drain and remove the machines that take runs from a server",
		Long: `Invite, drain and remove workers: further machines, with Docker and aod, that take runs from a
server. A worker connects to the server, never the other way round. For who manages the whole
server.`,
		Example: "  (umask 077; aod worker add big --url https://aod.example.com >big.join)\n" +
			"  aod worker ls\n  aod worker drain big\n  aod worker undrain big\n  aod worker rm big\n" +
			"  aod worker bundle --url https://10.0.0.5:7070 stack",
		Args: cli.KnownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(addCommand(env), listCommand(env), drainCommand(env), undrainCommand(env), removeCommand(env),
		bundleCommand(env))
	return cmd
}

func addCommand(env *cli.Env) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Invite a worker and print what it joins with: it can't be read again",
		Long: `Invite a worker and print what a machine joins with: a JSON object of the server's address, the
pins of its certificate, and a token that is good once, for 24 hours. Take the file to the machine,
and keep it to yourself until then. Without --url it has the address that this command uses itself.`,
		Example: "  (umask 077; aod worker add big --url https://aod.example.com >big.join)",
		Args:    cli.Exactly(1, "a name for the worker"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			known, err := addressFor(server, address)
			if err != nil {
				return err
			}
			join, err := server.Workers.Add(ctx, args[0])
			if err != nil {
				return err
			}
			join.Server = known
			if isOfThisMachine(known) {
				env.Note("the address %s is this machine's alone: a worker on another one needs --url",
					ui.Printable(known))
			}
			env.Note("on the machine of the worker: aod work --join FILE, where FILE has what is printed here")
			return env.Out.JSON(join)
		}),
	}
	cmd.Flags().StringVar(&address, "url", "", "the address of the server as the worker's machine knows it")
	return cmd
}

// addressFor is the address by which a worker knows a server: another one than this command's, if that is given.
func addressFor(server *client.Client, given string) (string, error) {
	if given == "" {
		return server.Server(), nil
	}
	as, err := client.New(client.Options{Server: given})
	if err != nil {
		return "", err
	}
	return as.Server(), nil
}

// isOfThisMachine reports whether an address means another server on each machine.
func isOfThisMachine(address string) bool {
	at, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(at.Hostname())
	return at.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

func listCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the workers of a server, and how they fare",
		Long: `List the workers of a server by name. One that is invited has not joined yet; one that is away
may come back to its runs; the runs of one that is lost have ended. SLOTS are those in use, and all.`,
		Example: "  aod worker ls\n  aod worker ls --json | jq -r 'select(.state != \"connected\").name'",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, _ []string) error {
			all, err := server.Workers.List(ctx)
			if err != nil {
				return err
			}
			now, titles := time.Now(), []string{"NAME", "STATE", "SLOTS", "LABELS", "VERSION", "LAST SEEN"}
			return cli.Table(env, cli.All(all), asJSON, "there are no workers", titles, func(w api.Worker) []string {
				return []string{
					w.Name, stateText(w, now), slotsText(w), cmp.Or(strings.Join(w.Labels, ","), "-"),
					cmp.Or(w.Version, "-"), seenText(w, now),
				}
			})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a worker")
	return cmd
}

// stateText is a worker's state, and whether it takes runs.
func stateText(w api.Worker, now time.Time) string {
	text := string(w.State)
	switch {
	case w.State == api.WorkerInvited && w.ExpiresAt != nil && !now.Before(*w.ExpiresAt):
		text = "invitation expired"
	case w.State == api.WorkerInvited && w.ExpiresAt != nil:
		text += " for " + ui.Age(w.ExpiresAt.Sub(now))
	}
	if w.DiskFull {
		text += ", disk full"
	}
	if w.Drained {
		text += ", drained"
	}
	if w.Node != "" {
		text += ", node " + ui.Printable(w.Node)
	}
	return text
}

func slotsText(w api.Worker) string {
	if w.Slots == 0 && w.Running == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", w.Running, w.Slots)
}

func seenText(w api.Worker, now time.Time) string {
	if w.SeenAt == nil {
		return "never"
	}
	return ui.Age(now.Sub(*w.SeenAt)) + " ago"
}

func drainCommand(env *cli.Env) *cobra.Command {
	return named(env, &cobra.Command{
		Use:   "drain NAME",
		Short: "Have a worker take nothing new",
		Long: `Have a worker take nothing new, until undrain. What it runs goes on: when aod worker ls shows 0
slots in use, its machine can be taken away.`,
		Example: "  aod worker drain big",
	}, func(ctx context.Context, server *client.Client, name string) error {
		w, err := server.Workers.Drain(ctx, name)
		if err == nil {
			env.Note("%s takes nothing new; it has %s", ui.Printable(name), ui.Plural(w.Running, "run"))
		}
		return err
	})
}

func undrainCommand(env *cli.Env) *cobra.Command {
	return named(env, &cobra.Command{
		Use:     "undrain NAME",
		Short:   "Have a worker that was drained take runs again",
		Example: "  aod worker undrain big",
	}, func(ctx context.Context, server *client.Client, name string) error {
		_, err := server.Workers.Undrain(ctx, name)
		if err == nil {
			env.Note("%s takes runs again", ui.Printable(name))
		}
		return err
	})
}

func removeCommand(env *cli.Env) *cobra.Command {
	return named(env, &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove a worker: what it has joined with is good for nothing any more",
		Long: `Remove a worker, or take back its invitation. The server ends its connections within seconds, and
takes no results of it any more: drain it first, and wait for its runs.`,
		Example: "  aod worker rm big",
	}, func(ctx context.Context, server *client.Client, name string) error {
		err := server.Workers.Remove(ctx, name)
		if err == nil {
			env.Note("%s is removed", ui.Printable(name))
		}
		return err
	})
}

// named has a command do something with the worker that its argument names.
func named(
	env *cli.Env, cmd *cobra.Command, do func(ctx context.Context, server *client.Client, name string) error,
) *cobra.Command {
	cmd.Args = cli.Exactly(1, "the name of a worker")
	cmd.RunE = cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
		return do(ctx, server, args[0])
	})
	cmd.ValidArgsFunction = complete.First(env, namesOf(env), cobra.ShellCompDirectiveNoFileComp)
	return cmd
}

// namesOf completes the names of a server's workers.
func namesOf(env *cli.Env) func(context.Context, []string, string) []cobra.Completion {
	return func(ctx context.Context, _ []string, _ string) (names []cobra.Completion) {
		server, err := env.Connect()
		if err != nil {
			return nil
		}
		all, err := server.Workers.List(ctx)
		if err != nil {
			return nil
		}
		for _, w := range all {
			names = append(names, cobra.CompletionWithDesc(w.Name, string(w.State)))
		}
		return names
	}
}
