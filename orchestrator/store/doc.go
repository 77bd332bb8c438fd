// Package store is the durable record of runs and their events, in one embedded SQLite
// database. A write for which Insert, Save, Append or Delete has returned nil survives
// kill -9 and a loss of power.
//
// It knows the columns that it searches by. The documents of a run (record, input,
// output, data of an event) are bytes to it, and it must not know what a run is.
//
// The path of a write, in call order:
//
//	Insert, Save, Append, Delete  each a function of a transaction
//	writer.do                     hands it to the one writer, waits for its commit
//	writer.loop                   takes all waiting writes, up to a limit
//	writer.commit                 one transaction, each write in a savepoint of its own
//
// A run may be an occurrence of a schedule: the two are stored in one transaction, and an
// occurrence once.
//
// Reads have connections of their own and wait for no writer.
//
// Several processes may have the same file open: they wait for each other's writes.
// Another package sees to it that only one process leads the runs.
//
// Its Go API may change with every release: see docs/stability.md.
package store
