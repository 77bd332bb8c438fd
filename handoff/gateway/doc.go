// Package gateway passes requests of a run for a model on to a provider: without a key in the
// capsule, within bounds that hold for a whole tree of runs, and without letting a provider
// reach further than the capsule may.
//
// The main path, in call order:
//
//	Gateway.Handler    one handler a run: its Session says who asks and what it may
//	handler.post       a body, read strictly and bounded in memory across all runs
//	call.prepare       model, dialect, sealed fields, the cap of the answer
//	call.answer        the chain: a stored, replayed or cached answer, or one of a provider
//	providers.ask      its bound and its pace, then Ledger.Reserve: the worst that it can cost
//	attempt.open       one attempt: key, forward; again, or the next provider
//	providers.relay    the events of a stream, as they came, and their usage beside them
//	bill.settle        Ledger.Settle: what was really spent
//	Turn, Recorder     the run's slot back, and what is kept of the call
//
// Dialects are passed through, never translated. Bodies stay bytes: a few named fields at
// the top are edited, everything else goes on as it came. Every error has a rule, a hint and
// the envelope of its dialect; what a provider says to a bad key is never shown.
//
// The package knows nothing of the store, of runs, of handoffs and of who made its sessions.
//
// Its Go API may change with every release: see docs/stability.md.
package gateway
