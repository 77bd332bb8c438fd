package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
)

func (a *app) modelsCommand() *cobra.Command {
	var flags modelFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "models",
		Short: "Show the models that units can ask for",
		Long: `Show the models that units can ask for by name: those of the server, or with --models those
of a file. DIALECTS are the ways to ask, USE the providers in the order in which they are tried,
and prices are those of a million tokens. Keys are never shown, but what is wrong with them.`,
		Example: "  aod models\n  aod models --models models.yaml\n  aod models --json | jq '.[].name'",
		Args:    exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			models, err := a.knownModels(cmd.Context(), flags)
			return shown(a, models, err, asJSON, a.modelTable)
		},
	}
	cmd.Flags().StringVar(&flags.given, "models", "", "a YAML file with providers and models, instead of a server")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func (a *app) knownModels(ctx context.Context, flags modelFlags) ([]api.Model, error) {
	if flags.given == "" {
		server, err := a.connect()
		if a.server == "" && fault.Is(err, fault.Unavailable) {
			return nil, fault.Wrap(fault.Unavailable, err, "no server runs on the data directory %q", a.data).
				WithHint("name a file with --models, or a server with --server URL; aod run names a provider by " +
					"OPENAI_API_KEY or ANTHROPIC_API_KEY alone")
		}
		if err != nil {
			return nil, err
		}
		return server.Models(ctx)
	}
	known, key, err := flags.catalog(a, nil)
	if err != nil {
		return nil, err
	}
	gw, err := gateway.New(known, gateway.Options{Key: key})
	if err != nil {
		return nil, err
	}
	defer gw.Close()
	return gw.Models(), nil
}

func (a *app) modelTable(models []api.Model) error {
	if len(models) == 0 {
		a.stdout.line("there are no models: write providers and models in the server's file, see docs/models.md")
		return nil
	}
	table := newTable(a.stdout, "MODEL", "DIALECTS", "USE", "INPUT", "OUTPUT", "LONGEST", "PROBLEM")
	for _, m := range models {
		input, output := "-", "-"
		if m.Price != nil {
			input, output = m.Price.Input.String(), m.Price.Output.String()
		}
		row(table, m.Name, strings.Join(m.Dialects, ","), strings.Join(m.Use, ","), input, output,
			fmt.Sprint(m.MaxOutput), m.Problem)
	}
	return table.Flush()
}

// showModels prints the model calls of a run, or one of them whole.
func (a *app) showModels(ctx context.Context, id string, n int64, asJSON bool) error {
	_, server, err := a.past(id)
	if err != nil {
		return err
	}
	dir := a.history().Dir(id)
	calls := func() ([]api.ModelCall, error) { return models.ReadCalls(dir) }
	exchange := func() (api.ModelExchange, error) { return models.ReadExchange(dir, n) }
	if server != nil {
		calls = func() ([]api.ModelCall, error) { return server.ModelCalls(ctx, id) }
		exchange = func() (api.ModelExchange, error) { return server.ModelExchange(ctx, id, n) }
	}
	if n != 0 {
		one, err := exchange()
		return shown(a, one, err, true, nil)
	}
	list, err := calls()
	return shown(a, list, err, asJSON, a.callTable)
}

func (a *app) callTable(calls []api.ModelCall) error {
	if len(calls) == 0 {
		return fault.New(fault.NotFound, "the run asked no model")
	}
	table := newTable(a.stdout, "N", "MODEL", "BY", "STATUS", "INPUT", "OUTPUT", "COST", "TIME")
	var total api.ModelUsage
	for _, c := range calls {
		row(table, callCells(c)...)
		total.Add(c)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	a.stdout.line("%s", usageText(total))
	return nil
}

func callCells(c api.ModelCall) []string {
	by := c.Provider
	if c.Source != "provider" && c.Source != "" {
		by = c.Source
	}
	status := fmt.Sprint(c.Status)
	if c.Rule != "" {
		status += " " + c.Rule
	}
	took := roundTime(time.Duration(c.MS * float64(time.Millisecond)))
	return []string{
		fmt.Sprint(c.N), c.Model, by, status, fmt.Sprint(c.Tokens.Input), fmt.Sprint(c.Tokens.Output),
		costText(c.Cost, c.Estimated), took.String(),
	}
}

func costText(c api.Cost, estimated bool) string {
	switch {
	case c == 0:
		return "-"
	case estimated:
		return "~" + c.String()
	}
	return c.String()
}

// usageText tells what was spent on models: "5 model calls, 12.4k tokens, 0.021".
func usageText(u api.ModelUsage) string {
	parts := []string{plural(int(u.Calls), "model call"), tokensText(u.Charged)}
	if u.Cost > 0 {
		parts = append(parts, u.Cost.String())
	}
	return strings.Join(parts, ", ")
}

func tokensText(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM tokens", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%.1fk tokens", float64(n)/1e3)
	}
	return plural(int(n), "token")
}

// modelsText tells what a run spent on models, and all that it called.
func modelsText(u *api.ModelUsage) string {
	if u == nil {
		return ""
	}
	text := usageText(*u)
	if u.Tree != nil {
		text += "; with its calls " + tokensText(u.Tree.Charged)
		if u.Tree.Cost > 0 {
			text += ", " + u.Tree.Cost.String()
		}
	}
	return text
}
