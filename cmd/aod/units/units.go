// Package units is `aod units`: the units of a server, and their versions. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package units

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/mcp"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// servedTools are the names of the tools of a server's unit.
func servedTools(ctx context.Context, server *client.Client, name string) ([]string, error) {
	raw, err := server.Units.Card(ctx, name)
	if err != nil {
		return nil, err
	}
	var card struct {
		Tools []relay.Tool `json:"tools"`
	}
	if err := json.Unmarshal(raw, &card); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the tools of %q can't be read", name)
	}
	return mcp.ToolNames(card.Tools), nil
}

// Command is `aod units`.
func Command(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "units [NAME]",
		Short:   "List what a server can run, or show one unit with its contract",
		Example: "  aod units\n  aod units hello --json | jq .input_schema",
		Args:    cli.AtMostOne("the name of a unit, or nothing"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			if len(args) == 1 {
				return Show(ctx, env, server, args[0], asJSON)
			}
			return listUnits(ctx, env, server, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a unit")
	cmd.AddCommand(
		switchCommand(env, "disable", "Switch a unit of a server off, so that its further runs are refused",
			client.Units.Disable),
		switchCommand(env, "enable", "Switch a unit of a server on again", client.Units.Enable),
		versionsCommand(env), rollbackCommand(env), removeCommand(env),
	)
	return cmd
}

// switchCommand switches a unit off or on.
func switchCommand(env *cli.Env,
	verb, short string, do func(client.Units, context.Context, string) (api.Unit, error),
) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " NAME",
		Short:   short,
		Long:    short + ".\nRuns that go on or wait are not touched. The server remembers it.",
		Example: "  aod units " + verb + " hello",
		Args:    cli.Exactly(1, "the name of a unit"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			unit, err := do(server.Units, ctx, args[0])
			if err == nil {
				env.Note("%s is %sd", ui.Printable(unit.Name), verb)
			}
			return err
		}),
	}
}

func listUnits(ctx context.Context, env *cli.Env, server *client.Client, asJSON bool) error {
	units, err := server.Units.List(ctx)
	if err != nil {
		return err
	}
	titles := []string{"NAME", "KIND", "VERSION", "SOURCE", "TIMEOUT", "MEMORY", "NETWORK", "PROBLEM", "DESCRIPTION"}
	return cli.Table(env, cli.All(units), asJSON, "", titles, func(unit api.Unit) []string {
		var holds api.UnitPolicy
		if unit.Policy != nil {
			holds = *unit.Policy
		}
		return []string{
			unit.Name, unit.Kind, ui.Short(unit.Version), unit.Source,
			holds.Timeout, sizeText(holds.MemoryBytes), holds.Network, problemText(unit), unit.Description,
		}
	})
}

func problemText(unit api.Unit) string {
	switch {
	case unit.Disabled:
		return "it is switched off"
	case unit.Problem != nil:
		return unit.Problem.Message
	case unit.Policy != nil && unit.Policy.Refusal != nil:
		return unit.Policy.Refusal.Message
	}
	return ""
}

// Show prints one unit of a server.
func Show(ctx context.Context, env *cli.Env, server *client.Client, name string, asJSON bool) error {
	unit, err := server.Units.Get(ctx, name)
	if err != nil {
		return err
	}
	if asJSON {
		return env.Out.JSON(unit)
	}
	unitPage(env, unit)
	if unit.Kind != capsule.KindMCP {
		return nil
	}
	tools, err := servedTools(ctx, server, name)
	if err == nil {
		ui.Page{Out: env.Out}.Field("tools", strings.Join(tools, ", "))
	}
	return err
}

// policyPage shows what holds for a unit's runs.
func policyPage(page ui.Page, p api.UnitPolicy) {
	timeout := p.Timeout
	if p.MaxTimeout != p.Timeout {
		timeout += ", at most " + p.MaxTimeout
	}
	page.Field("timeout", timeout)
	if p.Network != "" {
		page.Field("limits", fmt.Sprintf("memory %s, cpus %v, pids %d, output %s", sizeText(p.MemoryBytes), p.CPUs,
			p.PIDs, sizeText(p.OutputBytes)))
		root := "read-only"
		if !p.ReadOnly {
			root = "writable"
		}
		page.Field("sandbox", ui.Joined("network "+p.Network, "root "+root, p.Runtime))
		page.Field("reaches", strings.Join(p.Egress, ", "))
		if p.Reuse > 1 {
			page.Field("reuse", ui.Plural(p.Reuse, "run")+" a container")
		}
		if p.Warm > 0 {
			page.Field("warm", ui.Plural(p.Warm, "container"))
		}
	}
	page.Field("retries", fmt.Sprint(p.Retries))
	page.Field("may call", strings.Join(p.MayCall, ", "))
	page.Field("models", strings.Join(p.Models, ", "))
	page.Field("env", strings.Join(p.Env, ", "))
	for _, l := range p.Lowered {
		page.Field("lowered", fmt.Sprintf("%s: %s asked for, %s by %s", l.Setting, l.Asked, l.Holds, l.Rule))
	}
	if p.Refusal != nil {
		page.Field("refused", p.Refusal.Message)
		page.Field("", p.Refusal.Hint)
	}
}

func sizeText(n int64) string {
	if n == 0 {
		return ""
	}
	return quantity.SizeText(n)
}

// agentPage shows how a wrapped agent is called.
func agentPage(page ui.Page, a api.UnitAgent) {
	page.Field("agent", ui.Joined(a.Mode, a.Type, a.Protocol))
	page.Field("command", strings.Join(a.Command, " "))
	if p := a.Program; p != nil && p.Found {
		page.Field("program", "it is in its image")
	} else if p != nil {
		page.Field("program", p.Problem)
		page.Field("", p.Hint)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Flags)) {
		page.Field("flag", fmt.Sprintf("%s: %v", name, a.Flags[name]))
	}
	page.Field("files", ui.Joined(a.InputFile, a.OutputFile))
	page.Field("starts in", a.Dir)
	page.Field("variables", strings.Join(a.Env, ", "))
	page.Field("callers set", strings.Join(a.CallerEnv, ", "))
	page.Field("permits", a.Approval)
	page.Field("approvers", strings.Join(a.Approvers, ", "))
	if s := a.Session; s != nil && s.KeepAlive {
		page.Field("sessions", "one process for all turns, idle for "+s.Idle)
	} else if s != nil {
		page.Field("sessions", "a container a turn")
	}
}

// latelyText says how the last runs of a unit ended: "98 of the last 100 runs succeeded, half of them took up to 1.2s".
func latelyText(l api.Lately) string {
	text := fmt.Sprintf("%d of the last %s succeeded", l.Succeeded, ui.Plural(l.Runs, "run"))
	if l.P50 > 0 {
		took := func(ms float64) time.Duration { return ui.RoundTime(time.Duration(ms * float64(time.Millisecond))) }
		text += fmt.Sprintf(", half of them took up to %s, 95 %% up to %s", took(l.P50), took(l.P95))
	}
	return text
}

func unitPage(env *cli.Env, unit api.Unit) {
	page := ui.Page{Out: env.Out}
	page.Field("unit", ui.Joined(unit.Name, unit.Kind, ui.Short(unit.Version)))
	page.Field("about", unit.Description)
	page.Field("source", ui.Joined(unit.Source, unit.Origin))
	page.Field("by", unit.By)
	page.Field("image", unit.Image)
	page.Field("access", unit.Access)
	if unit.Disabled {
		page.Field("disabled", "its runs are refused: aod units enable "+unit.Name)
	}
	if s := unit.Status; s != nil {
		page.Field("now", fmt.Sprintf("%d running, %d waiting", s.Running, s.Waiting))
		if s.Sessions > 0 {
			page.Field("open", ui.Plural(s.Sessions, "session"))
		}
		if s.Next != nil {
			page.Field("next run", ui.Joined(ui.Time(s.Next.At), "by "+s.Next.Schedule))
		}
		if s.Lately != nil {
			page.Field("lately", latelyText(*s.Lately))
		}
		if s.LastRun != nil {
			page.Field("last run", ui.Joined(s.LastRun.ID, string(s.LastRun.State.Status()), string(s.LastRun.Outcome)))
		}
	}
	if unit.Agent != nil {
		agentPage(page, *unit.Agent)
	}
	if unit.Concurrency > 0 {
		page.Field("at once", ui.Plural(unit.Concurrency, "run"))
	}
	if unit.Since != nil {
		page.Field("since", ui.Time(*unit.Since))
	}
	if unit.Policy != nil {
		policyPage(page, *unit.Policy)
	}
	page.Field("called by", strings.Join(unit.CalledBy, ", "))
	if problem := unit.Problem; problem != nil {
		page.Field("problem", problem.Message+", so that an older version is run")
		page.Field("", problem.Hint)
		env.Out.Findings(problem.Findings)
	}
	for _, side := range []struct {
		name   string
		schema json.RawMessage
	}{{"input", unit.InputSchema}, {"output", unit.OutputSchema}} {
		page.Field(side.name, string(side.schema))
	}
}
