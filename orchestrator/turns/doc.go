// Package turns has the sessions of wrapped agents that aren't over: whose turn it is, and
// which containers may live on between the turns.
//
// The life of a session, in call order:
//
//	Registry.Begin    takes a new one in, Registry.Restore one of an earlier process
//	Session.Admit     puts a run behind the turns before it
//	Session.Await     waits until its turn has come, and there is room for the container
//	Session.Keep      notes what a turn saved
//	Session.Leave     lets the next turn begin, or the container wait for one
//	Session.Close     stores that there is no further turn, and ends what is left
//
// It must not know how a run is led, the kinds of unit, or who asks for a session.
//
// Its Go API may change with every release: see docs/stability.md.
package turns
