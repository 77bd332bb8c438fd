package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
)

const (
	// recentTime and recentMost bound the ended runs of a unit that its figures are made of.
	recentTime = 10 * time.Minute
	recentMost = 512
)

// Recent remembers the runs that ended lately, by unit, and by unit of a team. It is safe for concurrent use.
type Recent struct {
	Since time.Time // runs are remembered from then on

	mu    sync.Mutex
	units map[recentKey]*recentUnit
}

// recentKey names the runs of a unit: those of a team, or "" for all.
type recentKey struct{ team, unit string }

type recentUnit struct {
	runs  []recentRun // in the order of their ends
	ended map[api.Outcome]int64
	late  bool // its queue is longer than queue_wait
}

type recentRun struct {
	at    time.Time
	total float64       // milliseconds
	work  time.Duration // total without the wait for its turn; 0: it had none
}

// NewRecent returns a Recent that has seen nothing yet.
func NewRecent() *Recent {
	return &Recent{Since: time.Now().UTC(), units: map[recentKey]*recentUnit{}}
}

func (r *Recent) unit(team, name string) *recentUnit {
	key := recentKey{team, name}
	u := r.units[key]
	if u == nil {
		u = &recentUnit{ended: map[api.Outcome]int64{}}
		r.units[key] = u
	}
	return u
}

// Ended remembers the end of a run.
func (r *Recent) Ended(record api.Record, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, team := range []string{"", api.TeamOf(record.Owner)} {
		u := r.unit(team, record.Unit)
		u.ended[record.Outcome]++
		if len(u.runs) == recentMost {
			u.runs = slices.Delete(u.runs, 0, 1)
		}
		u.runs = append(u.runs, recentRun{now, record.Timings.Total, workOf(record)})
	}
}

func workOf(record api.Record) time.Duration {
	if record.StartedAt == nil {
		return 0
	}
	return time.Duration((record.Timings.Total - record.Timings.Queue) * float64(time.Millisecond))
}

// Figures adds what is remembered of a unit to its figures: of the runs of a team, or of all with "". lanes is how many
// of its runs may go on at once.
func (r *Recent) Figures(stats *api.UnitStats, team string, lanes int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.unit(team, stats.Unit)
	for outcome, n := range u.ended {
		stats.Ended[outcome] = n
	}
	stats.Rate = u.rate(r.Since, now) * time.Minute.Seconds()
	stats.P50, stats.P95 = u.quantiles()
	stats.ExpectedWait = float64(u.expectedWait(stats.Queued, lanes, r.Since, now).Microseconds()) / 1000
}

// Names returns the units that had a run since the start: of a team, or of any with "".
func (r *Recent) Names(team string) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.units {
		if key.team == team {
			names = append(names, key.unit)
		}
	}
	return names
}

// Ahead is what a new run has before it.
type Ahead struct {
	Runs  int // of its unit that wait
	Lanes int // how many runs of the unit may go on at once
}

// ExpectedWait returns the wait of a run with that before it, 0 if it isn't known. passed
// reports whether the wait is longer than most, and was not when it was asked for before.
func (r *Recent) ExpectedWait(
	unit string, ahead Ahead, most time.Duration, now time.Time,
) (wait time.Duration, passed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.unit("", unit)
	wait = u.expectedWait(ahead.Runs, ahead.Lanes, r.Since, now)
	passed = wait > most && !u.late
	u.late = wait > most
	return wait, passed
}

// expectedWait goes by what can be done: a unit that was seldom asked is no slow one. Runs that lend
// their slots while they wait for others may do more than their lanes say.
func (u *recentUnit) expectedWait(ahead, lanes int, since, now time.Time) time.Duration {
	rate := max(u.rate(since, now), u.capacity(lanes))
	if rate == 0 {
		return 0
	}
	return time.Duration(float64(ahead) / rate * float64(time.Second))
}

// rate returns how many runs ended per second. It drops those that ended too long ago.
func (u *recentUnit) rate(since, now time.Time) float64 {
	from := now.Add(-recentTime)
	if len(u.runs) == recentMost && u.runs[0].at.After(from) {
		from = u.runs[0].at
	}
	u.runs = slices.DeleteFunc(u.runs, func(one recentRun) bool { return one.at.Before(from) })
	if since.After(from) {
		from = since
	}
	span := max(now.Sub(from), time.Second)
	return float64(len(u.runs)) / span.Seconds()
}

// capacity returns how many runs may end per second, 0 if that isn't known.
func (u *recentUnit) capacity(lanes int) float64 {
	var work time.Duration
	runs := 0
	for _, one := range u.runs {
		if one.work > 0 {
			work, runs = work+one.work, runs+1
		}
	}
	if runs == 0 {
		return 0
	}
	return float64(lanes*runs) / work.Seconds()
}

// quantiles returns the median and the 95th percentile of the durations, in milliseconds.
func (u *recentUnit) quantiles() (p50, p95 float64) {
	totals := make([]float64, len(u.runs))
	for i, one := range u.runs {
		totals[i] = one.total
	}
	return Quantiles(totals)
}

// Quantiles returns the median and the 95th percentile of some figures, which it sorts; 0 where there are none.
func Quantiles(all []float64) (p50, p95 float64) {
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[(len(all)-1)/2], all[(len(all)-1)*95/100]
}
