package queue

import "slices"

// Reason is what a run waits for.
type Reason string

// The reasons.
const (
	ForSlot   Reason = "slots"  // all slots are taken
	ForUnit   Reason = "unit"   // as many runs of its unit go on as may
	ForAnswer Reason = "answer" // a run of its unit waits outside of its slot, and the others stay behind it
	ForMemory Reason = "memory" // the first run in line has too little
	ForTurn   Reason = "turn"   // other units have theirs before
	ForTeam   Reason = "team"   // its team holds as many slots as it may
	ForToken  Reason = "token"  // its token holds as many slots as it may
	// ForMachine is that no machine which takes new runs has what its unit needs.
	ForMachine Reason = "machine"
	ForEnd     Reason = "closed" // no run begins any more
)

// Place is where a run waits for its first slot, and for what.
type Place struct {
	Ahead  int // runs of its unit and its team, or its token, that come before it
	Reason Reason
	Slots  int // that there are of machines which take it
	Limit  int // of runs of its unit at once, or of slots of its team or token where it waits for that; 0: none

	Needs  []string // of its unit, where it waits for a machine
	Closed int      // likewise, how many machines have all that, but take nothing new
}

// PlaceOf returns the place of a run that waits, by its unit and id; false: it doesn't.
func (q *Queue) PlaceOf(unit, id string) (Place, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.units[unit]
	if u == nil {
		return Place{}, false
	}
	for _, l := range u.lines {
		if ahead := slices.IndexFunc(l.waiting, func(p *Permit) bool { return p.id == id }); ahead >= 0 {
			slots := q.machines.slots(l.waiting[0].needs)
			place := Place{Ahead: ahead, Reason: q.reasonOf(l), Slots: slots, Limit: u.limit}
			switch place.Reason {
			case ForTeam:
				place.Limit = q.bounds.teams[l.team.name].Slots
			case ForMachine:
				place.Needs, place.Closed = l.waiting[0].needs, q.machines.closed(l.waiting[0].needs)
			case ForToken:
				place.Limit = q.bounds.tokens[l.token.name].Slots
			}
			return place, true
		}
	}
	return Place{}, false
}

// forMachines are the reasons of runs that would begin if there were another machine.
var forMachines = []Reason{ForSlot, ForMemory, ForMachine, ForTurn}

// Demand returns what runs that wait lack of machines. Those that wait for anything else aren't in it.
func (q *Queue) Demand() []Demand {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all demand
	for _, u := range q.units {
		room := u.most(u.running+u.waiting, 0) - u.running
		for _, l := range u.lines {
			if len(l.waiting) == 0 || u.slotless || !slices.Contains(forMachines, q.reasonOf(l)) {
				continue
			}
			begin := min(len(l.waiting), max(room, 0))
			for _, p := range l.waiting[:begin] {
				all.of(p.needs, q.machines).add(p)
			}
			room -= begin
		}
	}
	return all.sorted()
}

// reasonOf returns what the first run of a line is waiting for.
func (q *Queue) reasonOf(l *line) Reason {
	u, p := l.unit, l.waiting[0]
	open := u.open(q.machines)
	switch {
	case q.closed:
		return ForEnd
	case !u.mayResume():
		return ForUnit
	case q.machines.take(p.needs) && !open.take(p.needs):
		return ForAnswer
	case !p.slotless && !q.teamMayHold(l):
		return ForTeam
	case !p.slotless && !q.mayHold(l):
		return ForToken
	case !p.slotless && !q.machines.take(p.needs):
		return ForMachine
	case !p.slotless && !open.have(p.needs, p.rank):
		return ForSlot
	case !p.slotless && !open.fit(p) || q.patience.first != nil:
		return ForMemory
	}
	return ForTurn
}
