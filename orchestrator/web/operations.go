package web

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

func (p *Page) addOperations() {
	p.page("/ui/operations", office{p}.show)
	p.addPrune()
	p.addWorkers()
	p.addSchedules()
	p.addWebhooks()
	p.addAccounts()
}

// office is the page of how a server fares.
type office struct{ *Page }

// operations is how a server fares.
type operations struct {
	api.Stats
	Pool     api.PoolStats
	Problem  *fault.Error // why it takes no runs; nil: it does
	Waits    []waitRow    // the oldest first
	More     int64        // waiting runs that aren't shown
	Cut      bool         // there are older runs at which nobody looked
	Database int64        // bytes
	KeepAge  string       // how old the runs that ended may get; "": any age
	KeepSize int64        // bytes that they may take; 0: no bound
}

// waitRow is a run that waits.
type waitRow struct{ api.Summary }

// Why is what it waits for.
func (r waitRow) Why() string {
	if r.Waiting == nil {
		return "It is its turn in a moment"
	}
	return waitingText(*r.Waiting)
}

// Since is when it began to wait.
func (r waitRow) Since() time.Time {
	if r.Waiting == nil {
		return r.CreatedAt
	}
	return r.Waiting.Since
}

// meter is a share of something as a bar.
type meter struct {
	Percent int64
	Text    string // what it says
}

func meterOf(part, all int64, text string) *meter {
	if all <= 0 {
		return nil
	}
	return &meter{min(max(part, 0)*100/all, 100), text}
}

// SlotMeter is how many slots are taken.
func (o operations) SlotMeter() *meter {
	return meterOf(int64(o.Busy), int64(o.Slots), fmt.Sprintf("%d of %d slots are taken", o.Busy, o.Slots))
}

// MemoryMeter is how much memory is promised to runs and to what waits for them.
func (o operations) MemoryMeter() *meter {
	return meterOf(o.Promised(), o.Memory.LimitBytes,
		fmt.Sprintf("%s of %s may be taken", size(o.Promised()), size(o.Memory.LimitBytes)))
}

// Promised is the memory that runs, and containers that wait for them, may take.
func (o operations) Promised() int64 { return o.Memory.RunBytes + o.Memory.PoolBytes }

// WaitCount is how many runs wait.
func (o operations) WaitCount() string {
	return count(int64(len(o.Waits))+o.More, o.Cut)
}

// Oldest is since when a run waits; zero: none does.
func (o operations) Oldest() (at time.Time) {
	if len(o.Waits) > 0 {
		at = o.Waits[0].Since()
	}
	return at
}

// UnitRows are what goes on with each unit.
func (o operations) UnitRows() []unitFigures {
	rows := make([]unitFigures, 0, len(o.Units))
	for _, u := range o.Units {
		row := unitFigures{UnitStats: u, Running: u.Live[api.Status(api.Starting)] + u.Live[api.Status(api.Running)]}
		for outcome, n := range u.Ended {
			switch outcome {
			case api.Success:
				row.Succeeded = n
			case api.WasCancelled:
				row.Cancelled = n
			default:
				row.Failed += n
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// unitFigures is what goes on with a unit.
type unitFigures struct {
	api.UnitStats
	Running, Succeeded, Failed, Cancelled int64
}

// Wait is how long a run that is accepted now waits, as far as that is known.
func (u unitFigures) Wait() string { return took(u.ExpectedWait) }

// Half is how long the faster half of the last runs took.
func (u unitFigures) Half() string { return took(u.P50) }

// Most is how long 19 of 20 of the last runs took at most.
func (u unitFigures) Most() string { return took(u.P95) }

func (p office) show(r *request) (content, error) {
	o, err := p.read(r.Context())
	if err != nil {
		return content{}, err
	}
	workers, err := machines(p).list(r.Context(), r.frame.now)
	return content{
		title: "Operations", section: "operations",
		parts: []part{
			{"head", "operations-head", o},
			{"facts", "operations-facts", o},
			{"queue", "operations-queue", o},
			{"workers", "operations-workers", workers},
			{"units", "operations-units", o},
			{"pool", "operations-pool", o},
			{"room", "operations-room", nil},
		},
		follow: every(2 * time.Second),
	}, err
}

func (p office) read(ctx context.Context) (o operations, err error) {
	if o.Stats, err = p.svc.Figures.Stats(ctx); err != nil {
		return o, err
	}
	if err := p.svc.Ready(ctx); err != nil {
		o.Problem = fault.Public(err)
	}
	if o.Pool = p.svc.Figures.PoolOf(ctx); p.svc.Figures.Whole(ctx) {
		o.Database = p.svc.Figures.Database()
	}
	age, bytes := p.svc.Retention.Bounds()
	if o.KeepSize = bytes; age > 0 {
		o.KeepAge = span(age)
	}
	going, err := p.svc.Runs.List(ctx, api.Filter{Active: true, Limit: 1000})
	o.addWaits(going)
	return o, err
}

// mostWaits is how many waiting runs are shown.
const mostWaits = 30

// addWaits adds the runs of a page that wait, the oldest first.
func (o *operations) addWaits(page api.Page) {
	o.Cut = page.Next != nil
	for _, run := range slices.Backward(page.Runs) {
		switch {
		case run.Waiting == nil && run.State != api.Idle:
		case len(o.Waits) == mostWaits:
			o.More++
		default:
			o.Waits = append(o.Waits, waitRow{run})
		}
	}
}

// every calls changed after each pause.
func every(pause time.Duration) func(ctx context.Context, changed func()) {
	return func(ctx context.Context, changed func()) {
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				changed()
			case <-ctx.Done():
				return
			}
		}
	}
}
