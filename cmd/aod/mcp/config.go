package mcp

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
)

// mcpClients are the clients whose configuration is known, by what its servers are called.
var mcpClients = map[string]string{"claude": "mcpServers", "cursor": "mcpServers", "vscode": "servers"}

func configCommand(env *cli.Env) *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "config claude|cursor|vscode",
		Short: "Print what to write into a client's configuration",
		Long: `Print what to write into the configuration of an MCP client, so that it starts aod mcp with the
same flags.`,
		Example: "  aod mcp config claude --units ~/capsules\n  aod mcp config vscode --server http://127.0.0.1:7070 " +
			"> .vscode/mcp.json",
		Args: cli.Exactly(1, "the name of a client: claude, cursor or vscode"),
		RunE: func(_ *cobra.Command, args []string) error { return mcpConfig(env, args[0], flags) },
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

func mcpConfig(env *cli.Env, client string, flags mcpFlags) error {
	key, known := mcpClients[client]
	if !known {
		return fault.New(fault.Input, "there is no client %q here", client).WithHint("write claude, cursor or vscode")
	}
	program, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the path of this program is not known")
	}
	starts := mcpStarts{Command: program}
	if starts.Args, err = mcpArgs(env, flags); err != nil {
		return err
	}
	if client == "vscode" {
		starts.Type = "stdio"
	}
	return env.Out.JSON(map[string]map[string]mcpStarts{key: {"aod": starts}})
}

// mcpArgs are the arguments of aod mcp: the client starts it somewhere else.
func mcpArgs(env *cli.Env, flags mcpFlags) ([]string, error) {
	opts, err := flags.options()
	if err != nil {
		return nil, err
	}
	args := []string{"mcp"}
	paths := [][2]string{{"--files", opts.Files}, {"--out", opts.Out}}
	for _, units := range env.Units {
		paths = append(paths, [2]string{"--units", units})
	}
	if env.Data != cli.DefaultData() {
		paths = append(paths, [2]string{"--data", env.Data})
	}
	paths = append(paths, [2]string{"--token-file", env.TokenFile})
	for _, p := range paths {
		whole, err := wholePath(p[1])
		if err != nil {
			return nil, err
		}
		if whole != "" {
			args = append(args, p[0], whole)
		}
	}
	if env.Server != "" {
		args = append(args, "--server", env.Server)
	}
	for _, unit := range flags.units {
		args = append(args, "--unit", unit)
	}
	return args, nil
}
