// Package remote carries out runs of agents elsewhere, which speak the agent HTTP contract or the A2A protocol. It
// needs no engine.
//
//	Agents.Execution   what makes the attempts of one run
//	execution.Attempt  one request of the contract, whose id is the run's
//	classify           what the answer means, or that there is none
//	remoteTask.poll    one task of the A2A protocol, which the next process goes on with
//	remoteTask.result  what its end means
//
// execution.call, execution.ask (attempt.go) store `running` and make the one request of the attempt; execution.Resume
// (attempt.go) can't ask again, since nobody knows whether the agent did the task. clients.dialUploaded (uploaded.go)
// checks the address that an uploaded unit's agent is connected at.
//
// A task of A2A survives this process: `running` comes before the message, and remoteTask.observe (remotetask.go)
// stores the task's id before it waits. remoteTask.follow (remotetask.go) reads its updates, answers.answer
// (answers.go) asks people and stores the answer before it is sent, taskEnd.of (taskend.go) decides what the end means.
//
// It must not know containers, the store or how runs are queued.
//
// Its Go API may change with every release: see docs/stability.md.
package remote
