package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// drainTime bounds the wait for the last log lines of an ended container.
const drainTime = 5 * time.Second

// End is how a sandbox ended. None of it is an error of ours.
type End struct {
	ExitCode  int
	OOMKilled bool
	Cause     error // why we stopped it: a context's cause or a *LimitError; nil if it ended by itself
	// Outside says that neither we nor the program ended it, as far as can be told:
	// the engine shut down, or somebody stopped or killed the container. A program
	// that signals its own init looks the same.
	Outside     bool
	EngineError string
	StartedAt   time.Time
	FinishedAt  time.Time
	// Early says that the init told of the end: nothing but the init itself was left in the
	// container then. How that ends, and the last of its output, is for Sandbox.Settle.
	Early bool
	// Alive says, with Early, that the program has done well and waits for another run.
	Alive    bool
	Report   initreport.Report // as the init reported it; zero where it couldn't
	Reported bool
}

func (s *Sandbox) ended(ctx context.Context, exit Exit, cause error) (End, error) {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if exit.Err != nil {
		return End{Cause: cause}, fmt.Errorf("wait for sandbox: %w", exit.Err)
	}
	state, err := s.engine.Inspect(ctx, s.id)
	if err != nil {
		return End{Cause: cause}, fmt.Errorf("inspect sandbox: %w", err)
	}
	s.waitDrained()
	end := End{
		ExitCode: exit.Code, OOMKilled: state.OOMKilled, EngineError: state.Error, Cause: cause,
		StartedAt: state.StartedAt, FinishedAt: state.FinishedAt,
	}
	if err := s.layout.fetchResults(ctx); err != nil {
		return End{Cause: cause}, fmt.Errorf("take the run's files: %w", err)
	}
	if report, err := s.layout.Report(); err == nil {
		end.Report, end.Reported = report, true
	}
	end.Outside = end.fromOutside()
	return end, nil
}

// finished is the end of a program that did well, as its init tells: the engine takes much
// longer to notice. What the init says before it has a program can't be forged by one.
func (s *Sandbox) finished() End {
	return End{Early: true, StartedAt: s.startedAt, FinishedAt: time.Now(), Report: s.control.report, Reported: true}
}

// stays is the end of a run whose program goes on.
func (s *Sandbox) stays() End {
	return End{Early: true, Alive: true, StartedAt: s.startedAt, FinishedAt: time.Now()}
}

// goesOn reports whether neither the engine nor the init has told of the container's end.
func (s *Sandbox) goesOn() bool {
	select {
	case <-s.control.success():
		return false
	default:
		return s.Lives()
	}
}

// settleTime is what an init has to end after its last word.
const settleTime = 10 * time.Second

// Settle returns the container's own end after one that came Early, when its output is read
// as well. The error is an Unavailable fault.
func (s *Sandbox) Settle(ctx context.Context) (Exit, error) {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case exit := <-s.exit:
		s.waitDrained()
		return exit, nil
	case <-timer.C:
		return Exit{}, fault.New(fault.Unavailable, "the engine did not say that the container %.12s has ended", s.id)
	case <-ctx.Done():
		return Exit{}, context.Cause(ctx)
	}
}

// fromOutside: the init lives longer than its program and can't be killed by it, so
// that only the kernel or somebody outside keeps it from its report.
func (e End) fromOutside() bool {
	const killed = 128 + 9
	switch {
	case e.Cause != nil:
		return false
	case e.Reported:
		return e.Report.Terminated
	}
	return e.ExitCode == killed && !e.OOMKilled
}

// waitDrained waits for the streams' end, which the engine owes us after the exit.
func (s *Sandbox) waitDrained() {
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-s.drained:
	case <-timer.C:
	}
}
