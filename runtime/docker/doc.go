// Package docker implements runtime.Engine over the API of a Docker engine, from
// API 1.41 (engine 20.10) to today's. It is the only package that knows the Docker
// client: none of the client's types leave it.
//
// What a container may do is decided in one pure function, createRequest. Everything
// that the engine refuses becomes a *fault.Error in one place, faultOf.
//
// The calls of one run, each a single round trip over a kept connection:
//
//	Create -> Attach -> NextExit -> Start -> Inspect -> Remove
//	NextExit -> Inspect -> Logs -> Inspect -> Remove, where another process began it
//
// Where this process runs in a container of the engine's itself, Create puts the host's
// paths in the place of ours, see hostpath.go.
//
// The package must not know what a capsule or a run is.
//
// Its Go API may change with every release: see docs/stability.md.
package docker
