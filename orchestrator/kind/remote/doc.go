// Package remote carries out runs of agents elsewhere, which speak the agent HTTP contract.
// It needs no engine.
//
//	Agents.Execution   what makes the attempts of one run
//	execution.Attempt  one request, whose id is the run's
//	classify           what the answer means, or that there is none
//
// It must not know containers, the store or how runs are queued.
package remote
