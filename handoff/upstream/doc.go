// Package upstream passes requests of a run on to services whose keys stay outside: an operator names them, a run asks
// them at /upstream/NAME/ of the capsule API.
//
// The main path, in call order:
//
//	Read              the operator's table, each finding with its line
//	Upstreams.Handler one handler a run: its Session says who asks, and which it may ask
//	handler.admit     name, method and path are on the lists, or it is a Refusal
//	cleanPath         no path leads out of the service's own
//	request           the caller's credentials stay behind, the key comes in
//	forward           one exchange: bodies stream both ways, no redirect is followed
//	guarded           the key never comes back
//
// Every refusal is a problem that names a rule, the upstream and what to do. Paths, queries, headers, bodies and keys
// are in no log, event or metric.
//
// guarded.Read (guarded.go) ends an answer that holds the key.
//
// The package knows nothing of runs, of the store and of who made its sessions.
//
// Its Go API may change with every release: see docs/stability.md.
package upstream
