// Package turns has the sessions of wrapped agents: for clients as Sessions, and for who leads their
// turns those that aren't over, whose turn it is, and which containers may live on between the turns.
//
// The life of a session, in call order:
//
//	Sessions.Create   begins a new one, Sessions.Restore takes in those of an earlier process
//	Sessions.Choose   finds it, and its unit in the version with which it stays
//	Session.Admit     puts a run behind the turns before it, Registry.Attach makes it a Turn
//	Turn.Await        waits until its turn has come, and there is room for the container
//	Turn.Commit       stores what a turn leaves, in one transaction with its run
//	Turn.Leave        lets the next turn begin, or the container wait for one
//	Sessions.Close    stores that there is no further turn, and ends what is left
//
// It must not know how a run is led, the kinds of unit, or HTTP.
//
// Its Go API may change with every release: see docs/stability.md.
package turns
