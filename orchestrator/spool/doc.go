// Package spool receives the files of a submission before its run exists.
//
//	New              makes an empty spool, in a directory of its own
//	Spool.Add        receives a file, while there is room for it
//	Spool.AddProject receives the project that the run works on
//	Spool.Inputs     are the files as a run takes them, Spool.Project what stores its project
//	Spool.Remove     removes what no run took
//
// It must not know who submits, what the files are for, or how a run is made.
//
// Its Go API may change with every release: see docs/stability.md.
package spool
