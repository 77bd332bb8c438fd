package check

import (
	"context"
	"io"
	"time"
)

// Starter starts a unit in its sandbox, without a network whatever it asks for.
type Starter interface {
	// Start starts the unit once and returns when it has ended. How it ends is never an
	// error; ctx bounds the wait and the sandbox is gone when Start returns.
	Start(ctx context.Context, trial Trial) (Observed, error)
}

// Trial is one start of a unit, to see what it does.
type Trial struct {
	Scenario    Scenario
	Stdin       io.Reader     // read to its end before the unit starts; nil is no input
	Open        bool          // a stdin that says nothing and doesn't end, instead of none, where that can be had
	Args        []string      // as they follow the program's name
	Env         []string      // NAME=value
	MemoryBytes int64         // 0 is the unit's own limit
	Timeout     time.Duration // from its start
}

// Observed is what a trial showed.
type Observed struct {
	Run
	StartError  string // why the program could not be started; "" when it was
	MemoryLimit int64  // bytes
}
