package pool

import (
	"sync"
	"time"

	"github.com/agent-on-demand/aod/runtime"
)

// HeldLog keeps the log lines of a waiting sandbox until a run claims it.
type HeldLog struct {
	gone chan struct{} // closed by drop

	once  sync.Once
	mu    sync.Mutex
	to    func(runtime.LogLine)
	lines []runtime.LogLine
	bytes int

	passing sync.Mutex // held while lines are passed on, in their order
}

// MaxHeld is how many bytes are kept. A program that writes more is blocked until a run
// claims its sandbox.
const MaxHeld = 1 << 20

func newHeldLog() *HeldLog { return &HeldLog{gone: make(chan struct{})} }

// drop discards the log of a sandbox that no run will claim. Blocked writers go on.
func (h *HeldLog) drop() { h.once.Do(func() { close(h.gone) }) }

func (h *HeldLog) add(line runtime.LogLine) {
	for !h.take(line) {
		select {
		case <-h.gone:
			return
		case <-time.After(readyPoll):
		}
	}
}

// take keeps a line or passes it on. It returns false when there is no room. It calls nobody
// under the lock.
func (h *HeldLog) take(line runtime.LogLine) bool {
	h.passing.Lock()
	defer h.passing.Unlock()
	to, room := h.keep(line)
	if to != nil {
		to(line)
	}
	return room
}

// keep returns the function that gets the line, or keeps the line if there is room.
func (h *HeldLog) keep(line runtime.LogLine) (to func(runtime.LogLine), room bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.to != nil {
		return h.to, true
	}
	if h.bytes >= MaxHeld {
		return nil, false
	}
	h.lines = append(h.lines, line)
	h.bytes += len(line.Text) + 1
	return nil, true
}

// Hold keeps lines again.
func (h *HeldLog) Hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.to, h.bytes = nil, 0
}

// HandTo gives the held lines to a run, and then every new line.
func (h *HeldLog) HandTo(to func(runtime.LogLine)) {
	h.passing.Lock()
	defer h.passing.Unlock()
	h.mu.Lock()
	lines := h.lines
	h.lines, h.to = nil, to
	h.mu.Unlock()
	for _, line := range lines {
		to(line)
	}
}

// Bytes returns how much is kept.
func (h *HeldLog) Bytes() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes
}
