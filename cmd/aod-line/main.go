// Command aod-line runs in the sandboxes of an engine that doesn't see the orchestrator's files:
// see package line. It is a program of its own, so that PID 1 stays as small as it is.
package main

import (
	"os"

	"github.com/agent-on-demand/aod/runtime/line"
)

func main() { os.Exit(line.Main()) }
