package check

import (
	"context"
	"io"
	"time"
)

// Scenario is one way to start a unit for observation.
type Scenario string

// The scenarios that the checks judge. An observer runs as many of them as it can; a check
// without its scenario is not applicable.
const (
	ScenarioDescribe      Scenario = "describe"       // --describe, with a stdin that stays open and silent
	ScenarioDescribeAgain Scenario = "describe-again" // the same, without a stdin
	ScenarioDescribeThird Scenario = "describe-third" // the same again
	// an input that it should take; binary if its card allows that
	ScenarioSample          Scenario = "sample"
	ScenarioAgain           Scenario = "again"            // the same again
	ScenarioThird           Scenario = "third"            // and again
	ScenarioFourth          Scenario = "fourth"           //
	ScenarioFifth           Scenario = "fifth"            //
	ScenarioEmpty           Scenario = "empty"            // no bytes at all
	ScenarioCorrupt         Scenario = "corrupt"          // bytes of no known format
	ScenarioDamaged         Scenario = "damaged"          // half of the sample, then such bytes
	ScenarioHuge            Scenario = "huge"             // more bytes than a unit should take
	ScenarioMissingModel    Scenario = "missing-model"    // a model's path that doesn't exist
	ScenarioTraversal       Scenario = "traversal"        // a model's path with ".." in it
	ScenarioSecret          Scenario = "secret"           // canaries in input, variable and prompt
	ScenarioSecretArguments Scenario = "secret-arguments" // canaries in every parameter that is text
	ScenarioWrongArgument   Scenario = "wrong-argument"   // a canary where a number should be
	ScenarioUnknownArgument Scenario = "unknown-argument" // a canary in a flag that there isn't
	ScenarioLittleMemory    Scenario = "little-memory"    // so little that allocating fails
)

// The scenarios that are tried several times. Each time has to give the same.
var (
	describes = []Scenario{ScenarioDescribe, ScenarioDescribeAgain, ScenarioDescribeThird}
	alike     = []Scenario{ScenarioSample, ScenarioAgain, ScenarioThird, ScenarioFourth, ScenarioFifth}
)

// Run is the observation of a unit in one scenario. A nil pointer is a figure that wasn't
// counted: it proves nothing.
type Run struct {
	ExitCode    int           // as ExitMeaning takes it
	TimedOut    bool          // it was stopped at its time limit
	OutOfMemory bool          // the kernel killed it for its memory
	StartError  string        // why the program could not be started; "" if it was
	Duration    time.Duration // from its start to its end

	Stdout      []byte // all of it, up to au.MaxOutputBytes and one byte
	StderrTail  []byte // the end of it
	StderrBytes int64  // its length

	StdinBytes int64  // how much was offered
	StdinTaken *int64 // how much of it the unit read

	NetworkAttempts *int   // attempted connections, packets or name look-ups
	Listened        *int   // attempts to listen, or to take an address of the network
	FilesWritten    *int   // that were left behind
	WritesTried     *int   // attempts to create, change or remove a file, whatever came of them
	PeakMemory      *int64 // bytes
	ProcessesLeft   *int   // still running when the unit had ended

	Canaries []string // secret texts in its input; never shown
}

// Source says what a unit's source code contains.
type Source struct {
	Readme           bool // README.md with an example of its use
	License          bool // the text of a licence
	UnitTests        bool // of its logic
	IntegrationTests bool // with sample inputs
}

// Observation is everything known of one unit.
type Observation struct {
	Runs        map[Scenario]Run
	Source      *Source       // nil if there is only the program
	MemoryLimit int64         // bytes for each run; 0 is unknown
	TimeLimit   time.Duration // for the sample; 0 is DefaultTimeLimit
}

// DefaultTimeLimit is the longest time that a unit should take (specification, section
// 8.3).
const DefaultTimeLimit = 300 * time.Second

// Starter starts a unit in its sandbox, always without a network.
type Starter interface {
	// Start starts the unit once and returns when it has ended. The way it ends is never an
	// error; ctx bounds the wait, and the sandbox is gone when Start returns.
	Start(ctx context.Context, trial Trial) (Observed, error)
}

// Trial is one start of a unit for observation.
type Trial struct {
	Scenario    Scenario
	Stdin       io.Reader     // read to its end before the unit starts; nil isn't an input
	Open        bool          // a stdin that stays open and silent, instead of none, if the Starter can do that
	Args        []string      // without the program's name
	Env         []string      // NAME=value
	MemoryBytes int64         // 0 is the unit's own limit
	Timeout     time.Duration // from its start
}

// Observed is the observation of a trial.
type Observed struct {
	Run
	MemoryLimit int64 // bytes
}
