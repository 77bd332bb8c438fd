package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
)

// showModels prints the model calls of a run, or one of them whole.
func showModels(ctx context.Context, env *cli.Env, id string, n int64, asJSON bool) error {
	_, server, err := runlist.Find(env, id)
	if err != nil {
		return err
	}
	dir := runlist.History(env).Dir(id)
	calls := func() ([]api.ModelCall, error) { return models.ReadCalls(dir) }
	exchange := func() (api.ModelExchange, error) { return models.ReadExchange(dir, n) }
	if server != nil {
		calls = func() ([]api.ModelCall, error) { return server.Models.Calls(ctx, id) }
		exchange = func() (api.ModelExchange, error) { return server.Models.Exchange(ctx, id, n) }
	}
	if n != 0 {
		one, err := exchange()
		return cli.Show(env, one, err, true, nil)
	}
	list, err := calls()
	return cli.Show(env, list, err, asJSON, func(calls []api.ModelCall) error { return callTable(env, calls) })
}

func callTable(env *cli.Env, calls []api.ModelCall) error {
	if len(calls) == 0 {
		return fault.New(fault.NotFound, "the run asked no model").
			WithHint("`aod runs ID` shows what is known of a run")
	}
	table := ui.NewTable(env.Out, "N", "MODEL", "BY", "STATUS", "INPUT", "OUTPUT", "COST", "TIME")
	var total api.ModelUsage
	for _, c := range calls {
		ui.Row(table, callCells(c)...)
		total.Add(c)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	env.Out.Line("%s", ui.ModelUsage(total))
	return nil
}

func callCells(c api.ModelCall) []string {
	by := c.Provider
	if c.Source != "provider" && c.Source != "" {
		by = c.Source
	}
	if c.Raced != "" {
		by += " before " + c.Raced
	}
	status := fmt.Sprint(c.Status)
	if c.Rule != "" {
		status += " " + c.Rule
	}
	took := ui.RoundTime(time.Duration(c.MS * float64(time.Millisecond)))
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

// modelsText tells what a run spent on models, and all that it called.
func modelsText(u *api.ModelUsage) string {
	if u == nil {
		return ""
	}
	text := ui.ModelUsage(*u)
	if u.Tree != nil {
		text += "; with its calls " + ui.Tokens(u.Tree.Charged)
		if u.Tree.Cost > 0 {
			text += ", " + u.Tree.Cost.String()
		}
	}
	return text
}
