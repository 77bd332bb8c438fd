package schedules

import (
	"cmp"
	"context"
	"errors"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules/due"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Put makes a schedule, or gives one another specification. It takes the files over: each
// of the schedule's runs gets them; with nil it has none. One that is as it was stays as it is. The
// error is a fault that names what is wrong with the specification, and nothing has changed then.
func (s *Scheduler) Put(
	ctx context.Context, name string, spec api.ScheduleSpec, files *spool.Spool,
) (shown api.Schedule, created bool, err error) {
	return s.put(ctx, name, spec, files, false)
}

// Add is Put for a schedule that must be new: where another has the name, it stays as it is, and the
// error is an Exists fault. One that is just the same is no other one, so an Add may be repeated.
func (s *Scheduler) Add(
	ctx context.Context, name string, spec api.ScheduleSpec, files *spool.Spool,
) (shown api.Schedule, created bool, err error) {
	return s.put(ctx, name, spec, files, true)
}

// Try says what Put would do, and does nothing. The error is that of Put.
func (s *Scheduler) Try(
	ctx context.Context, name string, spec api.ScheduleSpec, files *spool.Spool, onlyNew bool,
) (would api.PlannedSchedule, err error) {
	defer func() { err = errors.Join(err, files.Remove()) }()
	s.table.changing.Lock()
	defer s.table.changing.Unlock()
	name, owner := s.toPut(ctx, name)
	p, err := s.propose(ctx, name, owner, spec, files, onlyNew)
	return api.PlannedSchedule{Name: name, Change: p.change, Owner: api.OwnerOf(p.row.Team, p.row.MadeBy)}, err
}

func (s *Scheduler) put(
	ctx context.Context, name string, spec api.ScheduleSpec, files *spool.Spool, onlyNew bool,
) (shown api.Schedule, created bool, err error) {
	defer func() { err = errors.Join(err, files.Remove()) }()
	s.table.changing.Lock()
	defer s.table.changing.Unlock()
	name, owner := s.toPut(ctx, name)
	p, err := s.propose(ctx, name, owner, spec, files, onlyNew)
	if err != nil {
		return shown, false, err
	}
	if p.change != api.ScheduleUnchanged {
		if err := s.save(ctx, p.was, p.row, p.plan, files); err != nil {
			return shown, false, err
		}
	}
	shown, err = s.Get(ctx, name)
	return shown, p.change == api.ScheduleMade, err
}

// toPut returns the name under which the client of ctx makes a schedule, and to whom it belongs then.
func (s *Scheduler) toPut(ctx context.Context, name string) (full string, owner access.Owner) {
	full, team := s.teams.ToPut(ctx, name)
	return full, access.Owner{Team: team, By: access.ClientOf(ctx)}
}

// proposal is what is to become of a schedule.
type proposal struct {
	change api.ScheduleChange
	was    storedSchedule // nothing of a new one
	row    store.Schedule
	plan   *due.Plan // nil of one that is unchanged
}

// propose says what is to become of a schedule that is put, or why that is refused. It changes
// nothing.
func (s *Scheduler) propose(
	ctx context.Context, name string, owner access.Owner, spec api.ScheduleSpec, files *spool.Spool, onlyNew bool,
) (p proposal, err error) {
	if p.row, err = s.row(name, owner, spec, files); err != nil {
		return p, err
	}
	if err := s.gate.Admits(ctx); err != nil {
		return p, err
	}
	was, there, err := s.standing(ctx, name)
	if !there || err != nil {
		err = cmp.Or(s.teams.CheckName(owner.Team, name), err) // first, so that it is the same whether another has it
	}
	if err != nil {
		return p, err
	}
	if there && was.row.Team != p.row.Team { // whoever sees all changes it for its team
		p.row.Team, p.row.MadeBy = was.row.Team, was.row.MadeBy
	}
	switch p.was = was; {
	case !there:
		p.change = api.ScheduleMade
	case was.same(spec, filesOf(files)):
		p.change = api.ScheduleUnchanged
		return p, nil
	case onlyNew:
		return p, fault.New(fault.Exists, "there is a schedule %q already", name).
			WithHint("`aod schedule show %s` shows it; --replace, or no If-None-Match, gives it another specification",
				name)
	default:
		p.change = api.ScheduleChanged
	}
	p.plan, err = s.check(ctx, was, !there, &p.row, spec, files)
	return p, err
}

// standing returns the schedule that has a name, if there is one. One that can't be read may be
// replaced by who sees all; one that the client of ctx may not know of is a Conflict.
func (s *Scheduler) standing(ctx context.Context, name string) (was storedSchedule, there bool, err error) {
	row, err := s.store.Schedules.Get(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return was, false, nil
	}
	if err != nil {
		return was, false, err
	}
	was, _ = readSchedule(row)
	if !access.Sees(ctx, was.owner()) {
		return was, true, fault.New(fault.Conflict, "the name %q is taken", name).WithHint("choose another one")
	}
	return was, true, nil
}

// row checks what needs no look at anything else.
func (s *Scheduler) row(
	name string, owner access.Owner, spec api.ScheduleSpec, files *spool.Spool,
) (store.Schedule, error) {
	if err := api.CheckUnitName(name); err != nil {
		return store.Schedule{}, fault.New(fault.Input, "a schedule can't have the name %s", fault.Quote(name)).
			WithHint("%s", fault.Public(err).Hint)
	}
	if err := api.CheckMetadata(spec.Metadata); err != nil {
		return store.Schedule{}, err
	}
	if files.Project() != nil {
		return store.Schedule{}, fault.New(fault.Unsupported, "a schedule takes no workspace").
			WithHint("give files, or submit runs with their projects")
	}
	if int64(len(spec.Input)) > s.payloadBytes {
		return store.Schedule{}, fault.New(fault.TooLarge, "the input has more than %d bytes", s.payloadBytes)
	}
	return rowOf(name, owner, spec, filesOf(files))
}

// check holds a new specification against its unit and the clock, and completes its row.
func (s *Scheduler) check(
	ctx context.Context, was storedSchedule, created bool, row *store.Schedule, spec api.ScheduleSpec,
	files *spool.Spool,
) (*due.Plan, error) {
	now := s.clock.Now()
	row.CreatedAt, row.ChangedAt, row.Until = now, now, now
	if !created {
		row.CreatedAt, row.Paused = was.row.CreatedAt, was.row.Paused
		if sameTimes(was.spec, spec) {
			row.Until = was.row.Until
		}
	}
	plan, err := due.Read(spec, row.CreatedAt)
	if err != nil {
		return nil, err
	}
	if created && s.table.count() >= maxSchedules {
		return nil, fault.New(fault.Busy, "there are %d schedules already", maxSchedules).
			WithHint("remove some that nobody needs: `aod schedule rm NAME`")
	}
	if plan.Next(row.Until).IsZero() {
		return nil, inThePast(spec)
	}
	of := storedSchedule{row: *row, spec: spec}
	return plan, s.subs.Check(access.ForOwner(ctx, of.owner()), of.submission(plan, files))
}

// inThePast is the fault of a schedule whose times have all passed.
func inThePast(spec api.ScheduleSpec) error {
	pointer := "/until"
	if spec.At != "" {
		pointer = "/at"
	}
	return fault.New(fault.Input, "the schedule would never come").
		WithFindings([]fault.Finding{{Pointer: pointer, Message: "it lies in the past", Hint: "name a later time"}})
}

// save stores a row that was checked, with its files, and goes by it from now on.
func (s *Scheduler) save(
	ctx context.Context, was storedSchedule, row store.Schedule, plan *due.Plan, files *spool.Spool,
) (err error) {
	p := s.table.find(row.Name)
	if p == nil {
		p = plannedOf(row, plan)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if row.Files, err = s.files.keep(files); err != nil {
		return err
	}
	if p.seq != 0 && p.until.After(row.Until) && row.Until.Equal(was.row.Until) {
		row.Until = p.until // it was looked at meanwhile
	}
	stored, err := s.store.Schedules.Put(audited(ctx, row, "put"), row)
	if err != nil {
		s.files.drop(row.Files)
		return err
	}
	s.files.drop(was.row.Files)
	p.seq, p.plan, p.until, p.fired, p.paused = stored.Seq, plan, stored.Until, stored.Fired, stored.Paused
	if s.table.find(row.Name) == nil {
		s.table.add(p)
	}
	s.table.serve(p, stored.Unit, storedSchedule{row: stored}.owner())
	s.table.evaluateAt(p, p.nextLook())
	s.logger.Info("schedule stored", "schedule", stored.Seq, "unit", stored.Unit)
	return nil
}
