package gateway

import (
	"context"
	"math"
	"sync"
	"time"
)

// rate is what a gate lets through. Zero fields bound nothing.
type rate struct {
	slots    int64 // requests that are inside at once
	requests int64 // a minute
	tokens   int64 // a minute
}

// gate lets requests through at a rate. Those that wait take turns by run: a run with many
// requests doesn't keep others from theirs.
type gate struct {
	mu       sync.Mutex
	rate     rate
	inside   int64
	requests bucket
	tokens   bucket
	paused   time.Time // until then nobody passes
	queues   map[string][]*ticket
	turns    []string // runs that wait; the first one's turn is next
	timer    *time.Timer
}

// ticket is a request at a gate.
type ticket struct {
	run    string
	tokens int64
	passed chan struct{} // closed when it may pass
}

func newGate() *gate {
	return &gate{queues: map[string][]*ticket{}}
}

// limit sets the rate from now on.
func (g *gate) limit(r rate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r == g.rate {
		return
	}
	g.rate, g.requests, g.tokens = r, newBucket(r.requests), newBucket(r.tokens)
	g.advance()
}

// pause lets nobody pass for a while.
func (g *gate) pause(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := time.Now().Add(d); until.After(g.paused) {
		g.paused = until
	}
}

// enter waits until a request may pass. leave must be called when it is over; it takes how
// many of the tokens weren't needed. The error is the cause of ctx's end.
func (g *gate) enter(ctx context.Context, run string, tokens int64) (leave func(unused int64), err error) {
	t := &ticket{run: run, tokens: tokens, passed: make(chan struct{})}
	g.mu.Lock()
	if len(g.queues[run]) == 0 {
		g.turns = append(g.turns, run)
	}
	g.queues[run] = append(g.queues[run], t)
	g.advance()
	g.mu.Unlock()
	select {
	case <-t.passed:
	case <-ctx.Done():
		if !g.giveUp(t) {
			return nil, context.Cause(ctx)
		}
	}
	var once sync.Once
	return func(unused int64) { once.Do(func() { g.leave(unused) }) }, nil
}

// giveUp takes a ticket out, and reports whether it has passed instead.
func (g *gate) giveUp(t *ticket) (passed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	queue := g.queues[t.run]
	for i, other := range queue {
		if other == t {
			g.queues[t.run] = append(queue[:i:i], queue[i+1:]...)
			g.dropIdle()
			g.advance()
			return false
		}
	}
	return true
}

func (g *gate) leave(unused int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.tokens.level += float64(unused)
	g.advance()
}

// advance lets pass whoever may. The caller holds the lock.
func (g *gate) advance() {
	now := time.Now()
	g.requests.fill(now)
	g.tokens.fill(now)
	for len(g.turns) > 0 {
		t := g.queues[g.turns[0]][0]
		if wait := g.wait(now, t); wait != 0 {
			g.later(wait)
			return
		}
		g.pass(t)
	}
}

// wait returns how long a ticket has to wait: 0 not at all, below 0 until somebody leaves.
func (g *gate) wait(now time.Time, t *ticket) time.Duration {
	if g.rate.slots > 0 && g.inside >= g.rate.slots {
		return -1
	}
	wait := max(g.requests.wait(1), g.tokens.wait(float64(t.tokens)))
	if g.paused.After(now) {
		wait = max(wait, g.paused.Sub(now))
	}
	return wait
}

func (g *gate) later(wait time.Duration) {
	if wait < 0 {
		return
	}
	if g.timer != nil {
		g.timer.Stop()
	}
	g.timer = time.AfterFunc(wait, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.advance()
	})
}

func (g *gate) pass(t *ticket) {
	g.requests.level--
	g.tokens.level -= float64(t.tokens)
	g.inside++
	g.queues[t.run] = g.queues[t.run][1:]
	g.turns = append(g.turns[1:], t.run)
	g.dropIdle()
	close(t.passed)
}

// dropIdle forgets runs that don't wait any more.
func (g *gate) dropIdle() {
	left := g.turns[:0:0]
	for _, run := range g.turns {
		if len(g.queues[run]) > 0 {
			left = append(left, run)
			continue
		}
		delete(g.queues, run)
	}
	g.turns = left
}

// bucket fills at a rate, up to a tenth of what comes in a minute, and may be overdrawn by
// one large request.
type bucket struct {
	perMinute, level, most float64
	filled                 time.Time
}

func newBucket(perMinute int64) bucket {
	most := math.Max(1, float64(perMinute)/10)
	return bucket{perMinute: float64(perMinute), level: most, most: most, filled: time.Now()}
}

func (b *bucket) fill(now time.Time) {
	b.level = math.Min(b.most, b.level+now.Sub(b.filled).Minutes()*b.perMinute)
	b.filled = now
}

// wait returns how long it takes until there is enough for an amount.
func (b *bucket) wait(amount float64) time.Duration {
	lacking := math.Min(amount, b.most) - b.level
	if b.perMinute == 0 || lacking <= 0 {
		return 0
	}
	return time.Duration(lacking/b.perMinute*float64(time.Minute)) + time.Millisecond
}
