package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/handoff/relay"
)

func callCommand(env *cli.Env) *cobra.Command {
	var flags callFlags
	cmd := &cobra.Command{
		Use:   "call DIR|UNIT [TOOL]",
		Short: "Call a tool of a sealed MCP server, or list its tools",
		Long: `Start the server of a unit with kind: mcp in a sandbox, call one of its tools and print the
result. The server is gone after that. Without a tool its tools are listed. The exit code is 1
where the tool fails.`,
		Example: "  aod mcp call ./memory\n  aod mcp call ./memory search_nodes --set query=ferry",
		Args:    cli.Between(1, 2, "a directory or the name of a unit, and a tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return mcpCall(cmd.Context(), env, args[0], strings.Join(args[1:], ""), flags)
		},
	}
	flags.sources.RegisterFiles(cmd.Flags())
	cmd.Flags().StringVarP(&flags.input.Text, "input", "i", "", "the arguments: a JSON object, @FILE, or - for stdin")
	cmd.Flags().StringArrayVarP(&flags.input.Set, "set", "s", nil,
		"set an argument, typed by the tool's schema: `key=value`; may be repeated")
	return cmd
}

type callFlags struct {
	input   runflags.Input
	sources runflags.Sources
}

func mcpCall(ctx context.Context, env *cli.Env, name, tool string, flags callFlags) error {
	server, rules, err := mcpUnit(env, name, flags.sources)
	if err != nil {
		return err
	}
	rules.Idle = 0
	client, session := relay.NewClient(rules)
	asked := make(chan error, 1)
	go func() {
		defer session.End(relay.ErrClientLeft)
		asked <- askServer(ctx, env, client, tool, flags.input)
	}()
	if err := server.talk(ctx, env, session); err != nil {
		return err
	}
	return <-asked
}

// askServer lists the tools of a server, or calls one.
func askServer(ctx context.Context, env *cli.Env, client *relay.Client, tool string, flags runflags.Input) error {
	if err := client.Open(ctx); err != nil {
		return err
	}
	tools, err := client.Tools(ctx)
	if err != nil {
		return err
	}
	if tool == "" {
		return showTools(env, tools)
	}
	i := slices.IndexFunc(tools, func(t relay.Tool) bool { return t.Name == tool })
	if i < 0 {
		return fault.New(fault.NotFound, "the server has no tool %q", tool).
			WithHint("it has %s", strings.Join(ToolNames(tools), ", "))
	}
	arguments, err := flags.Arguments(tools[i].InputSchema, env.In)
	if err != nil {
		return err
	}
	result, err := client.Call(ctx, tool, arguments)
	if err != nil {
		return err
	}
	return showResult(env, result)
}

// ToolNames are the names of tools.
func ToolNames(tools []relay.Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}

func showTools(env *cli.Env, tools []relay.Tool) error {
	table := ui.NewTable(env.Out, "TOOL", "DESCRIPTION")
	for _, t := range tools {
		about, _, _ := strings.Cut(t.Description, "\n")
		ui.Row(table, t.Name, about)
	}
	return table.Flush()
}

// showResult prints what a tool said: its structured content, else its texts, else all of it.
func showResult(env *cli.Env, raw json.RawMessage) error {
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return fault.Wrap(fault.Capsule, err, "the server's result can't be read")
	}
	var texts []string
	for _, c := range result.Content {
		if c.Type == "text" {
			texts = append(texts, c.Text)
		}
	}
	switch {
	case result.IsError:
		env.Err.Line("%s %s", env.Err.Style(ui.Red, "the tool failed:"), ui.Printable(strings.Join(texts, "\n")))
		return ui.ExitFindings
	case len(result.Structured) > 0 && string(result.Structured) != "null":
		return env.Out.JSON(result.Structured)
	case len(texts) == len(result.Content) && len(texts) > 0:
		whole := strings.Join(texts, "\n")
		if env.Out.Terminal { // which a server must not steer
			lines := strings.Split(whole, "\n")
			for i, line := range lines {
				lines[i] = ui.Printable(line)
			}
			whole = strings.Join(lines, "\n")
		}
		_, err := fmt.Fprintln(env.Out, whole)
		return err
	}
	return env.Out.JSON(raw)
}
