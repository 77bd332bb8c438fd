package admin

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// PruneCommand is `aod prune`.
func PruneCommand(env *cli.Env) *cobra.Command {
	var opts api.PruneOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove old runs from a server, with their files, or images",
		Long: `Remove runs that have ended: those older than --older-than, or the oldest ones until no
more than --max-size is left, or both: of those older than that, as many as it takes. Or,
with --images, remove the images that the server built and no unit needs any more, which it
also does by itself from time to time.`,
		Example: "  aod prune --older-than 24h --dry-run\n  aod prune --max-size 1GiB\n" +
			"  aod prune --older-than 0s      every run that has ended\n  aod prune --images",
		Args: cli.Exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := cmd.Flags()
			if opts.Images && (flags.Changed("older-than") || flags.Changed("max-size")) {
				return fault.New(fault.Input,
					"--images can't stand with --older-than or --max-size, which are for runs").
					WithHint("prune runs and images one after the other")
			}
			if !opts.Images && !flags.Changed("older-than") && !flags.Changed("max-size") || opts.OlderThan < 0 {
				return fault.New(fault.Input,
					"say which runs to remove, with --older-than or --max-size; or which images, with --images").
					WithHint("`aod prune --older-than 0s --dry-run` lists every run that has ended")
			}
			return prune(cmd.Context(), env, opts, asJSON)
		},
	}
	cmd.Flags().DurationVar(&opts.OlderThan, "older-than", 0, "runs that ended longer ago, e.g. 24h")
	cmd.Flags().Var((*sizeFlag)(&opts.MaxBytes), "max-size", "leave at most so much, e.g. 1GiB")
	cmd.Flags().BoolVar(&opts.Images, "images", false, "instead of runs: images that no unit needs")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only say what would go")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the figures as JSON")
	return cmd
}

func prune(ctx context.Context, env *cli.Env, opts api.PruneOptions, asJSON bool) error {
	server, err := env.Connect()
	if err != nil {
		return err
	}
	report, err := server.Prune(ctx, opts)
	if err != nil {
		return err
	}
	if asJSON {
		return env.Out.JSON(report)
	}
	verb := "removed"
	if report.DryRun {
		verb = "would remove"
	}
	if report.Images != nil {
		env.Out.Line("%s %s", verb, ui.Plural(*report.Images, "image"))
		return nil
	}
	sessions := ""
	if report.Sessions > 0 {
		sessions = ", " + ui.Plural(int(report.Sessions), "closed session")
	}
	env.Out.Line("%s %s, %s%s", verb, ui.Plural(report.Runs, "run"), ui.Bytes(report.Bytes), sessions)
	return nil
}

// sizeFlag is a number of bytes as a person writes it: 512MiB, 1.5g, 100000.
type sizeFlag int64

var sizeRule = lazyregexp.New(`^([0-9]{1,15}(?:\.[0-9]{1,9})?) ?(?:([kmgt])(?:i?b)?|b)?$`)

// Set parses the text of a flag.
func (f *sizeFlag) Set(text string) error {
	parts := sizeRule().FindStringSubmatch(strings.ToLower(text))
	if parts == nil {
		return fmt.Errorf("%q is not a size: write one such as 512MiB or 2GiB", text)
	}
	number, err := strconv.ParseFloat(parts[1], 64)
	if parts[2] != "" {
		number *= math.Pow(1024, float64(strings.Index("kmgt", parts[2])+1))
	}
	if err != nil || number < 1 || number > 1<<60 {
		return fmt.Errorf("%q is out of range: at least 1 byte, at most 1048576 TiB", text)
	}
	*f = sizeFlag(number)
	return nil
}

// String is the value in bytes; "" is none.
func (f *sizeFlag) String() string {
	if *f == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*f), 10)
}

// Type is the type's name in a help text.
func (*sizeFlag) Type() string { return "size" }
