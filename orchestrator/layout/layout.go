// Package layout names the files of a server's home: what the loop writes, and a backup holds.
//
// It must not know what is in them.
//
// Its Go API may change with every release: see docs/stability.md.
package layout

// The files of a home.
const (
	Database  = "aod.db"      // the store
	Lock      = "lock"        // held by the process that works in the home
	Owner     = "owner"       // the label of its containers
	Token     = "token"       // that every request must bear
	Tokens    = "tokens.json" // the digests of those with names and scopes
	Swarm     = "swarm.json"  // which nodes of its Swarm have which workers
	Runs      = "runs"        // a directory a run
	Units     = "units"       // a directory a unit, with every version
	Sessions  = "sessions"    // a directory a session that isn't over
	Schedules = "schedules"   // a directory for the files of each schedule that has some
	BackedUp  = "backed-up"   // when the last backup was made (RFC 3339)
	Webhooks  = "webhooks"    // the secrets of webhooks, a file each; no backup has them
)

// The files of a run's directory that are kept after its end.
const (
	Input      = "input"
	Output     = "output"
	State      = "state"     // of a flow: the files in it, by digest
	Base       = "base"      // the project that the run was given
	Manifest   = "base.json" // what is in it
	Changes    = "changes"   // what the run made of it
	Artifacts  = "artifacts" // the files that it showed before its end, by digest
	Log        = "log.jsonl"
	Transcript = "models.jsonl"
	Memory     = "memory.jsonl" // what its program has kept
)

// TrueInput is the input of a run whose record has it masked, for its owner alone. It is removed
// when the run has its outcome, and no backup has it.
const TrueInput = "input.true.json"

// TrueNames are the names of output files that are masked, by their true ones, for the owner alone.
// They are removed when the run has its outcome, and no backup has them.
const TrueNames = "names.true.json"

// The files of an open session's directory. Of a project it has Base and Manifest, too.
const (
	Home    = "home"    // what its programs remember
	Project = "project" // what its turns have made of the project so far
	Live    = "live"    // of the container that lives on between its turns
	Turns   = "turns"   // of one at workers: what its turns have left there, an archive each
)

// Left is the directory in a session's directory where Home and Project come in that its turns have left at another
// machine. The next turn takes copies of them.
const Left = "left"

// IsKept reports whether an entry of a run's directory is kept after the run's end.
func IsKept(name string) bool {
	switch name {
	case Input, Output, State, Base, Manifest, Changes, Artifacts, Log, Transcript, Memory:
		return true
	}
	return false
}
