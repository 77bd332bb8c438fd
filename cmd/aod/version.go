package main

import (
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker for a release.
var version = ""

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(0, "nothing"),
		RunE: func(*cobra.Command, []string) error {
			a.stdout.line("aod %s (%s, %s/%s)", versionText(), goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
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
