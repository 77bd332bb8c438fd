package capsuleapi

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	// paceRate is how many requests a second one run may make, after the first paceBurst of
	// them. Each costs this process about 0.2 ms of a processor, and the run much less.
	paceRate  = 200
	paceBurst = 400
	// paceWait is how long a request over that waits at most. It is refused then, and not
	// before: a refusal costs as much as an answer.
	paceWait = 2 * time.Second
	// refusedCost is how many requests one counts as that is refused: who makes nothing else
	// makes 20 a second, after the first 40.
	refusedCost = 10
)

// pace bounds how much of our time a program takes by asking.
type pace struct{ limiter *rate.Limiter }

func newPace() pace { return pace{rate.NewLimiter(paceRate, paceBurst)} }

// await waits for the turn of a request. The error is a Busy fault, or the cause of ctx's end.
func (p pace) await(ctx context.Context) error {
	turn := p.limiter.Reserve()
	delay := turn.Delay()
	if delay == 0 {
		return nil
	}
	err := pause.For(ctx, min(delay, paceWait))
	if err == nil && delay <= paceWait {
		return nil
	}
	turn.Cancel()
	if err != nil {
		return err
	}
	return fault.New(fault.Busy, "this run makes more than %d requests a second", paceRate).
		WithHint("ask less often: GET /handoff/{id} and GET /invocation wait by themselves")
}

// refused counts a request that was refused.
func (p pace) refused() { p.limiter.ReserveN(time.Now(), refusedCost-1) }

// took counts a request that took our processor for so long: a run has about a fifth of one.
func (p pace) took(d time.Duration) {
	p.limiter.ReserveN(time.Now(), min(int(d/time.Millisecond), paceBurst))
}

// rest waits for the next turn. Whoever calls it alone waits for a few milliseconds at most.
func (p pace) rest() { time.Sleep(p.limiter.Reserve().Delay()) }

// paced lets a request have its turn before it is answered. A program that is refused again and
// again is slowed down: each refusal costs us as much as an answer, and a line of the log.
func (s responder) paced(p pace, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := p.await(r.Context()); err != nil {
			s.answer(w, r, err)
			return
		}
		out := httpwire.Watch(w)
		next(out, r)
		if out.Status() >= http.StatusBadRequest {
			p.refused()
		}
	}
}
