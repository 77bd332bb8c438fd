package pushes

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
)

const (
	// lookEvery is how often the book is looked at without news: the clock may have been set.
	lookEvery = 30 * time.Second
	// afterTrouble is the pause when the book can't be read or written.
	afterTrouble = time.Second
	// portion is how many deliveries of a push are made before others have their turn.
	portion = 64
)

// Deliverer tells receivers what a Book has for them.
type Deliverer struct {
	book    Book
	compose Compose
	opts    Options
	named   sender         // to receivers that clients of runs named
	hooks   sender         // to those of webhooks
	freed   chan struct{}  // of capacity 1: a push that was led isn't any more
	left    func() Besides // what isn't told now

	mu      sync.Mutex
	led     map[int64]string // hosts, by the pushes that are led
	leaders sync.WaitGroup
}

// New returns a Deliverer, which does nothing before Run.
func New(book Book, compose Compose, opts Options) *Deliverer {
	opts = opts.withDefaults()
	return &Deliverer{
		book: book, compose: compose, opts: opts, named: newSender(opts, opts.Door),
		hooks: newSender(opts, opts.Hooks), freed: make(chan struct{}, 1), led: map[int64]string{},
		left: func() Besides { return Besides{Webhooks: opts.NoHooks} },
	}
}

// Run makes deliveries until ctx ends: those that are due, and further ones whenever news has
// something. A request that is under way then is given up, and made again by the next Deliverer
// over the book. It returns when all is over.
func (d *Deliverer) Run(ctx context.Context, news <-chan struct{}) {
	defer d.named.close()
	defer d.hooks.close()
	defer d.leaders.Wait()
	for ctx.Err() == nil {
		timer := time.NewTimer(d.look(ctx))
		select {
		case <-news:
		case <-d.freed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// look begins to lead the pushes that are due, as many as there is room for, and returns after how
// long to look again without news.
func (d *Deliverer) look(ctx context.Context) time.Duration {
	room, besides := d.room()
	if room == 0 {
		return lookEvery
	}
	now := time.Now()
	due, next, err := d.book.Due(ctx, now, besides, room)
	if err != nil {
		d.trouble(ctx, "pushes not looked for", err)
		return afterTrouble
	}
	crowded := false
	for _, one := range due {
		if !d.begin(ctx, one) {
			crowded = true
		}
	}
	switch {
	case crowded:
		return 0 // there may be others behind those whose hosts have enough
	case next.IsZero():
		return lookEvery
	}
	return min(max(next.Sub(now), 0), lookEvery)
}

// room returns how many more pushes may be led, and which may not.
func (d *Deliverer) room() (int, Besides) {
	d.mu.Lock()
	defer d.mu.Unlock()
	besides := d.left()
	hosts := map[string]int{}
	for push, host := range d.led {
		besides.Pushes = append(besides.Pushes, push)
		if hosts[host]++; hosts[host] == d.opts.PerHost {
			besides.Hosts = append(besides.Hosts, host)
		}
	}
	return d.opts.AtOnce - len(d.led), besides
}

// begin leads a push, unless its host has enough.
func (d *Deliverer) begin(ctx context.Context, one Due) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	same := 0
	for _, host := range d.led {
		if host == one.Host {
			same++
		}
	}
	if same >= d.opts.PerHost {
		return false
	}
	d.led[one.Push] = one.Host
	d.leaders.Go(func() {
		defer d.leave(one.Push)
		d.deliverInOrder(ctx, one.Push)
	})
	return true
}

func (d *Deliverer) leave(push int64) {
	d.mu.Lock()
	delete(d.led, push)
	d.mu.Unlock()
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

// deliverInOrder makes the deliveries of a push, one after the other, until one fails.
func (d *Deliverer) deliverInOrder(ctx context.Context, push int64) {
	for range portion {
		delivery, waits, err := d.book.First(ctx, push)
		if err != nil {
			d.trouble(ctx, "delivery not read", err)
			_ = pause.For(ctx, afterTrouble)
			return
		}
		if !waits {
			return
		}
		result := d.try(ctx, delivery)
		if ctx.Err() != nil && !result.Word.settled() {
			return // it is nobody's fault, and tried again
		}
		if err := d.book.Note(context.WithoutCancel(ctx), delivery, result); err != nil {
			d.trouble(ctx, "delivery not noted, will be made again", err)
			_ = pause.For(ctx, afterTrouble)
			return
		}
		d.tell(delivery, result)
		if !result.Word.settled() {
			return
		}
	}
}

// try makes a delivery, or says when it may be tried again.
func (d *Deliverer) try(ctx context.Context, delivery Delivery) Result {
	var r Result
	m, err := d.compose(ctx, delivery)
	sender, most, tries := d.named, d.opts.Tries, delivery.Tries+1
	if delivery.Webhook != "" {
		sender, most = d.hooks, d.opts.hookTries
	}
	switch {
	case err != nil:
		d.opts.Logger.Warn("push not made", "run", delivery.Run, "push", delivery.Push, "event", delivery.Event.Seq,
			fault.LogAttr(err))
		r.Word = Unmade
	case m.Body == nil:
		r.Word = Nothing
	default:
		r.Word, r.Status = sender.send(ctx, delivery.To, m)
	}
	r.At = time.Now()
	if r.Status == http.StatusGone && delivery.Webhook != "" {
		r.Word = Gone
	} else if !r.Word.settled() && tries < most {
		r.Next = r.At.Add(d.opts.delay(max(tries, delivery.Failures+1)))
	}
	return r
}

// tell counts and logs what became of a delivery.
func (d *Deliverer) tell(delivery Delivery, r Result) {
	d.opts.Told(r, r.At.Sub(delivery.At))
	level, message := slog.LevelDebug, "delivery made"
	switch {
	case r.Word.settled():
	case r.Next.IsZero():
		level, message = slog.LevelWarn, "push given up"
	default:
		message = "delivery will be tried again"
	}
	d.opts.Logger.Log(context.Background(), level, message, "run", delivery.Run, "push", delivery.Push, "event",
		delivery.Event.Seq,
		"tries", delivery.Tries+1, "outcome", string(r.Word), "status", r.Status)
}

func (d *Deliverer) trouble(ctx context.Context, message string, err error) {
	if ctx.Err() == nil {
		d.opts.Logger.Error(message, fault.LogAttr(err))
	}
}
