// Package fault names the ways in which AOD can fail and says, in one table,
// what each of them means to the outside: an exit code, an HTTP status, a title.
//
// What goes wrong inside a capsule is not a fault. It is an outcome of a run and
// stands in the run's record. A fault means that AOD could not do its job, or was
// asked for something that it refuses.
//
// Error.Msg, Error.Hint and Error.Findings may be shown to anybody who may see the
// request. Error.Err is for the operator. An error that is no *Error is Internal.
//
// Its Go API may change with every release: see docs/stability.md.
package fault
