// Package runlog keeps what the program of a run writes to stdout and stderr: a file in the run's
// directory, a JSON object a line.
//
//	File.Add   appends an entry
//	File.Seen  counts what an earlier process kept of an attempt
//	Tail       reads a file that may be growing
//	LastWords  what a run that failed wrote last
//
// It must not know how a run is led, nor who reads.
//
// Its Go API may change with every release: see docs/stability.md.
package runlog
