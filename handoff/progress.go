package handoff

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	maxProgressText = 1 << 10 // bytes
	progressRate    = 10      // reports taken a second
)

func (h *Handler) postProgress(w http.ResponseWriter, r *http.Request) error {
	p, err := readProgress(w, r)
	if err != nil {
		return err
	}
	if h.throttle.Allow(time.Now()) {
		h.broker.runs.Progress(p)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func readProgress(w http.ResponseWriter, r *http.Request) (Progress, error) {
	f, err := readFields(w, r, httpwire.SmallBody)
	if err != nil {
		return Progress{}, httpwire.AsKind(fault.BadRequest, err)
	}
	var p Progress
	err = errors.Join(f.Only("percent", "step", "message"),
		httpwire.Take(f, "percent", &p.Percent), httpwire.Take(f, "step", &p.Step),
		httpwire.Take(f, "message", &p.Message))
	if err != nil {
		return Progress{}, err
	}
	if !p.isValid() {
		return Progress{}, fault.New(fault.Input, "the percentage is not between 0 and 100").
			WithHint("leave it out where it isn't known")
	}
	for _, text := range []*string{&p.Step, &p.Message} {
		if len(*text) > maxProgressText {
			return Progress{}, refuse(RuleSize,
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
