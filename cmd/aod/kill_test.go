package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
)

// usualKills has each kind of moment once.
const (
	usualKills = 6
	killedRuns = 16
)

func TestNoKillOfTheServerLosesOrDoublesARun(t *testing.T) {
	t.Parallel()
	kills := number(t, "AOD_KILLS", usualKills)
	longer := max(1, kills/usualKills)
	c := &killing{server: newServer(t, "--concurrency", "6", "--starts", "2", "--retry-delay", "100ms"), dice: dice(t)}
	c.addWorker("survivor", unique())
	c.makeOrders(killedRuns*longer, longer)
	c.start()
	for c.round = range kills {
		c.release(len(c.orders) * (c.round + kills) / (2 * kills)) // half at once, half between the kills
		c.disturb()
		c.kills = append(c.kills, time.Now())
		c.take()
		c.begin()
	}
	c.release(len(c.orders))
	c.ready()
	c.submitters.Wait()
	c.judge()
	if !c.contained {
		t.Error("no container was ever seen that belongs to the server: is the test looking for the right ones?")
	}
	t.Logf("%d kills, %d of them before it listened\n%s", kills, c.early, c.report())
}

// killing is a server that is killed again and again while it has orders.
type killing struct {
	*server
	dice   *rand.Rand
	orders []*order
	given  int // orders that somebody submits
	round  int
	kills  []time.Time
	early  int // of the kills: before it listened

	contained bool // containers were seen

	seen       map[string]bool // runs that were running just before the kill
	submitters sync.WaitGroup
}

// order is a run that is asked for, and what it should come to.
type order struct {
	client.Submission
	kind    string
	work    work
	content string // of its file
	unit    string // a directory to be uploaded before
	cancel  bool
	outcome api.Outcome

	mu     sync.Mutex
	id     string // "" until it is accepted
	taken  int    // containers that were taken from it
	err    error
	record api.Record
	starts int
}

// kinds are cycled through; the order is one of a queue with all of them in it.
var kinds = []order{
	{kind: "short", outcome: api.Success},
	{kind: "long", work: work{Ticks: 25}, outcome: api.Success},
	{kind: "files", work: work{Ticks: 3}, content: "x", outcome: api.Success},
	{kind: "failing", work: work{Ticks: 2, Exit: 3}, outcome: api.CapsuleError},
	{kind: "short", outcome: api.Success},
	{kind: "overdue", work: work{Ticks: 600}, outcome: api.TimedOut},
	{kind: "long", work: work{Ticks: 12}, outcome: api.Success},
	{kind: "cancelled", work: work{Ticks: 600}, cancel: true, outcome: api.WasCancelled},
}

// makeOrders makes them of all kinds, and longer ones where they have to last longer.
func (c *killing) makeOrders(n, longer int) {
	dir := c.t.TempDir()
	for i := range n {
		kind := &kinds[i%len(kinds)]
		o := &order{kind: kind.kind, work: kind.work, cancel: kind.cancel, outcome: kind.outcome}
		o.work.Mark, o.work.Ticks = i, o.work.Ticks*longer
		o.Submission = client.Submission{Unit: "survivor", Input: o.work.input(), Key: fmt.Sprintf("order-%d", i)}
		if kind.content != "" {
			o.content = strings.Repeat(fmt.Sprintf("line of order %d\n", i), 50_000)
			path := filepath.Join(dir, strconv.Itoa(i), "doc")
			write(c.t, o.content, path)
			o.Files = []client.InputFile{{Field: "doc", Path: path}}
		}
		if o.outcome == api.TimedOut {
			o.Timeout = 1500 * time.Millisecond
		}
		c.orders = append(c.orders, o)
	}
}

// release lets orders up to number n be submitted.
func (c *killing) release(n int) {
	for ; c.given < n; c.given++ {
		o := c.orders[c.given]
		c.submitters.Go(func() { c.place(o) })
	}
}

// place submits an order until it is accepted, and cancels it where that belongs to it.
func (c *killing) place(o *order) {
	ctx, stop := context.WithTimeout(context.Background(), 10*patienceTime) // of all orders: others run before it
	defer stop()
	if err := c.placeIn(ctx, o); err != nil {
		c.t.Errorf("order %q: %v", o.Key, err)
	}
}

func (c *killing) placeIn(ctx context.Context, o *order) error {
	if o.unit != "" {
		if err := c.putAlways(ctx, o.unit); err != nil {
			return err
		}
	}
	record, err := c.submit(ctx, o.Submission)
	if err != nil {
		return err
	}
	o.know(record.ID)
	if !o.cancel {
		return nil
	}
	if o.work.Mark%16 < 8 { // the others are cancelled in the queue
		c.awaitRunning(ctx, record.ID)
	}
	return c.cancel(ctx, record.ID)
}

// known returns the order's run, if it has one already.
func (o *order) known() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.id
}

func (o *order) know(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.id = id
}

// judge waits for every run and compares it with what was asked for.
func (c *killing) judge() {
	ids := map[string]string{}
	for _, o := range c.orders {
		if o.known() == "" {
			continue // that was said already
		}
		o.record = c.await(o.id)
		c.removeLater(o.record.Image.Ref)
		if other, twice := ids[o.id]; twice {
			c.t.Errorf("orders %s and %s have the same run", other, o.Key)
		}
		ids[o.id] = o.Key
		if err := c.compare(o); err != nil {
			o.err = err
			c.t.Errorf("%s, a %s one, run %s: %v\n%+v", o.Key, o.kind, o.id, err, o.record)
		}
	}
	for run, err := range c.client.Runs.List(context.Background(), api.Filter{Unit: "survivor"}) {
		if err != nil || ids[run.ID] == "" {
			c.t.Errorf("nobody has ordered run %s: %v", run.ID, err)
		}
	}
}

func (c *killing) compare(o *order) error {
	var err error
	if o.starts, err = c.startsOf(o.id); err != nil {
		return err
	}
	again, err := c.client.Runs.Submit(context.Background(), o.Submission)
	switch {
	case err != nil:
		return fmt.Errorf("it was submitted again: %w", err)
	case again.ID != o.id:
		return fmt.Errorf("it was submitted again and made run %s", again.ID)
	case o.record.Outcome != o.outcome:
		return fmt.Errorf("its outcome is %s, not %s", o.record.Outcome, o.outcome)
	case o.record.Retries != o.taken:
		return fmt.Errorf("it was tried again %d times, and its container was taken away %d times", o.record.Retries, o.taken)
	case o.starts > o.attempts() || o.starts < o.attempts()-o.taken && !o.cancel && o.outcome != api.TimedOut:
		// what was cancelled, or ran out of time on a busy machine, may not have begun, and what
		// was taken away took its log along
		return fmt.Errorf("its program was started %d times in %d attempts", o.starts, o.attempts())
	case o.outcome == api.CapsuleError && *o.record.ExitCode != o.work.Exit:
		return fmt.Errorf("its exit code is %d", *o.record.ExitCode)
	case o.outcome == api.Success:
		return c.compareResult(o)
	}
	return nil
}

func (o *order) attempts() int { return o.record.Retries + 1 }

func (c *killing) compareResult(o *order) error {
	want := map[string]string{"starts": "x"}
	output := fmt.Sprintf(`{"mark":%d}`, o.work.Mark)
	if o.content != "" {
		want["copy"], output = o.content, fmt.Sprintf(`{"mark":%d,"copy":"copy"}`, o.work.Mark)
	}
	if string(o.record.Output) != output || len(o.record.Files) != len(want) {
		return fmt.Errorf("its output is %s with %d files", o.record.Output, len(o.record.Files))
	}
	for name, content := range want {
		if got, err := c.file(o.record, name); err != nil || string(got) != content {
			return fmt.Errorf("its file %s has %d bytes instead of %d: %w", name, len(got), len(content), err)
		}
	}
	return nil
}
