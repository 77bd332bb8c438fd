// Package backup writes the home of a server to a file while the server works, and makes a
// home of such a file again.
//
//	Write    a snapshot of the store, then the files of its runs, and all units
//	Restore  a backup, unpacked and checked beside a home, takes its place
//
// A backup comes from anywhere: its names, links, sizes and digests are checked as hostile.
// It must not know how runs are led, HTTP or engines.
//
// Its Go API may change with every release: see docs/stability.md.
package backup
