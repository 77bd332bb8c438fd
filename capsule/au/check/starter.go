package check

import (
	"context"
	"io"
	"time"
)

// Starter starts a unit in its sandbox, always without a network.
type Starter interface {
	// Start starts the unit once and returns when it has ended. The way it ends is never an
	// error; ctx bounds the wait, and the sandbox is gone when Start returns.
	Start(ctx context.Context, trial Trial) (Observed, error)
}

// Trial is one start of a unit for observation.
type Trial struct {
	Scenario    Scenario
	Stdin       io.Reader     // read to its end before the unit starts; nil is no input
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
