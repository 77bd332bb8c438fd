// Package swarm has the stack of a server and its workers on Docker Swarm: docs/swarm.md.
//
// Its Go API may change with every release: see docs/stability.md.
package swarm

import _ "embed" // of the stack

// Stack is the file for `docker stack deploy`. The files that it names stand beside it: `aod worker bundle` makes them.
//
//go:embed aod.yml
var Stack string
