package web

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
)

func (p *Page) addOperations() {
	p.page("/ui/operations", office{p}.show)
	p.addPrune()
	p.addSchedules()
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
	Database int64        // bytes
	KeepAge  string       // how old the runs that ended may get; "": any age
	KeepSize int64        // bytes that they may take; 0: no bound
}

// waitRow is a run that waits for its turn.
type waitRow struct {
	api.Summary
	Why string
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
	n := int64(len(o.Waits)) + o.More
	return count(n, n >= mostWaiting)
}

// Oldest is since when a run waits; zero: none does.
func (o operations) Oldest() (at time.Time) {
	if len(o.Waits) > 0 {
		at = o.Waits[0].CreatedAt
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
	return content{
		title: "Operations", section: "operations",
		parts: []part{
			{"head", "operations-head", o},
			{"facts", "operations-facts", o},
			{"queue", "operations-queue", o},
			{"units", "operations-units", o},
			{"pool", "operations-pool", o},
			{"room", "operations-room", nil},
		},
		follow: every(2 * time.Second),
	}, nil
}

func (p office) read(ctx context.Context) (o operations, err error) {
	if o.Stats, err = p.svc.Figures.Stats(ctx); err != nil {
		return o, err
	}
	if err := p.svc.Ready(ctx); err != nil {
		o.Problem = fault.Public(err)
	}
	o.Pool, o.Database = p.svc.Figures.Pool(), p.svc.Figures.Database()
	age, bytes := p.svc.Retention.Bounds()
	if o.KeepSize = bytes; age > 0 {
		o.KeepAge = span(age)
	}
	o.Waits, o.More, err = p.waits(ctx, o.Stats)
	return o, err
}

// mostWaits is how many waiting runs are shown, of the newest mostWaiting.
const mostWaits, mostWaiting = 30, 1000

// waits lists the runs that wait for their turn, the oldest first, and counts those that it leaves out.
func (p office) waits(ctx context.Context, stats api.Stats) (rows []waitRow, more int64, err error) {
	page, err := p.svc.Runs.List(ctx, api.Filter{States: []api.State{api.Idle}, Limit: mostWaiting})
	if err != nil {
		return nil, 0, err
	}
	slices.Reverse(page.Runs)
	shown := page.Runs[:min(len(page.Runs), mostWaits)]
	most := map[string]int64{}
	for _, run := range shown {
		if _, known := most[run.Unit]; !known {
			most[run.Unit] = p.mostAtOnce(ctx, run.Unit)
		}
		rows = append(rows, waitRow{run, whyWaits(run, most[run.Unit], stats)})
	}
	return rows, int64(len(page.Runs) - len(shown)), nil
}

// whyWaits tells what a run waits for, as far as the figures tell. Of its unit most may go on at once; 0: any number.
func whyWaits(run api.Summary, most int64, stats api.Stats) string {
	var of api.UnitStats
	for _, u := range stats.Units {
		if u.Unit == run.Unit {
			of = u
		}
	}
	running := of.Live[api.Status(api.Starting)] + of.Live[api.Status(api.Running)]
	switch {
	case of.Queued == 0 && run.Retries > 0:
		return "An attempt failed: the next one comes after a pause"
	case of.Queued == 0 && run.Kind == string(unit.Agent):
		return "An earlier turn of its session goes on"
	case most > 0 && running >= most:
		return "Its unit runs " + num(most) + " at a time, and as many run"
	case stats.Busy >= stats.Slots:
		return "All " + plural(int64(stats.Slots), "slot", "slots") + " of the server are taken"
	case stats.Memory.LimitBytes > 0 && of.Queued > 0:
		return "Not enough memory is free, or it is its turn in a moment"
	}
	return "It is its turn in a moment"
}

// mostAtOnce is how many runs of a unit go on at once; 0: there is no bound, or no such unit.
func (p office) mostAtOnce(ctx context.Context, name string) int64 {
	terms, err := p.svc.Units.Terms(ctx, name)
	if err != nil {
		return 0
	}
	return int64(terms.Unit.Concurrency)
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
