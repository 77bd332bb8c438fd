package container

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// attemptLog takes what the program of a run's attempts logs, each line once.
type attemptLog struct {
	run     *run.Run
	machine *machine
	saved   *saved
	hints   *hints
	program program

	again  bool         // its container is to be that of the entry before
	kept   *runtime.Log // which goes on, where the engine keeps none; else nil
	warned bool         // that it has a gap

	counting sync.Mutex
	lines    run.Lines // of the container, that were taken
}

// take takes a line of the attempt's program.
func (l *attemptLog) take(line runtime.LogLine) {
	l.count(line)
	l.hints.note(line.Text)
	l.run.Log(line)
}

// count counts a line that was taken, for who reads the log again.
func (l *attemptLog) count(line runtime.LogLine) {
	l.counting.Lock()
	defer l.counting.Unlock()
	l.lines.Count(line.Stream)
}

// beginAnew notes that the next container is a new one.
func (l *attemptLog) beginAnew() {
	l.counting.Lock()
	defer l.counting.Unlock()
	l.again, l.kept, l.lines = false, nil, run.Lines{}
}

// keep has the log of a container go on in that of the next entry, which may be the same one.
func (l *attemptLog) keep(log *runtime.Log) {
	l.again = true
	if l.run.Durable {
		return
	}
	l.kept = log
	if !l.warned {
		l.warned = true
		l.run.Warn("the connection to the engine broke while the %s ran: the log may lack lines from then",
			l.program.noun())
	}
}

// resumed returns the log of an attempt of which lines were taken, by this process before the
// engine was away, or by an earlier one.
func (l *attemptLog) resumed(limit int64) *runtime.Log {
	if l.kept != nil {
		return l.kept
	}
	log := runtime.NewLog(limit, l.take)
	if !l.again {
		l.lines = l.run.Logged().Minus(l.saved.Refused)
		log.OnSkipped(l.run.LogAgain)
	}
	log.Skip(l.lines.Stdout, l.lines.Stderr)
	slot := l.saved.Slot
	slot.Share(log, l.run.ID)
	if slot.Behind != "" {
		log.SkipThrough(capsuleapi.EndLine(slot.Behind))
	}
	return log
}

// lastLinesTime bounds the wait for log lines of a run that has its outcome already.
const lastLinesTime = 10 * time.Second

// readLast keeps the log lines that an earlier process had not read yet when it stored
// the outcome: a program's good end is known before all of its output is there.
func (l *attemptLog) readLast(ctx context.Context) {
	if code := l.run.Record.ExitCode; code == nil || *code != 0 {
		return // nothing was told ahead of the output's end
	}
	if l.run.Record.Container == nil || l.run.Limits.LogBytes == 0 { // it has none, or its unit is gone
		return
	}
	log := l.resumed(l.run.Limits.LogBytes)
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
	err := runtime.ReadLog(ctx, l.machine.engine, l.run.Record.Container.ID, log)
	if err != nil && !fault.Is(err, fault.NotFound) {
		l.machine.logger.Warn("last log lines not read", "run", l.run.ID, fault.LogAttr(err))
		return
	}
	l.note(log)
}

// note records how much the program wrote.
func (l *attemptLog) note(log *runtime.Log) {
	stats := &l.run.Record.Log
	before := stats.Truncated
	stats.Bytes, stats.Truncated = log.Bytes()
	if !stats.Truncated || before {
		return
	}
	slowed := ""
	if waited := log.Waited(); waited >= time.Second {
		slowed = fmt.Sprintf("; it waited %s for what is dropped to be read", waited.Round(time.Second))
	}
	l.run.Warn("the log was cut: the %s wrote more than its limit (limits.log)%s", l.program.noun(), slowed)
}
