// Command aod-init is PID 1 of every sandbox container, in any Linux image:
//
//	/run/aod/init -- PROGRAM ARGS...
//
// It starts the program in a process group of its own, passes signals on to that group,
// reaps orphans, and when the program ends it kills whatever is left, writes
// initreport.Path and exits as the program did: with its code, or 128+n on signal n.
// Where that file isn't empty at the start the container ran before, and nothing runs.
// Without a start it exits 127 (not found), 126 (not executable) or 125 (wrong usage).
//
// Meanwhile it joins connections to 127.0.0.1:7070 to the capsule API's socket, for
// programs that know HTTP over TCP only.
//
// It runs as the capsule's own unprivileged user under the capsule's own limits, so it
// must stay alive where the capsule has used up every process and every byte; what
// that takes is in threads.go and relay.go. It calls nothing of fmt, encoding/json or
// net, which keeps it at 1.6 MB on disk, about 2.5 MB resident, however busy it is, and
// 10 threads at most, which count against the container's process limit.
//
// Main path: main (main.go) -> begin (report.go) -> prepare (threads.go) -> start
// (child.go) -> forward (signals.go), serve (relay.go) -> wait, killRest (child.go) ->
// usage (usage.go) -> write (report.go).
package main
