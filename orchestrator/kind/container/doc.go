// Package container carries out runs in sandboxes: capsules and Agentic Units, which differ
// by their program.
//
// An attempt, in call order:
//
//	Containers.Execution   what makes the attempts of one run
//	execution.Attempt      a new attempt, or one of a dead process
//	open                   the container: the one that is there, a warm one, or a new one
//	ensureImage            the image of the unit's content
//	attempt.wait           the end of the program, or of its time
//	classify               what the end means
//	collect                reads, validates and delivers what the program left
//	execution.Settle       what is still to come; a container that may serve another run
//	execution.Remove       removes what the engine has of the run
//
// It must not know Docker, HTTP routes, the store or how runs are queued.
//
// Its Go API may change with every release: see docs/stability.md.
package container
