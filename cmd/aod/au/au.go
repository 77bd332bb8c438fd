// Package au is `aod au`: Agentic Units are described, run and checked. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package au

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Command is `aod au`.
func Command(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "au",
		Short: "Run and describe Agentic Units",
		Long: `Agentic Units are programs that read bytes on stdin and print one JSON document.

A unit is named by the directory that holds it, by a program of this machine (./agx-ocr),
by an image (registry/agx-ocr:1), or by its name in a directory of --units.`,
		Args: cli.KnownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(describeCommand(env), runCommand(env), checkCommand(env))
	return cmd
}

func describeCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "describe DIR|PROGRAM|IMAGE|NAME",
		Short: "Print a unit's model card",
		Long: `Print what a unit says of itself with --describe.

It is asked in its sandbox, once for each version, and what it says is checked. --json
prints the card as the unit did.`,
		Example: `  aod au describe ./agx-ocr
  aod au describe ./examples/au/ocr --json | jq .config`,
		Args: cli.Exactly(1, "one unit"),
		RunE: func(cmd *cobra.Command, args []string) error { return describeAU(cmd.Context(), env, args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the card as the unit did")
	return cmd
}

func describeAU(ctx context.Context, env *cli.Env, target string, asJSON bool) error {
	c, err := loadAU(env, target)
	if err != nil {
		return err
	}
	return cli.WithLocal(ctx, env, func(l *cli.Local) error {
		view := progress.New(env.Err, c.Name, env.Quiet)
		card, err := l.Containers.Describe(ctx, unit.Of(c), view.Event)
		view.Close()
		if err != nil {
			return err
		}
		if asJSON {
			return env.Out.JSON(card.JSON())
		}
		showCard(env, card)
		return nil
	})
}

// showCard prints a model card for a person.
func showCard(env *cli.Env, card *au.Card) {
	out := env.Out
	out.Line("%s", strings.TrimSpace(out.Style(ui.Bold, ui.Printable(card.Name))+" "+ui.Printable(card.Version)))
	if card.Description != "" {
		out.Line("%s", ui.Printable(card.Description))
	}
	if len(card.Capabilities) > 0 {
		out.Line("can do: %s", ui.Printable(strings.Join(card.Capabilities, ", ")))
	}
	for _, m := range card.Inputs {
		out.Line("takes:  %-20s %s", ui.Printable(m.Type), out.Style(ui.Dim, ui.Printable(m.Description)))
	}
	for _, m := range card.Outputs {
		out.Line("gives:  %-20s %s", ui.Printable(m.Type), out.Style(ui.Dim, ui.Printable(m.Description)))
	}
	for _, p := range card.Config {
		out.Line("  %-20s %-8s %s %s", ui.Printable(flagText(p)), p.Type, parameterDefault(p),
			out.Style(ui.Dim, ui.Printable(p.Description)))
	}
	for _, w := range slices.Concat(card.Odd, card.Warnings) {
		env.Note("%s %s", env.Err.Style(ui.Yellow, "warning:"), ui.Printable(w.String()))
	}
}

// flagText is how a parameter is given.
func flagText(p au.Parameter) string {
	if p.Short != "" && p.Short != p.Name {
		return p.Flag() + ", -" + p.Short
	}
	return p.Flag()
}

func parameterDefault(p au.Parameter) string {
	switch {
	case p.Required:
		return "required"
	case p.Default == nil:
		return "optional"
	}
	return ui.Printable(fmt.Sprintf("default %v", p.Default))
}

type auRunFlags struct {
	stdin, prompt, model string
	env                  []string
	timeout              time.Duration
	maxStdin             string
	secrets              runflags.Secrets
	json                 bool
}

func runCommand(env *cli.Env) *cobra.Command {
	var flags auRunFlags
	cmd := &cobra.Command{
		Use:   "run DIR|PROGRAM|IMAGE|NAME [-- ARGS...]",
		Short: "Run a unit once and print its result",
		Long: `Run a unit once, in a fresh sandbox: no network, nothing to write to but a small tmpfs.

stdin goes to the unit as it is; stdout is its JSON and nothing else; stderr is what it
says there. What follows -- goes to it as arguments, which its model card must know.
Exit codes: 0 success, 1 its general error or a stdout that isn't one JSON document,
2 invalid input or arguments, 3 and up its own, 124 timeout, 125 AOD itself failed.`,
		Example: `  aod au run ./agx-ocr < page.png
  aod au run ./examples/au/ocr --stdin page.png -- --lang deu
  aod au run ./agx-ocr --stdin page.png --prompt "the table" --model-path ~/models/ocr.gguf`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := beforeDash(cmd, args)
			if err != nil {
				return err
			}
			return runAU(cmd.Context(), env, given, args[1:], flags)
		},
	}
	cmd.Flags().StringVar(&flags.stdin, "stdin", "-",
		"the file that the unit reads; - is our own stdin, unless that is a terminal")
	cmd.Flags().StringVar(&flags.prompt, "prompt", "", "what the unit is asked for")
	cmd.Flags().StringVar(&flags.model, "model-path", "", "a model's file or directory, which the unit gets read-only")
	cmd.Flags().StringArrayVar(&flags.env, "env", nil, "an environment variable, NAME=VALUE; may be repeated")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", 0,
		"stop the unit after this time (default: its own limit, or 5m)")
	cmd.Flags().StringVar(&flags.maxStdin, "max-stdin", "",
		"the most that it gets on stdin, such as 200MiB (default 50MiB)")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print the whole run record instead of the result")
	flags.secrets.Register(cmd.Flags())
	return cli.TellErrors(cmd)
}

// beforeDash returns the one argument that isn't the unit's.
func beforeDash(cmd *cobra.Command, args []string) (string, error) {
	ours := len(args)
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		ours = at
	}
	if ours != 1 {
		return "", fault.New(fault.Input, "%s takes one unit", cmd.CommandPath()).
			WithHint("what is for the unit itself follows --")
	}
	return args[0], nil
}

func runAU(ctx context.Context, env *cli.Env, target string, args []string, flags auRunFlags) error {
	c, err := loadAU(env, target)
	if err != nil {
		return err
	}
	req, err := flags.request(c, args, env)
	if err != nil {
		return err
	}
	files, err := flags.secrets.Of(req.Unit) // a unit calls nobody, and asks no model
	if err != nil {
		return err
	}
	return cli.WithUnit(ctx, env, req.Unit, cli.LocalOptions{Secrets: files}, func(l *cli.Local) error {
		dir, err := os.MkdirTemp("", "aod-stdin-")
		if err != nil {
			return cli.NotKept(err, "stdin")
		}
		defer func() { _ = os.RemoveAll(dir) }() // a temporary directory of ours
		stdin, err := receiveStdin(env, flags, filepath.Join(dir, "stdin"))
		if err != nil {
			return err
		}
		if stdin != "" {
			req.Files = []run.InputFile{{Field: "stdin", Path: stdin, Name: "stdin"}}
		}
		return runcmd.RunRequest(ctx, env, l, req, runcmd.Flags{JSON: flags.json})
	})
}

func (f auRunFlags) request(c *capsule.Capsule, args []string, env *cli.Env) (req orchestrator.Request, err error) {
	u := unit.Of(c)
	req = orchestrator.Request{Request: run.Request{Unit: u, Timeout: f.timeout}, Find: lookup.Callees(env, u, c)}
	extra := container.Extra{}
	if extra.StdinBytes, err = f.stdinBytes(); err != nil {
		return req, err
	}
	if extra.ModelPath, err = modelFile(f.model); err != nil {
		return req, err
	}
	if req.Input, err = f.call(args); err != nil {
		return req, err
	}
	req.Extra = extra
	return req, nil
}

// stdinBytes is the largest stdin of a unit.
func (f auRunFlags) stdinBytes() (int64, error) {
	if f.maxStdin == "" {
		return au.DefaultStdinBytes, nil
	}
	limit, err := quantity.ParseSize(f.maxStdin, 1, math.MaxInt64)
	if err != nil {
		return 0, fault.New(fault.Input, "--max-stdin %q is not a size", f.maxStdin).WithHint("write it as 200MiB")
	}
	return limit, nil
}

// call is the unit's input without its stdin.
func (f auRunFlags) call(args []string) (contract.Payload, error) {
	call := map[string]any{}
	if len(args) > 0 {
		call["args"] = args
	}
	if f.prompt != "" {
		call["prompt"] = f.prompt
	}
	env := map[string]string{}
	for _, pair := range f.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return contract.Payload{}, fault.New(fault.Input, "--env %q is not NAME=VALUE", pair)
		}
		env[name] = value
	}
	if len(env) > 0 {
		call["env"] = env
	}
	return contract.NewPayload(call)
}

// receiveStdin stores our own stdin in a file: more than the unit accepts is refused before it
// starts. It returns the file that is read; "" is none.
func receiveStdin(env *cli.Env, flags auRunFlags, name string) (string, error) {
	from := env.In
	if flags.stdin != "-" {
		if info, err := os.Stat(flags.stdin); err != nil || info.Mode().IsRegular() || info.IsDir() {
			return flags.stdin, nil // an error is told when it is read
		}
		file, err := os.Open(flags.stdin) // a device such as /dev/null, or a pipe
		if err != nil {
			return "", fault.Wrap(fault.Input, err, "--stdin %q can't be read", flags.stdin)
		}
		defer file.Close()
		from = file
	} else if env.StdinIsTerminal() {
		return "", nil
	}
	limit, err := flags.stdinBytes()
	if err != nil {
		return "", err
	}
	return name, receive(name, from, limit)
}

func receive(name string, from io.Reader, limit int64) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return cli.NotKept(err, "stdin")
	}
	size, err := io.Copy(file, io.LimitReader(from, limit+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return cli.NotKept(err, "stdin")
	}
	if size > limit {
		return fault.New(fault.Input, "stdin has more than %d bytes, the limit", limit).
			WithHint("raise it with --max-stdin if the unit can take that much")
	}
	return nil
}

func modelFile(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	abs, err := filepath.Abs(name)
	if err == nil {
		_, err = os.Stat(abs)
	}
	if err != nil {
		return "", fault.Wrap(fault.Input, err, "there is no model %q", name).
			WithHint("--model-path names a file or directory of this machine")
	}
	return abs, nil
}
