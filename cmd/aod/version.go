package main

import (
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/cmd/aod/cli"
)

// version is set by the linker for a release.
var version = ""

func versionCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.Exactly(0, "nothing"),
		RunE: func(*cobra.Command, []string) error {
			env.Out.Line("aod %s (%s, %s/%s)", versionText(), goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
			return nil
		},
	}
}

// versionText falls back to the module version and the commit that the Go toolchain
// recorded.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
