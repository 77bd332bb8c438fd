// Package initreport is the report that the sandbox's init leaves behind: how the main program
// ended and what the container used. It also has the paths, words and limits on which the init
// and its host must agree.
//
// The init (runtime/pid1) fills a Report and calls Append. The host reads it with initbin.ParseReport, from
// the file or from the connection. The package must not import encoding/json, fmt and the like:
// everything that it imports becomes part of every sandbox's PID 1.
//
// Its Go API may change with every release: see docs/stability.md.
package initreport
