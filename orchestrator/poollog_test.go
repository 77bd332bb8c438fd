package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/pool"
)

func TestWhatWasWrittenBeforeTheClaimBelongsToTheRun(t *testing.T) {
	t.Parallel()
	w := newPoolFixture(t, map[string]int{"asker": 2})
	n := 0
	w.loads(func(_ context.Context, l loading) int {
		w.mu.Lock()
		n++
		own := n
		w.mu.Unlock()
		fmt.Fprintf(l.stdout, "loading %d\nloaded %d\n", own, own)
		return 0
	})
	w.asking()
	var seen []string
	for range 3 {
		w.loaded("asker")
		record := w.await(w.submitTo("asker", orders{Mark: "a", Lines: 1}))
		w.wantWaited(record)
		lines := w.lines(record.ID)
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "loading ") || lines[1] != strings.Replace(lines[0], "loading", "loaded", 1) || lines[2] != "line 0" {
			t.Errorf("the log is %q", lines)
		}
		seen = append(seen, lines[0])
	}
	if slices.Sort(seen); len(slices.Compact(seen)) != 3 {
		t.Errorf("two runs have the same: %q", seen)
	}
}

// lines are those of a run's log.
func (w *fixture) lines(id string) (lines []string) {
	w.t.Helper()
	for entry, err := range w.service.Feed.Log(trusted.Context(w.t), id, api.LogFilter{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		lines = append(lines, entry.Text)
	}
	return lines
}

func TestAWaitingProgramThatFloodsIsHeldUp(t *testing.T) {
	t.Parallel()
	const lines = 3 << 20 / 1024
	w := newPoolFixture(t, map[string]int{"asker": 1}, func(o *settings) { o.Limits.LogBytes = 4 << 20 })
	flooded := make(chan struct{})
	w.loads(func(_ context.Context, l loading) int {
		if l.ahead {
			go func() {
				defer close(flooded)
				for range lines {
					fmt.Fprintln(l.stdout, strings.Repeat("x", 1023))
				}
			}()
		}
		return 0
	})
	waiting := w.asking()
	w.remember()
	held := w.warmed(waiting.ID).Lines
	size := held.Bytes
	within(t, func() bool { return size() >= pool.MaxHeld }, func() string { return fmt.Sprint(size(), " bytes are held") })
	if got := size(); got > pool.MaxHeld+16<<10 {
		t.Errorf("%d bytes are held", got)
	}
	w.loads(nil)
	id := w.submitTo("asker", orders{Mark: "a", Until: "go"})
	<-flooded // it has somebody to write to now
	w.open("go")
	record := w.await(id)
	w.wantWaited(record)
	if got := len(w.lines(id)); got != lines || record.Log.Truncated {
		t.Errorf("%d lines of %d, %+v", got, lines, record.Log)
	}
}
