// Package flow carries out runs of flows: it walks their graphs, and every node that runs a unit is a child run. It
// needs no engine.
//
//	Flows.Execution      what makes the one attempt of a run
//	execution.walk       package flow's walk over the steps that are kept
//	host.Call            a node's run, joined by its key where it was begun before
//	files                the bytes of the files in a state, by their digests
//	execution.result     what the end of the walk means
//
// Each step is stored before the next begins; files (files.go) links the files of a state, by digest, into the run's
// own. While nothing but a question is open, the walk ends with a run.Asks: the run takes no slot and no memory, and
// Resume walks again.
//
// It must not know containers, the store or how runs are queued.
//
// Its Go API may change with every release: see docs/stability.md.
package flow
