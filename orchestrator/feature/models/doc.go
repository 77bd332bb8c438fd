// Package models has what one run asks of models: what that may take and takes, what is told
// of it, and what is kept of the questions and the answers.
//
//	New               makes the Account of a run
//	Account.Open      lets the run spend; Account.Restore does, after an earlier process
//	Account.Mounts    are the addresses at which the run asks, by the gateway
//	books.Reserve     sets aside and stores what a request can take, before it is forwarded
//	hold.Settle       stores what it took
//	recorder.Record   tells of a call that is over, and has the transcript keep it
//	Account.Note      puts what was spent into the record of the run
//	Account.Close     ends it
//
// ReadCalls and ReadExchange read what a run's directory has, also after its end. A Cache has
// answers for the runs of all units that want them again.
//
// It must not know providers and their keys, who leads a run, or its queue.
//
// Its Go API may change with every release: see docs/stability.md.
package models
