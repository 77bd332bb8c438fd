package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/handoff/relay"
)

func (a *app) mcpCallCommand() *cobra.Command {
	var flags inputFlags
	cmd := &cobra.Command{
		Use:   "call DIR|UNIT [TOOL]",
		Short: "Call a tool of a sealed MCP server, or list its tools",
		Long: `Start the server of a unit with kind: mcp in a sandbox, call one of its tools and print the
result. The server is gone after that. Without a tool its tools are listed. The exit code is 1
where the tool fails.`,
		Example: "  aod mcp call ./memory\n  aod mcp call ./memory search_nodes --set query=ferry",
		Args:    between(1, 2, "a directory or the name of a unit, and a tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.mcpCall(cmd.Context(), args[0], strings.Join(args[1:], ""), flags)
		},
	}
	cmd.Flags().StringVarP(&flags.input, "input", "i", "", "the arguments: a JSON object, @FILE, or - for stdin")
	cmd.Flags().StringArrayVarP(&flags.set, "set", "s", nil,
		"set an argument, typed by the tool's schema: `key=value`; may be repeated")
	return cmd
}

func (a *app) mcpCall(ctx context.Context, name, tool string, flags inputFlags) error {
	c, rules, err := a.mcpUnit(name)
	if err != nil {
		return err
	}
	rules.Idle = 0
	client, session := relay.NewClient(rules)
	asked := make(chan error, 1)
	go func() {
		defer session.End(relay.ErrClientLeft)
		asked <- a.askServer(ctx, client, tool, flags)
	}()
	if err := a.talk(ctx, c, session); err != nil {
		return err
	}
	return <-asked
}

// askServer lists the tools of a server, or calls one.
func (a *app) askServer(ctx context.Context, client *relay.Client, tool string, flags inputFlags) error {
	if err := client.Open(ctx); err != nil {
		return err
	}
	tools, err := client.Tools(ctx)
	if err != nil {
		return err
	}
	if tool == "" {
		return a.showTools(tools)
	}
	i := slices.IndexFunc(tools, func(t relay.Tool) bool { return t.Name == tool })
	if i < 0 {
		return fault.New(fault.NotFound, "the server has no tool %q", tool).
			WithHint("it has %s", strings.Join(toolNames(tools), ", "))
	}
	arguments, err := flags.arguments(a, tools[i].InputSchema)
	if err != nil {
		return err
	}
	result, err := client.Call(ctx, tool, arguments)
	if err != nil {
		return err
	}
	return a.showResult(result)
}

// arguments reads the arguments of a tool, typed by its schema where that can be read.
func (f *inputFlags) arguments(a *app, schema json.RawMessage) (json.RawMessage, error) {
	compiled, _ := contract.Compile(schema)
	if compiled == nil {
		compiled, _ = contract.Compile([]byte(`{"type":"object"}`))
	}
	payload, _, err := f.read(compiled, a.stdin)
	return payload.JSON(), err
}

func toolNames(tools []relay.Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}

func (a *app) showTools(tools []relay.Tool) error {
	table := newTable(a.stdout, "TOOL", "DESCRIPTION")
	for _, t := range tools {
		about, _, _ := strings.Cut(t.Description, "\n")
		row(table, t.Name, about)
	}
	return table.Flush()
}

// showResult prints what a tool said: its structured content, else its texts, else all of it.
func (a *app) showResult(raw json.RawMessage) error {
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
		a.stderr.line("%s %s", a.stderr.style(red, "the tool failed:"), printable(strings.Join(texts, "\n")))
		return exitFindings
	case len(result.Structured) > 0 && string(result.Structured) != "null":
		return a.stdout.json(result.Structured)
	case len(texts) == len(result.Content) && len(texts) > 0:
		whole := strings.Join(texts, "\n")
		if a.stdout.terminal { // which a server must not steer
			lines := strings.Split(whole, "\n")
			for i, line := range lines {
				lines[i] = printable(line)
			}
			whole = strings.Join(lines, "\n")
		}
		_, err := fmt.Fprintln(a.stdout, whole)
		return err
	}
	return a.stdout.json(raw)
}
