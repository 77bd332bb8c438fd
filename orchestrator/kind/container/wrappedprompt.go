package container

import (
	"io"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	promptBytes = 512 // of the end of an output that is looked at
	// idleShare is the part of its time for which a program works that waits.
	idleShare = 20
)

// hintAtPrompt says of a wrapped agent that ran out of time if it seems to wait for somebody:
// it hardly used the processor, and what it wrote last ends as a question does.
func (x *execution) hintAtPrompt(failure *api.RunError, ran time.Duration) {
	usage := x.Record.Usage
	if failure == nil || x.Unit.Kind != unit.Agent || failure.Kind != string(api.TimedOut) || usage == nil ||
		usage.CPUSeconds > ran.Seconds()/idleShare {
		return
	}
	logged := ""
	if line := x.lastLine.Load(); line != nil {
		logged = *line
	}
	if asks(lastBytes(x.attempt.layout)) || asks(logged) {
		failure.Hint = "it seems to wait for an answer: use input: stdin, or the option with which it asks nobody"
	}
}

// noteLastLine remembers the end of a line of a wrapped agent's log.
func (x *execution) noteLastLine(line string) {
	if x.Unit.Kind == unit.Agent {
		x.lastLine.Store(new(strings.Clone(line[max(0, len(line)-promptBytes):])))
	}
}

// lastBytes returns the end of what the program printed.
func lastBytes(layout runtime.Layout) string {
	f, err := layout.OpenStdout()
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // read only
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	raw := make([]byte, min(size, promptBytes))
	if _, err := f.ReadAt(raw, size-int64(len(raw))); err != nil {
		return ""
	}
	return string(raw)
}

// asks reports whether a text ends as a prompt does.
func asks(text string) bool {
	line := strings.TrimRight(text, " \t\r\n")
	line = strings.TrimRight(line[strings.LastIndexByte(line, '\n')+1:], " )]}")
	for _, end := range []string{"?", ":", ">", "y/n", "yes/no"} {
		if strings.HasSuffix(strings.ToLower(line), end) {
			return true
		}
	}
	return false
}
