package worker

import (
	"sync"

	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// lines are what a program wrote, in a file until the server has them.
type lines struct {
	*spool[wire.Line]

	mu   sync.Mutex
	seen run.Lines // that the file has
}

// openLines opens the file, and counts what an earlier process wrote.
func openLines(path string) (l *lines, err error) {
	l = &lines{}
	l.spool, err = openSpool(path, -1, func(line wire.Line) { l.seen.Count(line.Stream) })
	return l, err
}

// add appends a line, unless one was lost before.
func (l *lines) add(line runtime.LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.spool.add(wire.Line{Time: line.Time, Stream: line.Stream, Text: line.Text, Cut: line.Cut})
	if err == nil {
		l.seen.Count(line.Stream)
	}
}

// counts returns how many lines there are.
func (l *lines) counts() run.Lines {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}
