// Package layout names the files of a server's home: what the loop writes, and a backup holds.
//
// It must not know what is in them.
package layout

// The files of a home.
const (
	Database = "aod.db" // the store
	Lock     = "lock"   // held by the process that works in the home
	Owner    = "owner"  // the label of its containers
	Token    = "token"  // that every request must bear
	Runs     = "runs"   // a directory a run
	Units    = "units"  // a directory a unit, with every version
)

// The files of a run's directory that are kept after its end.
const (
	Input      = "input"
	Output     = "output"
	State      = "state" // of a flow: the files in it, by digest
	Log        = "log.jsonl"
	Transcript = "models.jsonl"
)

// IsKept reports whether an entry of a run's directory is kept after the run's end.
func IsKept(name string) bool {
	return name == Input || name == Output || name == State || name == Log || name == Transcript
}
