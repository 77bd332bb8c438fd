// Package container carries out runs in sandboxes: capsules, Agentic Units, MCP servers and wrapped agents, which
// differ by their program (program.go).
//
// An attempt, in call order:
//
//	Containers.Execution   what makes the attempts of one run
//	execution.Attempt      a new attempt, or one of a dead process
//	execution.open         the container: the one that is there, a warm one, or a new one
//	imageBuilder.ensure    the image of the unit's content
//	attempt.wait           the end of the program, or of its time
//	execution.classify     what the end means
//	collector.takeResult   reads, validates and delivers what the program left
//	execution.Settle       what is still to come; a container that may serve another run
//	execution.Remove       removes what the engine has of the run
//
// An Agentic Unit is a filter: cards.of (card.go) asks for its model card once an image. An MCP server's run is a
// session, which ends with the container and the container with it or this process; meanwhile it has no slot:
// attempt.lending (mcpserver.go). A wrapped agent gets its message, stdin and files from wrappedAgent.prepare
// (wrapped.go). A shell is shell (program.go), with a console.
//
// It must not know Docker, HTTP routes, the store or how runs are queued.
//
// Its Go API may change with every release: see docs/stability.md.
package container
