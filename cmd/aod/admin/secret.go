package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/audit"
)

// SecretCommand is `aod secret`.
func SecretCommand(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Keep the secrets that units and settings name",
		Long: `Keep secrets: the keys of providers of models, of agents elsewhere and of other services, which
units and settings name. Each is a file of mode 600 in the directory of the setting secrets,
read when it is needed: a change counts at once. Nothing prints one.`,
		Example: "  aod secret set OPENAI_API_KEY <key.txt\n  aod secret ls\n  aod secret rm OPENAI_API_KEY",
		Args:    cli.Exactly(0, "set, ls or rm"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().String("config", "", "a YAML file of settings (AOD_CONFIG)")
	cmd.AddCommand(secretSetCommand(env), secretListCommand(env), secretRemoveCommand(env))
	return cmd
}

// keptSecrets are the secrets in the directory of the setting.
func keptSecrets(cmd *cobra.Command) (secrets.Files, error) {
	c, err := cli.LoadConfig(cmd)
	if err != nil {
		return secrets.Files{}, err
	}
	return secrets.Files{Dir: c.Secrets}, nil
}

func secretSetCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "set NAME",
		Short:   "Keep what comes on stdin as a secret, also in place of one of that name",
		Example: "  aod secret set OPENAI_API_KEY <key.txt\n  pass show openai | aod secret set OPENAI_API_KEY",
		Args:    cli.Exactly(1, "a name for the secret"),
		RunE: func(cmd *cobra.Command, args []string) error {
			kept, err := keptSecrets(cmd)
			if err != nil {
				return err
			}
			value, err := secretInput(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			if err := kept.Set(args[0], value); err != nil {
				return err
			}
			if err := audit.Leave(env.Home(), "set", "secret", args[0], ""); err != nil {
				return err
			}
			env.Note("%s is kept in %s", ui.Printable(args[0]), kept.Dir)
			return nil
		},
	}
}

// listedSecret is a secret, as it is listed.
type listedSecret struct {
	Name    string    `json:"name"`
	Changed time.Time `json:"changed"`
	Problem string    `json:"problem,omitempty"`
}

// secretInput is stdin, or a line of a terminal, which doesn't show it.
func secretInput(ctx context.Context, env *cli.Env, name string) (io.Reader, error) {
	if !env.StdinIsTerminal() {
		return env.In, nil
	}
	terminal := int(env.In.(*os.File).Fd()) //nolint:forcetypeassert // a terminal is a file
	before, err := term.GetState(terminal)
	if err != nil {
		return nil, unreadable(err)
	}
	_, _ = fmt.Fprintf(env.Err, "value of %s, which isn't shown: ", ui.Printable(name))
	defer func() { _, _ = fmt.Fprintln(env.Err) }()
	type typed struct {
		line []byte
		err  error
	}
	read := make(chan typed, 1)
	go func() { // after ctx's end it reads on, and goes with the process
		line, err := term.ReadPassword(terminal)
		read <- typed{line, err}
	}()
	select {
	case in := <-read:
		if in.err != nil {
			return nil, unreadable(in.err)
		}
		return bytes.NewReader(in.line), nil
	case <-ctx.Done():
		return nil, errors.Join(fault.New(fault.Cancelled, "no secret was kept"),
			term.Restore(terminal, before))
	}
}

func unreadable(err error) error {
	return fault.Wrap(fault.Input, err, "the terminal can't be read").
		WithHint("give the secret on stdin: `aod secret set NAME <FILE`")
}

func secretListCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the names of the secrets",
		Example: "  aod secret ls",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			kept, err := keptSecrets(cmd)
			if err != nil {
				return err
			}
			all, err := kept.List()
			if err != nil {
				return err
			}
			secrets := make([]listedSecret, len(all))
			for i, one := range all {
				secrets[i] = listedSecret{Name: one.Name, Changed: one.Changed}
				if one.Problem != nil {
					secrets[i].Problem = one.Problem.Msg
				}
			}
			return cli.Table(env, cli.All(secrets), asJSON, "", []string{"NAME", "CHANGED", "PROBLEM"},
				func(s listedSecret) []string { return []string{s.Name, ui.Time(s.Changed), s.Problem} })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a secret")
	return cmd
}

func secretRemoveCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Short:   "Remove a secret",
		Example: "  aod secret rm OPENAI_API_KEY",
		Args:    cli.Exactly(1, "the name of a secret"),
		RunE: func(cmd *cobra.Command, args []string) error {
			kept, err := keptSecrets(cmd)
			if err != nil {
				return err
			}
			if err := kept.Remove(args[0]); err != nil {
				return err
			}
			if err := audit.Leave(env.Home(), "remove", "secret", args[0], ""); err != nil {
				return err
			}
			env.Note("%s is removed", ui.Printable(args[0]))
			return nil
		},
	}
}
