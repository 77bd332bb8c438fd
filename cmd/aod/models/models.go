// Package models is `aod models`: which models units can ask for. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package models

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/secrets"
)

// Command is `aod models`.
func Command(env *cli.Env) *cobra.Command {
	var flags runflags.Models
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "models",
		Short: "Show the models that units can ask for",
		Long: `Show the models that units can ask for by name: those of the server, or with --models those
of a file. DIALECTS are the ways to ask, those in brackets by translation; USE are the providers in
the order in which they are tried, unless cheapest: or race: stands before them, and prices are those
of a million tokens. CONTEXT is what the model can read and LONGEST its longest answer, in tokens; IMAGES
says whether agents show it those that their tools return. Keys are never shown, but what is wrong with
them.`,
		Example: "  aod models\n  aod models --models models.yaml\n  aod models --json | jq '.[].name'",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			models, err := knownModels(cmd.Context(), env, flags)
			return cli.Show(env, models, err, asJSON, func(models []api.Model) error { return modelTable(env, models) })
		},
	}
	cmd.Flags().StringVar(&flags.File, "models", "", "a YAML file with providers and models, instead of a server")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func knownModels(ctx context.Context, env *cli.Env, flags runflags.Models) ([]api.Model, error) {
	if flags.File == "" {
		server, err := env.Connect()
		if env.Server == "" && fault.Is(err, fault.Unavailable) {
			return nil, fault.Wrap(fault.Unavailable, err, "no server runs on the data directory %q", env.Data).
				WithHint("name a file with --models, or a server with --server URL; aod run names a provider by " +
					"OPENAI_API_KEY or ANTHROPIC_API_KEY alone")
		}
		if err != nil {
			return nil, err
		}
		return server.Models.List(ctx)
	}
	known, err := flags.Catalog(secrets.Files{Dir: filepath.Join(env.Data, "secrets")})
	if err != nil {
		return nil, err
	}
	gw, err := gateway.New(known.Catalog, gateway.Options{Key: known.Key})
	if err != nil {
		return nil, err
	}
	defer gw.Close()
	return gw.Models(), nil
}

func modelTable(env *cli.Env, models []api.Model) error {
	if len(models) == 0 {
		env.Out.Line("there are no models: write providers and models in the server's file, see docs/models.md")
		return nil
	}
	table := ui.NewTable(env.Out, "MODEL", "DIALECTS", "USE", "INPUT", "OUTPUT", "CONTEXT", "LONGEST", "IMAGES",
		"PROBLEM")
	for _, m := range models {
		input, output, context, images := "-", "-", "-", "-"
		if m.Price != nil {
			input, output = m.Price.Input.String(), m.Price.Output.String()
		}
		if m.Context > 0 {
			context = fmt.Sprint(m.Context)
		}
		if m.Images {
			images = "yes"
		}
		dialects := strings.Join(m.Dialects, ",")
		if len(m.Translated) > 0 {
			dialects += " (" + strings.Join(m.Translated, ",") + ")"
		}
		ui.Row(table, m.Name, dialects, useText(m), input, output, context, fmt.Sprint(m.MaxOutput), images, m.Problem)
	}
	return table.Flush()
}

// useText names the providers, and how they are asked if not one after the other as listed.
func useText(m api.Model) string {
	use := strings.Join(m.Use, ",")
	if m.Order == "" || m.Order == string(catalog.Listed) {
		return use
	}
	return m.Order + ":" + use
}
