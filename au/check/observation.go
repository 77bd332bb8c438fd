package check

import "time"

// Scenario is one way to start a unit in order to see what it does.
type Scenario string

// The scenarios that the checks judge. Whoever observes a unit runs as many of them as
// can be run; a check that lacks its scenario is not applicable.
const (
	ScenarioDescribe     Scenario = "describe"      // --describe, with a stdin that stays open and silent
	ScenarioSample       Scenario = "sample"        // an input that it should take, of bytes that are no text where its card allows
	ScenarioAgain        Scenario = "again"         // the very same once more
	ScenarioEmpty        Scenario = "empty"         // no bytes at all
	ScenarioCorrupt      Scenario = "corrupt"       // bytes that no format has
	ScenarioHuge         Scenario = "huge"          // more bytes than a unit should take
	ScenarioMissingModel Scenario = "missing-model" // a model's path where there is nothing
	ScenarioTraversal    Scenario = "traversal"     // a model's path that leads up and away with ".."
	ScenarioSecret       Scenario = "secret"        // canaries in input and parameters
	ScenarioLittleMemory Scenario = "little-memory" // so little that allocating fails
)

// Run is what was observed of a unit in one scenario. Pointers are nil where nothing was
// counted: what wasn't counted proves nothing.
type Run struct {
	ExitCode    int           // as ExitMeaning takes it
	TimedOut    bool          // it was stopped because its time was up
	OutOfMemory bool          // the kernel killed it for its memory
	Duration    time.Duration // from its start to its end

	Stdout      []byte // all of it, up to one byte more than au.MaxOutputBytes
	StderrTail  []byte // the last of it
	StderrBytes int64  // how much there was

	StdinBytes int64  // how much was offered
	StdinTaken *int64 // how much of it the unit took

	NetworkAttempts *int   // connections, packets or names that it tried
	FilesWritten    *int   // created, changed or removed, but in its temporary directory
	PeakMemory      *int64 // bytes
	ProcessesLeft   *int   // that still ran when the unit had ended

	Canaries []string // secret texts that it was given; never shown
}

// Source is what was found of a unit's source code.
type Source struct {
	Readme           bool // README.md with an example of its use
	License          bool // the text of a licence
	UnitTests        bool // of its logic
	IntegrationTests bool // with sample inputs
}

// Observation is all that is known of one unit.
type Observation struct {
	Runs        map[Scenario]Run
	Source      *Source       // nil where there is only the program
	MemoryLimit int64         // bytes that each run had; 0 is unknown
	TimeLimit   time.Duration // what counts as reasonable for the sample; 0 is DefaultTimeLimit
}

// DefaultTimeLimit is the longest that a unit should take (specification, section 8.3).
const DefaultTimeLimit = 300 * time.Second
