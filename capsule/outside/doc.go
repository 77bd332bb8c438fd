// Package outside has what units write of the world outside of their sandboxes: lists of hosts, and names of upstreams.
//
// Its Go API may change with every release: see docs/stability.md.
package outside
