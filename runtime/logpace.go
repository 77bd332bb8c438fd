package runtime

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	// droppedRate is how many bytes a second are read of output that is dropped. The engine and
	// this process spend about 4 ms of a processor on each MiB; the program, which may write
	// much faster, waits and spends its own time.
	droppedRate = 4 << 20
	// droppedBurst is how much of it is read at once: who writes a little too much doesn't wait.
	droppedBurst = 1 << 20
	// lineCost is how many bytes a line counts for beside its own: short ones cost us more.
	lineCost = 8
	// droppedStep is how much is read before the next pause.
	droppedStep = 16 << 10
)

// pace slows down the reading of output that is dropped, so that its writer waits.
type pace struct {
	limiter *rate.Limiter
	over    atomic.Bool // see hurry

	mu   sync.Mutex
	owed int
}

func newPace() *pace { return &pace{limiter: rate.NewLimiter(droppedRate, droppedBurst)} }

// dropped waits for as long as a dropped piece of a line costs.
func (p *pace) dropped(bytes int) {
	if bytes == 0 || p.over.Load() {
		return
	}
	p.mu.Lock()
	p.owed += bytes + lineCost
	due := 0
	if p.owed >= droppedStep {
		due, p.owed = p.owed, 0
	}
	p.mu.Unlock()
	if due > 0 {
		time.Sleep(p.limiter.ReserveN(time.Now(), min(due, droppedBurst)).Delay())
	}
}

// hurry ends the pauses: nobody writes any more, and the engine waits for its reader.
func (p *pace) hurry() { p.over.Store(true) }
