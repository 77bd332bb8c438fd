package container

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
)

// lastLinesTime bounds the wait for log lines of a run that has its outcome already.
const lastLinesTime = 10 * time.Second

// resumedLog returns the log of an attempt of which lines were taken, by this process before the
// engine was away, or by an earlier one.
func (x *execution) resumedLog(limit int64) *runtime.Log {
	if x.log != nil {
		return x.log
	}
	log := runtime.NewLog(limit, x.Log)
	if !x.again {
		x.lines = x.Logged().Minus(x.saved.Refused)
		log.OnSkipped(x.LogAgain)
	}
	log.Skip(x.lines.Stdout, x.lines.Stderr)
	slot := x.saved.Slot
	slot.Share(log, x.ID)
	if slot.Behind != "" {
		log.SkipThrough(handoff.EndLine(slot.Behind))
	}
	return log
}

// readLastLines keeps the log lines that an earlier process had not read yet when it stored
// the outcome: a program's good end is known before all of its output is there.
func (x *execution) readLastLines(ctx context.Context) {
	if code := x.Record.ExitCode; code == nil || *code != 0 {
		return // nothing was told ahead of the output's end
	}
	if x.Record.Container == nil || x.Limits.LogBytes == 0 { // it has none, or its unit is gone
		return
	}
	log := x.resumedLog(x.Limits.LogBytes)
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), lastLinesTime)
	defer stop()
	if over := log.ShareEnded(); over != nil { // its container goes on
		go func() {
			defer stop()
			select {
			case <-over:
			case <-ctx.Done():
			}
		}()
	}
	err := runtime.ReadLog(ctx, x.containers.engine, x.Record.Container.ID, log)
	if err != nil && !fault.Is(err, fault.NotFound) {
		x.containers.logger.Warn("last log lines not read", "run", x.ID, fault.LogAttr(err))
		return
	}
	x.noteLog(log)
}
