// Package initreport is the one message that the sandbox's init program leaves
// behind: how the main program ended and what the container used; and what else both
// sides must agree on: where they meet, what init says first, what a start message takes.
//
// Both sides use it. cmd/aod-init fills a Report and calls Append; the host reads it
// with initbin.ParseReport, from the file or from the connection. The package must stay without encoding/json, fmt and the
// like: all that it imports becomes part of every sandbox's PID 1.
package initreport
