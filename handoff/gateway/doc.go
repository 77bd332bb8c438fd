// Package gateway passes requests of a run for a model on to a provider: without a key in the
// capsule, within bounds that hold for a whole tree of runs, and without letting a provider
// reach further than the capsule may.
//
// The main path, in call order:
//
//	Gateway.Handler    one handler a run: its Session says who asks and what it may
//	handler.post       a body, read strictly and bounded in memory across all runs
//	call.prepare       model, dialect, sealed fields, the cap of the answer
//	target.translate   the request for providers that don't speak its dialect
//	call.answer        the chain: a stored, replayed or cached answer, or one of a provider
//	providers.ask      its bound and its pace, then Ledger.Reserve: the worst that it can cost
//	providers.first    the providers in their order, or two of them at once (race.go)
//	attempt.open       one attempt: key, forward; again, or the next provider
//	providers.relay    the events of a stream, as they came, and their usage beside them
//	bill.settle        Ledger.Settle: what was really spent
//	Turn, Recorder     the run's slot back, and what is kept of the call
//
// A provider that speaks the request's dialect comes first. For it bodies stay bytes: a few named
// fields at the top are edited, everything else goes on as it came. For others package translate
// says it in theirs, and all rules hold for that again. Every error has a rule, a hint and the
// envelope of the asker's dialect; what a provider says to a bad key is never shown.
//
// The package knows nothing of the store, of runs, of handoffs and of who made its sessions.
// Its Go API may change with every release: see docs/stability.md.
package gateway
