package schedules

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules/due"
)

// mostTimes bounds Next.
const mostTimes = 100

// Next returns the next n times of a schedule, 1 to 100; 0 is 10. They are those that it would
// have if it weren't paused.
func (s *Scheduler) Next(ctx context.Context, name string, n int) (api.ScheduledTimes, error) {
	n, err := timesOf(n)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	row, err := s.known(ctx, name)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	stored, err := readSchedule(row)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	plan, err := stored.plan()
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	if plan.Count > 0 {
		n = min(n, max(0, plan.Count-row.Fired))
	}
	after := row.Until
	if now := s.clock.Now().Add(-plan.Delay(name)); now.After(after) {
		after = now
	}
	return timesAfter(plan, after, n), nil
}

func timesOf(n int) (int, error) {
	if n < 0 || n > mostTimes {
		return 0, fault.New(fault.Input, "%d times can't be told; it can be 1 to %d", n, mostTimes)
	}
	if n == 0 {
		return 10, nil
	}
	return n, nil
}

// Preview checks the times of a specification and returns the next n of them, as Next
// does. Its unit isn't looked at.
func (s *Scheduler) Preview(spec api.ScheduleSpec, n int) (api.ScheduledTimes, error) {
	n, err := timesOf(n)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	now := s.clock.Now()
	plan, err := due.Read(spec, now)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	if plan.Count > 0 {
		n = min(n, plan.Count)
	}
	return timesAfter(plan, now, n), nil
}

// timesAfter returns the next n times of a plan.
func timesAfter(plan *due.Plan, after time.Time, n int) api.ScheduledTimes {
	times := api.ScheduledTimes{Times: []time.Time{}}
	for len(times.Times) < n {
		if after = plan.Next(after); after.IsZero() {
			break
		}
		times.Times = append(times.Times, after)
	}
	return times
}
