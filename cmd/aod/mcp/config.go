package mcp

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/bundled"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// mcpClients are the clients whose configuration is known, by what its servers are called.
var mcpClients = map[string]string{
	"claude": "mcpServers", "codex": "mcp_servers", "cursor": "mcpServers", "gemini": "mcpServers", "vscode": "servers",
	"zed": "context_servers",
}

const clientNames = "claude, codex, cursor, gemini, vscode or zed"

func configCommand(env *cli.Env) *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "config claude|codex|cursor|gemini|vscode|zed",
		Short: "Print what to write into a client's configuration",
		Long: `Print what to write into the configuration of an MCP client, so that it starts aod mcp with the
same flags.`,
		Example: "  aod mcp config claude --units ~/capsules\n  aod mcp config vscode --server http://127.0.0.1:7070 " +
			"> .vscode/mcp.json",
		Args: cli.Exactly(1, "the name of a client: "+clientNames),
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
		return fault.New(fault.Input, "there is no client %q here", client).WithHint("write %s", clientNames)
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
	if client == "codex" {
		return startsTOML(env, key, starts)
	}
	return env.Out.JSON(map[string]map[string]mcpStarts{key: {"aod": starts}})
}

// startsTOML prints the table of config.toml. Texts of JSON are texts of TOML.
func startsTOML(env *cli.Env, key string, starts mcpStarts) error {
	program, err := strictjson.Encode(starts.Command)
	if err != nil {
		return err
	}
	args, err := strictjson.Encode(starts.Args)
	if err == nil {
		_, err = fmt.Fprintf(env.Out, "[%s.aod]\ncommand = %s\nargs = %s\n", key, program, args)
	}
	return err
}

// checkUnits refuses directories, units and sources that aren't there: the client would say no more than that its
// server ended.
func checkUnits(env *cli.Env, flags mcpFlags) error {
	var known []string
	for _, place := range env.Units {
		if info, err := os.Stat(place); err != nil || !info.IsDir() {
			return fault.Wrap(fault.Input, err, "--units names no directory: %q", place)
		}
		known = append(known, lookup.Names(place, true)...)
	}
	if flags.code {
		known = append(known, bundled.Code)
	}
	for _, name := range flags.units {
		if len(known) > 0 && !slices.Contains(known, name) {
			return fault.New(fault.Input, "--unit names no unit of --units: %q", name).
				WithHint("the units are %s", strings.Join(known, ", "))
		}
	}
	units, whole := lookup.Units(env.Units)
	_, err := flags.sources.Find(runflags.Beside{Units: units, Whole: whole})
	return err
}

// mcpArgs are the arguments of aod mcp: the client starts it somewhere else.
func mcpArgs(env *cli.Env, flags mcpFlags) ([]string, error) {
	opts, err := flags.options()
	if err == nil {
		err = checkUnits(env, flags)
	}
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
	if flags.code {
		args = append(args, "--code")
	}
	if len(env.Units) == 0 && !flags.code {
		return args, flags.sources.RefuseOnServer()
	}
	sources, err := flags.sources.Args()
	return append(args, sources...), err
}
