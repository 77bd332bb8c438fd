package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
)

// mcpClients are the clients whose configuration is known, by what its servers are called.
var mcpClients = map[string]string{"claude": "mcpServers", "cursor": "mcpServers", "vscode": "servers"}

func (a *app) mcpConfigCommand() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "config claude|cursor|vscode",
		Short: "Print what to write into a client's configuration",
		Long: `Print what to write into the configuration of an MCP client, so that it starts aod mcp with the
same flags.`,
		Example: "  aod mcp config claude --units ~/capsules\n  aod mcp config vscode --server http://127.0.0.1:7070 " +
			"> .vscode/mcp.json",
		Args: exactly(1, "the name of a client: claude, cursor or vscode"),
		RunE: func(_ *cobra.Command, args []string) error { return a.mcpConfig(args[0], flags) },
	}
	flags.register(cmd)
	return cmd
}

// mcpStarts is how a client starts a server.
type mcpStarts struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func (a *app) mcpConfig(client string, flags mcpFlags) error {
	key, known := mcpClients[client]
	if !known {
		return fault.New(fault.Input, "there is no client %q here", client).WithHint("write claude, cursor or vscode")
	}
	program, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the path of this program is not known")
	}
	starts := mcpStarts{Command: program}
	if starts.Args, err = a.mcpArgs(flags); err != nil {
		return err
	}
	if client == "vscode" {
		starts.Type = "stdio"
	}
	return a.stdout.json(map[string]map[string]mcpStarts{key: {"aod": starts}})
}

// mcpArgs are the arguments of aod mcp: the client starts it somewhere else.
func (a *app) mcpArgs(flags mcpFlags) ([]string, error) {
	opts, err := flags.options()
	if err != nil {
		return nil, err
	}
	args := []string{"mcp"}
	paths := [][2]string{{"--files", opts.Files}, {"--out", opts.Out}}
	for _, units := range a.units {
		paths = append(paths, [2]string{"--units", units})
	}
	if a.data != defaultData() {
		paths = append(paths, [2]string{"--data", a.data})
	}
	paths = append(paths, [2]string{"--token-file", a.tokenFile})
	for _, p := range paths {
		whole, err := wholePath(p[1])
		if err != nil {
			return nil, err
		}
		if whole != "" {
			args = append(args, p[0], whole)
		}
	}
	if a.server != "" {
		args = append(args, "--server", a.server)
	}
	for _, unit := range flags.units {
		args = append(args, "--unit", unit)
	}
	return args, nil
}
