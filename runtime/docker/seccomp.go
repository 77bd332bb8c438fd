package docker

import (
	_ "embed" // the profile
	"strings"
)

// seccompProfile says which system calls a sandbox may use: those of today's engines for a
// container without capabilities, but for deniedCalls and deniedRequests. Older engines allow more
// by themselves, such as io_uring. seccomp_test.go makes the file (UPDATE_GOLDEN=1) and holds it.
//
//go:embed seccomp.json
var seccompProfile string

// securityOptions are the options of every sandbox. Without a profile of ours the engine takes
// its own.
func securityOptions(profile bool) []string {
	options := []string{"no-new-privileges"}
	if profile {
		options = append(options, "seccomp="+seccompProfile)
	}
	return options
}

// takesNoProfile reports whether a container was refused for its profile: Podman takes the
// name of a file on its own machine.
func takesNoProfile(err error) bool {
	return err != nil && strings.Contains(err.Error(), "seccomp profile")
}
