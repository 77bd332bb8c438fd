// Package a2a serves units to clients of the Agent2Agent protocol, 1.0 and 0.3: every unit is an agent, and a task of
// it is a run.
//
// The main path, in call order:
//
//	New                  makes a Server of a Service
//	Server.ServeHTTP     finds the agent, the binding and the version of a request
//	binding              looks at what the SDK doesn't: type, size, envelope, parameters
//	handler              does the method
//	messages             have a message become a run, an answer, or something that a run is told
//	tasks                show a run as a task: a taskProjection of its events
//	answer               holds what is written until it is known whether it is an error
//	refusal              is an error as JSON-RPC, HTTP and gRPC write it
//
// Cards are served by ServeHTTP itself, gRPC by Server.ServeGRPC.
//
// It imports the protocol's SDK. It knows the orchestrator by the Service that it declares, and of tokens what whoever
// mounts it tells. It must not know Echo.
//
// Server.serveCall (server.go) has the binding look before the SDK does. taskProjection.follow (projection.go) goes on
// with a task; deliveries.deliver (deliveries.go) notes that an answer was sent. Server.RenderPush (server.go) goes on
// from the event that it told last.
//
// Its Go API may change with every release: see docs/stability.md.
package a2a
