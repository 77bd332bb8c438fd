// Package schedules starts runs at the times of schedules, each once.
//
//	Scheduler.Put        stores a schedule, when its times, its unit and its files are in order
//	keeper.run           the loop over the clock: looks at each schedule when it is due
//	keeper.catchUp       which times have come, and which of them have a run
//	keeper.fire          what becomes of one while an earlier run goes on
//	keeper.start         submits the run of an occurrence
//	part.Prepare         the two are stored in one transaction
//	part.Close           the end of a run lets the next occurrence begin that waits
//
// What came while no process looked is found as what came since the last look: Restore takes the stored schedules in
// again.
//
// timetable.evaluateAt (timetable.go) has a heap of schedules by their next time; keeper.run (keeper.go) looks at the
// clock every 30 seconds at least. keeper.catchUp, planned.dueUntil, planned.toBegin (keeper.go) apply the policy for
// missed times, keeper.supplant (occurrence.go) that for overlapping runs. fileStore.keep (files.go) has the files on
// the disk before the row is stored.
//
// It must not know how runs are made, queued or led, nor HTTP.
//
// Its Go API may change with every release: see docs/stability.md.
package schedules
