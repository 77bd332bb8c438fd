package main

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/cmd/aod/cli"
)

// version is set by the linker for a release.
var version = ""

// programVersion is what `aod version --json` prints.
type programVersion struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (v programVersion) String() string {
	return fmt.Sprintf("aod %s (%s, %s/%s)", v.Version, v.Go, v.OS, v.Arch)
}

func thisVersion() programVersion {
	return programVersion{versionText(), goruntime.Version(), goruntime.GOOS, goruntime.GOARCH}
}

func versionCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.Exactly(0, "nothing"),
		RunE: func(*cobra.Command, []string) error {
			return cli.Show(env, thisVersion(), nil, asJSON, func(v programVersion) error {
				env.Out.Line("%s", v)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
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
