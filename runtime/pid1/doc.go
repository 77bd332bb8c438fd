// Package pid1 is PID 1 of every sandbox container, in any Linux image. The program cmd/aod-init
// is nothing else; aod is it as well where no aod-init is embedded (see runtime/initbin):
//
//	/run/aod/init [-stdin FILE] [-stdout FILE] [-control SOCKET | -park SOCKET] [-watch calls]
//	    [-find only] [-end lines] -- PROGRAM ARGS...
//
// It starts the program in a process group of its own, passes signals on to that group,
// reaps orphans, and when the program ends it kills whatever is left, writes
// initreport.Path and exits as the program did: with its code, or 128+n on signal n.
// Where that file isn't empty at the start the container ran before, and nothing runs.
// Without a start it exits 127 (not found), 126 (not executable) or 125 (wrong usage).
//
// With -control it connects to its host before the program exists, says initreport.Ready
// and, when everything else is dead, the report, so that nobody needs to wait for the
// engine to notice; it stays until the host closes the connection, or for a second. A host that
// isn't there, or doesn't listen, changes nothing. With
// -park the program waits for the host's initbin.StartMessage as well: a signal ends the
// wait with 128+n, the end of the connection with 125 and a report that says abandoned.
//
// With -watch the report says as well how often the program tried to write to a file or to
// listen, where the kernel can tell.
//
// With -end it ends its own stdout and stderr with a line each that the report names, when everything
// else is dead: who reads them knows that nothing follows.
//
// With -find it looks the program up, and ends instead of starting it.
//
// Meanwhile it joins connections to 127.0.0.1:7070 to the capsule API's socket, for
// programs that know HTTP over TCP only.
//
// It runs as the capsule's own unprivileged user under the capsule's own limits, so it
// must stay alive where the capsule has used up every process and every byte; what
// that takes is in threads.go and relay.go. It calls nothing of fmt, encoding/json or
// net, which keeps aod-init at 1.6 MB on disk, about 2.5 MB resident, however busy it is, and
// 14 threads at most, which count against the container's process limit.
//
// Main path: Main (pid1.go) -> begin (report.go) -> dialControl (control.go) -> prepare
// (threads.go) -> park (park.go) -> start (child.go) -> forward (signals.go), serve
// (relay.go) -> wait, killRest (child.go) -> usage (usage.go) -> write (report.go), send,
// endStreams (endlines.go), awaitDismissal.
//
// Its Go API may change with every release: see docs/stability.md.
package pid1
