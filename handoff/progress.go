package handoff

import (
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

const (
	maxProgressText = 1 << 10 // bytes
	progressRate    = 10      // reports taken a second
)

// Progress is how far a run says it is.
type Progress struct {
	Percent       *float64 // 0 to 100; nil: not said
	Step, Message string   // at most 1 KiB each, without control characters
}

// Check returns the progress with its texts in one line, or a fault for what isn't one.
func (p Progress) Check() (Progress, error) {
	if !p.isValid() {
		return p, fault.New(fault.Input, "the percentage is not between 0 and 100").
			WithHint("leave it out where it isn't known")
	}
	for _, text := range []*string{&p.Step, &p.Message} {
		if len(*text) > maxProgressText {
			return p, refuse(RuleSize,
				fault.New(fault.TooLarge, "a text of the progress has more than %d bytes", maxProgressText).
					WithHint("write what is long to stdout"))
		}
		*text = fault.OneLine(*text)
	}
	return p, nil
}

func (p Progress) isValid() bool { return p.Percent == nil || *p.Percent >= 0 && *p.Percent <= 100 }

// Fit returns the progress within its bounds: it cuts texts that are too long, and leaves out
// a percentage that isn't one. Texts must be UTF-8.
func (p Progress) Fit() Progress {
	if !p.isValid() {
		p.Percent = nil
	}
	for _, text := range []*string{&p.Step, &p.Message} {
		*text = fault.OneLine(fault.Clip(*text, maxProgressText-len("…")))
	}
	return p
}

// Throttle takes ten reports of progress a second, and no more.
type Throttle struct {
	mu     sync.Mutex
	second time.Time
	taken  int
}

// Allow reports whether one more is taken now, and counts it.
func (t *Throttle) Allow(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.second) >= time.Second {
		t.second, t.taken = now, 0
	}
	t.taken++
	return t.taken <= progressRate
}
