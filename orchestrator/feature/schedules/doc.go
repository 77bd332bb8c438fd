// Package schedules starts runs at the times of schedules, each once.
//
//	Scheduler.Put        stores a schedule, when its times, its unit and its files are in order
//	Scheduler.KeepTimes  the loop over the clock: looks at each schedule when it is due
//	Scheduler.keepUp     which times have come, and which of them have a run
//	Scheduler.occur      what becomes of one while an earlier run goes on
//	Scheduler.start      has the Host start the run of an occurrence
//	Scheduler.Leave      the end of a run lets the next occurrence begin that waits
//
// What came while no process looked is found as what came since the last look: Restore takes the
// stored schedules in again.
//
// It must not know how runs are made, queued or led, nor HTTP: a Host leads them.
//
// Its Go API may change with every release: see docs/stability.md.
package schedules
