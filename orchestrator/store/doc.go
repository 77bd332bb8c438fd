// Package store is the durable record of runs and their events, in one embedded SQLite database. A write whose method
// has returned nil survives kill -9 and a loss of power. A Store has a field for each noun: all of them share its
// connections and its one writer.
//
// It knows the columns that it searches by. The documents of a run (record, input, output, data of an event) are bytes
// to it, and it must not know what a run is.
//
// The path of a write, in call order:
//
//	Runs.Insert, Events.Append, …  each a function of a transaction
//	core.change                    asks for it, and makes a fault of an error
//	writer.do                      hands it to the one writer, waits for its commit
//	writer.loop                    takes all waiting writes, up to a limit
//	writer.commit                  one transaction, each write in a savepoint of its own
//
// A run may be an occurrence of a schedule: the two are stored in one transaction, and an occurrence once. Reads have
// connections of their own and wait for no writer.
//
// Several processes may have the same file open, and wait for each other's writes; one alone leads the runs.
//
// Runs.Changed (list.go) lists runs by their last change, as they were when its first page was read: nextChange
// (change.go) numbers them as they are stored. Triggers write the Feed, the last change of each thing. Store.Health
// (store.go) remembers a damaged file.
//
// Its Go API may change with every release: see docs/stability.md.
package store
