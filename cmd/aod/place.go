package main

import (
	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
)

// place says how a command that asks no server takes one that is named.
type place int

const (
	anywhere place = iota // it asks the server
	// atHome works on what a server has beside this command, or in its stead: another server that is
	// named, also by AOD_SERVER, is another place.
	atHome
	// here is about this program, its machine or files that are named: AOD_SERVER is no matter,
	// --server is a mistake.
	here
	// either asks the server that is named, and else works on what the one of this machine has.
	either
)

// places are those of the commands, and of all that are below one.
var places = map[string]place{
	"token":  either,
	"secret": atHome, "config": atHome, "config reload": anywhere, "backup": atHome, "restore": atHome,
	"build": atHome, "test": atHome, "shell": atHome, "au": atHome, "agent check": atHome,
	"init": here, "validate": here, "flow schema": here, "check-agent": here, "doctor": here, "serve": here,
	"version": here, "work": here, "worker bundle": here,
}

func placeOf(cmd *cobra.Command) place {
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		if at, known := places[pathOf(cmd)]; known {
			return at
		}
	}
	return anywhere
}

// pathOf is the name of a command below the root: "token add".
func pathOf(cmd *cobra.Command) string {
	name := cmd.Name()
	for cmd = cmd.Parent(); cmd != nil && cmd.HasParent(); cmd = cmd.Parent() {
		name = cmd.Name() + " " + name
	}
	return name
}

// checkPlace refuses to do on this machine what is asked of a server elsewhere. The server of the
// data directory is here; and --data says more than AOD_SERVER.
func checkPlace(cmd *cobra.Command, env *cli.Env) error {
	byFlag := cmd.Flags().Changed("server")
	switch at := placeOf(cmd); {
	case env.Server == "", at == anywhere, at == here && !byFlag:
		return nil
	case !byFlag && cmd.Flags().Changed("data"):
		env.Server = ""
		return nil
	case at == either && !cmd.Flags().Changed("data"):
		return nil
	}
	if own, err := env.LocalServer(); err == nil && cli.SameServer(own, env.Server) {
		return nil
	}
	return fault.New(fault.Input,
		"%s works on this machine, and --server or AOD_SERVER names a server elsewhere: nothing was done",
		cmd.CommandPath()).
		WithHint("for that server, do it on its machine: there, --data names its data directory. To do it here, " +
			"leave out --server and unset AOD_SERVER")
}
