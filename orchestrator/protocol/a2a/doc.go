// Package a2a serves units to clients of the Agent2Agent protocol, 1.0 and 0.3: every unit is
// an agent, and a task of it is a run.
//
// The main path, in call order:
//
//	New                  makes a Server of a Service
//	Server.ServeHTTP     finds the agent, the binding and the version of a request
//	entrance             looks at what the SDK doesn't: type, size, envelope, parameters
//	handler              does the method: a message becomes a run, a run is shown as a task
//	answer               holds what is written until it is known whether it is an error
//	refusal              is an error as JSON-RPC, HTTP and gRPC write it
//
// Cards are served by ServeHTTP itself, gRPC by Server.ServeGRPC.
//
// It imports the protocol's SDK. It knows the orchestrator by the Service that it declares, and
// of tokens what whoever mounts it tells.
//
// Its Go API may change with every release: see docs/stability.md.
package a2a
