// Package agents serves the agent HTTP contract: every unit is an agent, and its name a
// task type. Its wire is that of package agenthttp, which also calls agents elsewhere.
//
// The main path, in call order:
//
//	Handler      routes a request, and answers what goes wrong in the contract's words
//	begin        reads the task, finds its unit, holds it against the policy, submits a run
//	sync         waits for the run and answers with its outcome
//	stream       tells of the run as it goes on; whatever happens, the last event is terminal
//
// It knows the orchestrator by the Service it declares, and nothing of tokens, origins and
// the access log: those belong to the server that mounts it.
//
// Its Go API may change with every release: see docs/stability.md.
package agents
