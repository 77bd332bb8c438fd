package web

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/web/preview"
)

func (p runPages) addRunLog() {
	p.page("/ui/runs/{id}/log", p.runLog)
	p.read("GET /ui/runs/{id}/log.txt", p.logText)
}

const (
	logLines = 5000    // that a page shows
	logBytes = 1 << 20 // of their text, likewise
	logRead  = 500     // lines that are read at once: each may have 16 KiB
	logBlock = 50      // lines that are sent together, so that a new one doesn't bring them all again
)

// logHead is what stands above the lines of a log.
type logHead struct {
	ID          string
	First, Last int64
	Earlier     int64 // the line before which there are more; 0: there are none
	Later       bool  // it isn't the end of the log that is shown
	Cut         bool  // the log was longer than what is kept
	Ended       bool
}

// logLine is a line of a log.
type logLine struct {
	N          int64
	At, Stream string
	Text       string
	Attempt    int // that begins here; 0: none does
}

// runLog shows the end of a run's log, or what is before a line.
func (p runPages) runLog(r *request) (content, error) {
	v, err := p.runOf(r, "log")
	if err != nil {
		return content{}, err
	}
	before := numberOf(r, "before")
	head := logHead{ID: v.ID, Cut: v.Log.Truncated, Later: before > 0, Ended: v.Ended}
	entries, err := p.linesBefore(r, v.ID, before)
	if err != nil {
		return content{}, err
	}
	lines := make([]logLine, 0, len(entries))
	attempt := 1
	for _, e := range entries {
		line := logLine{N: e.Line, At: r.frame.Clock(e.Time), Stream: e.Stream, Text: e.Text}
		if e.Attempt != attempt {
			line.Attempt, attempt = e.Attempt, e.Attempt
		}
		lines = append(lines, line)
	}
	if len(lines) > 0 {
		head.First, head.Last = lines[0].N, lines[len(lines)-1].N
	}
	if head.First > 1 {
		head.Earlier = head.First
	}
	return p.contentOf(v, append([]part{{"log", "run-log", head}}, blocksOf(lines)...)...), nil
}

// linesBefore returns the lines of a log that a page shows: the last of those before one, or of all where that is 0.
func (p runPages) linesBefore(r *request, id string, before int64) (lines []api.LogEntry, err error) {
	size, full := 0, false
	for !full {
		some := make([]api.LogEntry, 0, logRead)
		for e, err := range p.svc.Feed.Log(r.Context(), id, api.LogFilter{Tail: logRead, Before: before}) {
			if err != nil {
				return nil, err
			}
			e.Text = preview.Clean(e.Text)
			some = append(some, e)
		}
		if len(some) == 0 {
			return lines, nil
		}
		first := len(some)
		for first > 0 && !full {
			first--
			size += len(some[first].Text)
			full = size > logBytes || len(lines)+len(some)-first >= logLines
		}
		lines = slices.Concat(some[first:], lines)
		before = some[0].Line
	}
	return lines[beginOfBlock(lines):], nil
}

// beginOfBlock is where the first whole block begins; 0: none does. Without a part of one, a new line changes nothing
// of those above it.
func beginOfBlock(lines []api.LogEntry) int {
	return max(0, slices.IndexFunc(lines, func(e api.LogEntry) bool { return (e.Line-1)%logBlock == 0 }))
}

// blocksOf are the parts of a log's lines. A block always has the same lines.
func blocksOf(lines []logLine) (parts []part) {
	for from := 0; from < len(lines); {
		block, to := (lines[from].N-1)/logBlock, from
		for to < len(lines) && (lines[to].N-1)/logBlock == block {
			to++
		}
		parts = append(parts, part{fmt.Sprintf("lines-%d", block), "run-lines", lines[from:to]})
		from = to
	}
	return parts
}

// logText answers with the whole log as text.
func (p runPages) logText(w http.ResponseWriter, r *request) error {
	id := r.PathValue("id")
	if _, err := p.svc.Runs.Get(r.Context(), id); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+id+`.log"`)
	for e, err := range p.svc.Feed.Log(r.Context(), id, api.LogFilter{}) {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w, preview.Clean(e.Text)); err != nil {
			return nil // the browser has gone
		}
	}
	return nil
}
