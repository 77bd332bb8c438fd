// Package remote carries out runs of agents elsewhere, which speak the agent HTTP contract or the A2A protocol.
// It needs no engine.
//
//	Agents.Execution   what makes the attempts of one run
//	execution.Attempt  one request of the contract, whose id is the run's
//	classify           what the answer means, or that there is none
//	errand.lead        one task of the A2A protocol, which the next process goes on with
//	errand.result      what its end means
//
// It must not know containers, the store or how runs are queued.
//
// Its Go API may change with every release: see docs/stability.md.
package remote
