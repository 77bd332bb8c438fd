// Package queue decides which run may run next.
//
// A Queue has the slots of machines: of the server itself, and of those that work for it. A run enters it and gets a
// Permit, which is first its place in the queue of its unit and then its slot, of one machine. Slots go to the teams in
// turn, within a team to the units in turn, and within a unit first come, first served, so that who is busy doesn't
// starve the others. A team or a token may have Bounds. A Yield gives the slot of a run to others while the run waits
// for its calls; it comes back on the same machine.
//
// It must not know what a run is: no store, no engine, no record. It imports fault only.
//
// Its Go API may change with every release: see docs/stability.md.
package queue
