package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/config"
)

// Exactly accepts that many arguments, and names them if there are more or fewer.
func Exactly(n int, what string) cobra.PositionalArgs { return Between(n, n, what) }

// Between accepts from least to most arguments.
func Between(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		return fault.New(fault.Input, "%s takes %s", cmd.CommandPath(), what).
			WithHint("see %s --help", cmd.CommandPath())
	}
}

// AtMostOne accepts one argument or none.
func AtMostOne(what string) cobra.PositionalArgs { return Between(0, 1, what) }

// AddSettings adds the flags of the server's settings to a command. --data and --units
// belong to the root command.
func AddSettings(cmd *cobra.Command) {
	cmd.Flags().String("config", "", "a YAML file of settings (AOD_CONFIG)")
	config.Flags(cmd.Flags(), "data", "units")
}

// LoadConfig reads the settings for a command with their flags.
func LoadConfig(cmd *cobra.Command) (*config.Config, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, fmt.Errorf("read flags: %w", err)
	}
	return config.Load(config.Options{File: file, Flags: cmd.Flags(), Getenv: os.Getenv, Data: DefaultData()})
}

// tellsErrors marks a command.
const tellsErrors = "tells errors as JSON"

// TellErrors has a command whose --json prints one document print its error as one, where there is nothing else.
func TellErrors(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{tellsErrors: ""}
	return cmd
}

// TellsErrors reports whether the call of a command wants its error as JSON.
func TellsErrors(cmd *cobra.Command) bool {
	_, tells := cmd.Annotations[tellsErrors]
	asJSON, err := cmd.Flags().GetBool("json")
	return tells && err == nil && asJSON
}

// KnownCommand refuses the rest of a command line that names no command.
func KnownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fault.New(fault.Input, "there is no command %q", args[0]).WithHint("see %s --help", cmd.CommandPath())
	if known := cmd.SuggestionsFor(args[0]); len(known) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(known, " or "))
	}
	return err
}

// LogJSON is the log_format of a log whose lines are JSON objects.
const LogJSON = "json"

// NewLogger returns a logger to w, at the level that config has checked. It gets ids, sizes
// and times.
func NewLogger(w io.Writer, format, level string) *slog.Logger {
	opts := &slog.HandlerOptions{}
	var l slog.Level
	if l.UnmarshalText([]byte(level)) == nil {
		opts.Level = l
	}
	if format == LogJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
