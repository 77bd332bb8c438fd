// Package orchestrator leads runs from their acceptance until they are cleaned up: states, queue, retries, recovery and
// the tree of calls. The kinds of unit carry the runs out. One loop does so for a Service, which outlives its process,
// and for Local, which does not.
//
// The life of a run, in call order:
//
//	Service.Submit, Local.Run  check the request; nothing is started for a wrong one
//	loop.accept                gives the run a place in the queue and stores it
//	job.drive                  leads the run through its states, in one goroutine
//	job.runToOutcome           makes attempts, and stores the outcome
//	job.tryOnce                waits for a slot, and lets the kind make one attempt
//	job.finalise               removes everything of the run that isn't kept
//
// Service.Start calls recover for each run that an earlier process did not finish.
//
// Rooms beside the loop have what it needs of one thing each: queue, turns, inputs, outputs, spool, keys,
// runlog, metrics, and below feature models, schedules and pushes. Others are fields of a Service, for those
// who ask it: Runs, Feed, Files and Flows of records, Sessions, Questions, Units, Figures, Retention, Resends.
//
// A request ends with its connection, a run with its outcome. A submission that is sent again because its answer was
// lost has a key of its digest (keys); until the answer was sent, Resends.WasTold knows it.
//
// It must not know Docker, the kinds, HTTP or a terminal.
//
// Its Go API may change with every release: see docs/stability.md.
package orchestrator
