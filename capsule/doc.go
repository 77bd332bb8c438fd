// Package capsule reads what a capsule is: a directory with a Dockerfile, agent.yaml, tools.yaml, schema.json, a bridge
// and its logic. It knows no engine and runs nothing.
//
// A directory comes from anybody. Every file is bounded, must be a regular file and is never reached through a link,
// and nothing that stands in one is trusted.
//
// The main path, in call order:
//
//	Load (load.go)             every problem of the directory at once, or a Capsule
//	Capsule.Context (context.go)  what is sent to the builder, and its digest
//	Context.WriteTar (context.go) the same bytes for the same content, always
//	Capsule.Cases (cases.go)      tests/*.json
//
// The contract itself (schema.json) lives in the package contract below, what compares cases with results in cases,
// templates of capsules in scaffold.
//
// A wrapped agent's command and output are Capsule.AgentCall, Capsule.ReadAgentOutput (agentcall.go). fetches
// (dockerfilefetch.go) lists what a Dockerfile fetches by itself.
//
// Its Go API may change with every release: see docs/stability.md.
package capsule
