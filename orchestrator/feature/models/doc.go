// Package models has what one run asks of models: what that may take and takes, what is told of it, and what is kept of
// the questions and the answers.
//
//	New                  makes the Feature, which gives each run an account
//	account.Open         lets the run spend; account.restore does, after an earlier process
//	account.Mounts       are the addresses at which the run asks, by the gateway
//	ledgerStore.Reserve  sets aside and stores what a request can take, before it is forwarded
//	hold.Settle          stores what it took
//	listener.Listen      has followers hear an answer as it comes
//	recorder.Record      tells of a call that is over, and has the transcript keep it
//	account.Conclude     puts what was spent into the record of the run
//	account.Close        ends it
//
// ReadCalls and ReadExchange read what a run's directory has, also after its end. A Cache has answers for the runs of
// all units that want them again.
//
// ledgerStore.Reserve (ledger.go) stores before the request, hold.Settle (ledger.go) after it; after a restart
// account.restore (restore.go) charges in full what wasn't settled.
//
// It must not know providers and their keys, who leads a run, or its queue.
//
// Its Go API may change with every release: see docs/stability.md.
package models
