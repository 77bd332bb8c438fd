// Package agent is what a wrapped CLI agent is: how its program is called, how its output is read, and the protocols
// that it may speak on its pipes. It works on texts and streams alone, and knows neither sandboxes nor runs.
//
//	Config       `agent` of agent.yaml, and what stands beside it
//	Check        what is wrong with it
//	Command      the arguments of a run, of the templates and the values
//	ReadOutput   what the program's output says, by JSON pointers
//	Dialog       a talk in one of the protocols: turns, each with a prompt and a reply
//
// A dialog reads its program's stdout by messages, has a speaker say what each means, and keeps a State before it acts
// on one. A new process goes on from any State that was kept: it reads stdout again from where the pending request was
// made, and acts on what is behind the offset.
//
// For units that live on: turn.lead (turn.go) reads messages, a speaker per protocol (acp.go, streamjson.go,
// plainrpc.go) gives their meaning.
//
// Its Go API may change with every release: see docs/stability.md.
package agent
