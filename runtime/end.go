package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// drainTime bounds the wait for the last log lines of an ended container.
const drainTime = 5 * time.Second

// End is how a sandbox ended. None of it is an error of ours.
type End struct {
	ExitCode  int
	OOMKilled bool
	Cause     error // why we stopped it: a context's cause or a *LimitError; nil if we didn't
	// Outside says that neither we nor the program ended it: the engine shut down, or somebody
	// stopped or killed the container. A program that signals its own init looks the same.
	Outside bool
	// Refused says that the kernel refused to write more to the disk: see Layout.OwnProject.
	Refused     *LimitError
	EngineError string
	StartedAt   time.Time
	FinishedAt  time.Time
	// Early says that the init told of the end before the engine did. Only the init is left in
	// the container then, and ends at AwaitExit, or after a second by itself.
	Early bool
	// Reusable says, with Early, that the program goes on: it waits for another run.
	Reusable bool
	Report   initreport.Report // as the init reported it; zero where it couldn't
	Reported bool
}

// readEnd reads how the container ended, when it has.
func (s *Sandbox) readEnd(ctx context.Context, exit Exit, cause error) (End, error) {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if exit.Err != nil {
		return End{Cause: cause}, fmt.Errorf("wait for sandbox: %w", exit.Err)
	}
	state, err := s.engine.Inspect(ctx, s.id)
	if err != nil && (!s.leashed || !fault.Is(err, fault.NotFound)) { // else the engine has removed it
		return End{Cause: cause}, fmt.Errorf("inspect sandbox: %w", err)
	}
	s.waitDrained()
	end := End{
		ExitCode: exit.Code, OOMKilled: state.OOMKilled, EngineError: state.Error, Cause: cause,
		StartedAt: state.StartedAt, FinishedAt: state.FinishedAt,
	}
	if err := s.layout.remote.fetch(ctx); err != nil {
		return End{Cause: cause}, fmt.Errorf("take the run's files: %w", err)
	}
	if report, err := s.layout.Report(); err == nil {
		end.Report, end.Reported = report, true
	}
	end.Outside, end.Refused = end.fromOutside(), s.disk.refused()
	return end, nil
}

// earlyEnd is the end of a program that succeeded, as its init told: the engine takes much
// longer to notice. No program can forge it: the init connected before there was one.
func (s *Sandbox) earlyEnd() End {
	s.hurryLog()
	s.log.endsWith(s.control.report.LogEnd)
	if s.control.report.LogEnd == "" { // the init of an older AOD: its own end is that of the streams
		s.control.dismiss()
	}
	return End{
		Early: true, StartedAt: s.startedAt, FinishedAt: time.Now(), Report: s.control.report, Reported: true,
		Refused: s.disk.refused(),
	}
}

// reusableEnd is the end of a run whose program goes on.
func (s *Sandbox) reusableEnd() End {
	return End{Early: true, Reusable: true, StartedAt: s.startedAt, FinishedAt: time.Now()}
}

// noEndYet reports whether neither the engine nor the init has told of the container's end.
func (s *Sandbox) noEndYet() bool {
	select {
	case <-s.control.succeeds():
		return false
	default:
		return s.Running()
	}
}

// exitTime is how long an init may take to end after its report.
const exitTime = 10 * time.Second

// AwaitExit lets the init end after an Early end, and returns the container's own when its output
// is read as well. The error is an Unavailable fault, or the cause of ctx's end.
func (s *Sandbox) AwaitExit(ctx context.Context) (Exit, error) {
	s.control.dismiss()
	timer := time.NewTimer(exitTime)
	defer timer.Stop()
	select {
	case exit := <-s.exit:
		if exit.Err == nil {
			s.waitDrained()
		}
		return exit, exit.Err
	case <-timer.C:
		return Exit{}, fault.Wrap(fault.Unavailable, ErrUnreachable,
			"the engine did not say that the container %.12s has ended", s.id)
	case <-ctx.Done():
		return Exit{}, context.Cause(ctx)
	}
}

// fromOutside says whether End.Outside is so. The init outlives its program, which can't kill
// it: only the kernel or somebody outside keeps the init from its report.
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

// waitDrained waits for the streams' end, which comes soon after the exit. What a shell wrote
// last may take as long as its reader does.
func (s *Sandbox) waitDrained() {
	s.hurryLog()
	if s.log != nil {
		defer s.log.finish()
	}
	if s.console != nil {
		<-s.drained
		return
	}
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-s.drained:
	case <-timer.C:
	}
}

// hurryLog reads what the program has left behind without pauses.
func (s *Sandbox) hurryLog() {
	if s.log != nil {
		s.log.pace.hurry()
	}
}
