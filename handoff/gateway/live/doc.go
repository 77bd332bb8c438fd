// Package live reads the stream of a model's answer while it comes: for those who want to see its words at once, and
// for one who asked for a plain answer.
//
//	Words.Next    what an event says, in pieces
//	Fields.Next   of arguments that come in pieces, the texts that are fields of their own
//	Answer.Add    gathers an event; Answer.Body is the plain answer then
//
// A provider's events are hostile: what can't be read says nothing, and all that is remembered is bounded.
//
// It must not know HTTP, runs, or who listens.
//
// Its Go API may change with every release: see docs/stability.md.
package live
