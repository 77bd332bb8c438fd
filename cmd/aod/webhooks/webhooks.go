// Package webhooks is `aod webhook`: whom a server tells of runs. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/complete"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// Command is `aod webhook`.
func Command(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhook",
		Short: "Have a server tell others of runs and of what they ask",
		Long: `Have a server tell receivers when runs of your team end and what they ask people, by HTTP
requests that are signed (Standard Webhooks): in order by run, at least once, for three days.
What is told are ids, names and states; the receiver asks the server for the rest.`,
		Example: "  aod webhook add https://hooks.example.com/aod >hook.secret\n" +
			"  aod webhook add https://hooks.example.com/aod --event run.failed,question.asked\n" +
			"  aod webhook ls\n  aod webhook test 0198c0de-…\n  aod webhook rotate 0198c0de-… >hook.secret\n" +
			"  aod webhook rm 0198c0de-…",
		Args: cli.KnownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(addCommand(env), listCommand(env), testCommand(env), rotateCommand(env), removeCommand(env))
	return cmd
}

func addCommand(env *cli.Env) *cobra.Command {
	var asked api.WebhookRequest
	cmd := &cobra.Command{
		Use:   "add URL",
		Short: "Make a webhook and print its secret: it can't be read again",
		Long: `Make a webhook for the runs of your team that you may see: with the scope read all of them,
else those that were made with your token. With --run it tells of this run alone, and of what
those that it calls ask. The events are run.completed, run.failed, run.timeout, run.cancelled
(of runs that no other run called), question.asked, question.answered and question.closed.

Requests are signed with the secret, which the server makes, or which --secret-file has: a line
of whsec_ and base64 of 24 to 64 bytes.`,
		Example: "  aod webhook add https://hooks.example.com/aod >hook.secret\n" +
			"  aod webhook add https://hooks.example.com/aod --event question.asked --secret-file hook.secret",
		Args: cli.Exactly(1, "the URL of a receiver"),
	}
	tellsSecret(env, cmd, "the webhook is", func(ctx context.Context, server *client.Client, url, secret string) (
		api.Webhook, error,
	) {
		asked.URL, asked.Secret = url, secret
		return server.Webhooks.Add(ctx, asked)
	})
	cmd.Flags().StringSliceVar(&asked.Events, "event", nil, "what it tells of; several with commas; all by default")
	cmd.Flags().StringVar(&asked.Run, "run", "", "the id of the run of which alone it tells")
	return cmd
}

// tellsSecret has a command make the secret of a webhook, or take that of a file, and print it. what says of which
// webhook it is.
func tellsSecret(
	env *cli.Env, cmd *cobra.Command, what string,
	ask func(ctx context.Context, server *client.Client, arg, secret string) (api.Webhook, error),
) {
	var file string
	var asJSON bool
	cmd.RunE = cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
		secret, err := secretIn(file)
		if err != nil {
			return err
		}
		made, err := ask(ctx, server, args[0], secret)
		return cli.Show(env, made, err, asJSON, func(w api.Webhook) error {
			env.Note("%s %s; this is its secret:", what, ui.Printable(w.ID))
			env.Out.Line("%s", ui.Printable(w.Secret))
			return nil
		})
	})
	cmd.Flags().StringVar(&file, "secret-file", "", "the file of the secret by which requests are signed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the webhook with its secret as a JSON object")
}

// secretIn returns the secret in a file; "" without one.
func secretIn(file string) (secret string, err error) {
	if file == "" {
		return "", nil
	}
	if secret, err = cli.ReadSmall(file); err != nil {
		return "", fault.Wrap(fault.Input, err, "the secret in %q can't be read", file)
	}
	return secret, nil
}

func rotateCommand(env *cli.Env) *cobra.Command {
	var asked api.WebhookRotation
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give a webhook another secret and print it: it can't be read again",
		Long: `Give a webhook another secret, which the server makes, or which --secret-file has. Until the
grace is over each request has a signature by the one before, too: the receiver takes either.`,
		Example: "  aod webhook rotate 0198c0de-… >hook.secret\n" +
			"  aod webhook rotate 0198c0de-… --grace 0 >hook.secret",
		Args:              cli.Exactly(1, "the id of a webhook"),
		ValidArgsFunction: complete.First(env, idsOf(env), cobra.ShellCompDirectiveNoFileComp),
	}
	tellsSecret(env, cmd, "rotated the webhook", func(ctx context.Context, server *client.Client, id, secret string) (
		api.Webhook, error,
	) {
		asked.Secret = secret
		return server.Webhooks.Rotate(ctx, id, asked)
	})
	cmd.Flags().StringVar(&asked.Grace, "grace", "1h", "how long the one before signs along; 0 ends it at once")
	return cmd
}

func listCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the webhooks of a server, and how they fare",
		Long:    "List the webhooks of a server, the newest first, with what became of what they told.",
		Example: "  aod webhook ls\n  aod webhook ls --json | jq -r 'select(.state != \"active\").id'",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, _ []string) error {
			titles := []string{"ID", "URL", "OF", "STATE", "DELIVERED", "WAITING", "LOST", "LAST TRY"}
			return cli.Table(env, server.Webhooks.List(ctx), asJSON, "there are no webhooks", titles,
				func(w api.Webhook) []string {
					return []string{
						w.ID, w.URL, ofText(w), stateText(w), fmt.Sprint(w.Deliveries.Delivered),
						fmt.Sprint(w.Deliveries.Waiting), fmt.Sprint(w.Deliveries.Lost), lastText(w),
					}
				})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a webhook")
	return cmd
}

// ofText says of what a webhook tells.
func ofText(w api.Webhook) string {
	of := "its team"
	switch {
	case w.Run != "":
		of = "run " + w.Run
	case w.OwnOnly:
		of = "token " + w.By
	}
	if len(w.Events) < len(api.WebhookEvents()) {
		of += ": " + strings.Join(w.Events, ", ")
	}
	return of
}

// stateText is a webhook's state, with the reason for which it was given up.
func stateText(w api.Webhook) string {
	if w.State == api.WebhookGivenUp {
		return "given up: " + string(w.Reason)
	}
	return string(w.State)
}

// lastText says what became of the last try.
func lastText(w api.Webhook) string {
	if w.TriedAt == nil {
		return ""
	}
	return outcomeText(w.Outcome, w.Status) + ", " + ui.Age(time.Since(*w.TriedAt)) + " ago"
}

func outcomeText(outcome string, status int) string {
	if status == 0 {
		return outcome
	}
	return fmt.Sprintf("%s (%d)", outcome, status)
}

func testCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test ID",
		Short: "Have the server make a request to a receiver now",
		Long: `Have the server tell the receiver of an event webhook.test now, and print what came of it:
delivered, refused with the status of the answer, barred by its address, unanswered. The exit
code is 1 unless it was delivered. What the answer says beside its status isn't read.`,
		Example: "  aod webhook test 0198c0de-…",
		Args:    cli.Exactly(1, "the id of a webhook"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			came, err := server.Webhooks.Test(ctx, args[0])
			if err != nil {
				return err
			}
			failed := came.Outcome != "delivered"
			return cli.Judge(env, came, failed, asJSON, func() {
				env.Out.Line("%s after %d ms", ui.Printable(outcomeText(came.Outcome, came.Status)), came.MS)
			})
		}),
		ValidArgsFunction: complete.First(env, idsOf(env), cobra.ShellCompDirectiveNoFileComp),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as a JSON object")
	return cmd
}

func removeCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "rm ID...",
		Short:   "Remove webhooks: their receivers are told nothing more",
		Example: "  aod webhook rm 0198c0de-…",
		Args:    cli.Between(1, 1000, "ids of webhooks"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			for _, id := range args {
				if err := server.Webhooks.Delete(ctx, id); err != nil {
					return err
				}
				env.Note("%s is removed", ui.Printable(id))
			}
			return nil
		}),
		ValidArgsFunction: complete.First(env, idsOf(env), cobra.ShellCompDirectiveNoFileComp),
	}
}

// idsOf completes the ids of a server's webhooks.
func idsOf(env *cli.Env) func(context.Context, []string, string) []cobra.Completion {
	return func(ctx context.Context, _ []string, _ string) []cobra.Completion {
		server, err := env.Connect()
		if err != nil {
			return nil
		}
		var ids []cobra.Completion
		for w, err := range server.Webhooks.List(ctx) {
			if err != nil {
				break
			}
			ids = append(ids, cobra.CompletionWithDesc(w.ID, ui.Cell(cmp.Or(w.URL, "-"))))
		}
		return ids
	}
}
