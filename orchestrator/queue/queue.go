package queue

import (
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
)

// Queue hands out the slots of machines: to the teams in turn, within a team to the units in turn, and within a unit
// first come, first served, so that who is busy doesn't starve the others. It is safe for concurrent use.
type Queue struct {
	mu       sync.Mutex
	machines machines
	closed   bool // no run begins any more
	units    map[string]*unitQueue
	teams    map[string]*team
	tokens   map[string]*token
	turn     []*team // those with a waiting run; the first is served next
	bounds   bounds
	patience patience

	heir *Permit // whose slot becomes free and is passed on to its line; nil for none
}

// New returns an empty queue with that many slots at the server itself.
func New(slots int) *Queue {
	return &Queue{
		machines: machines{{Machine: Machine{Slots: slots}}}, units: map[string]*unitQueue{},
		teams: map[string]*team{}, tokens: map[string]*token{},
	}
}

// Run is what the queue has to know of a run.
type Run struct {
	ID    string // for PlaceOf
	Team  string // to which it belongs
	Token string // with which it was asked for; "": none that has a name
	Unit  string
	Limit int   // runs of the unit at once; 0 is no limit, and the newest limit counts for all of them
	Bytes int64 // of memory that it may take; 0 is none that counts
	// Needs are labels without which no machine takes the run, and Rank says how much it prefers one, by its name, or
	// Never; nil: none. It is called with the queue's lock held.
	Needs []string
	Rank  func(machine string) int
	// Machine is where the run goes on that Occupy gets. One that isn't there counts as the server's own.
	Machine string
	// Slotless says that the run does nothing but wait for what it calls: it takes no slot, and
	// counts in its unit's limit alone, from its permit's grant until it leaves.
	Slotless bool
}

// Enter gives a run a place in the queue of its unit. At most bound runs of the unit may wait for a team: a run that
// would have to wait beyond that, or beyond the team's own bound, is refused with a Busy fault.
func (q *Queue) Enter(r Run, bound int) (*Permit, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.line(r)
	if err := q.takes(r, l, bound); err != nil {
		q.forget(l)
		return nil, err
	}
	return q.join(l, r), nil
}

// Takes returns the Busy fault with which Enter would refuse a run. It gives no place.
func (q *Queue) Takes(r Run, bound int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.line(r)
	defer q.forget(l)
	return q.takes(r, l, bound)
}

func (q *Queue) takes(r Run, l *line, bound int) error {
	if q.startsAtOnce(r, l) {
		return nil
	}
	if waiting := l.unit.waitingOf(l.team); waiting >= bound {
		return fault.New(fault.Busy, "%d runs of %q are waiting already", waiting, r.Unit).
			WithHint("try again later; the setting `queue` says how many may wait")
	}
	if h := &l.team.holder; !q.bounds.teams[h.name].hasPlace(h) {
		return errQueued("team", h)
	}
	if l.token != nil && !q.bounds.tokens[l.token.name].hasPlace(&l.token.holder) {
		return errQueued("token", &l.token.holder)
	}
	return nil
}

func errQueued(kind string, h *holder) error {
	return fault.New(fault.Busy, "%d runs of the %s %s are waiting already, which is the most", h.waiting, kind,
		h.name).
		WithHint("try again when some have begun; the operator's setting %ss.%s.queued says how many may wait", kind,
			h.name)
}

// Reenter gives a place to a run that was accepted before. It never refuses, however
// many wait.
func (q *Queue) Reenter(r Run) *Permit {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.join(q.line(r), r)
}

// Occupy gives a slot to a run that runs already, such as one that survived a restart,
// also when no slot or memory is free. This run may exceed the unit's limit.
func (q *Queue) Occupy(r Run) *Permit {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, m := newPermit(q, q.line(r), r), q.machines.named(r.Machine)
	if m == nil {
		m = q.machines[0]
	}
	q.grant(p, m)
	return p
}

// Close lets no further run begin. Who waits for a first slot waits until its context ends;
// runs that gave up their slot for a while get one again.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// Counts returns how many runs hold a slot, and how many wait for their first one by unit.
// A unit without waiting runs is not in the map.
func (q *Queue) Counts() (running int, waiting map[string]int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting = map[string]int{}
	for name, u := range q.units {
		if u.waiting > 0 {
			waiting[name] = u.waiting
		}
	}
	return q.machines.running(), waiting
}

// The methods below are called with the lock held.

// line returns that in which a run waits, a new one if there is none: of its team, or of its token if that has bounds,
// for what keeps its runs back is nothing to the others of the team.
func (q *Queue) line(r Run) *line {
	u := q.units[r.Unit]
	if u == nil {
		u = &unitQueue{unit: r.Unit, lines: map[party]*line{}, held: map[*machine]int{}}
		q.units[r.Unit] = u
	}
	u.limit = r.Limit // the newest limit counts
	t := q.teams[r.Team]
	if t == nil {
		t = &team{holder: holder{name: r.Team}}
		q.teams[r.Team] = t
	}
	of := party{team: t}
	if q.bounds.tokens[r.Token] != (Bounds{}) {
		of.token = q.tokenOf(r.Token)
	}
	l := u.lines[of]
	if l == nil {
		l = &line{unit: u, party: of}
		u.lines[of] = l
		t.lines++
	}
	return l
}

// startsAtOnce reports whether a new run of the line would get a slot at once.
func (q *Queue) startsAtOnce(r Run, l *line) bool {
	free := r.Slotless || l.unit.open(q.machines).have(r.Needs, r.Rank) && q.mayHold(l)
	return free && l.unit.mayResume() && len(l.waiting) == 0
}

func (q *Queue) join(l *line, r Run) *Permit {
	p := newPermit(q, l, r)
	l.waiting = append(l.waiting, p)
	l.unit.waiting++
	p.count(0, 1)
	q.schedule(l)
	q.dispatch()
	return p
}

// schedule puts a line whose first run waits behind the others of its team, and a team likewise.
func (q *Queue) schedule(l *line) {
	if len(l.waiting) == 1 {
		l.team.turn = append(l.team.turn, l)
	}
	if l.team.waiting == 1 {
		q.turn = append(q.turn, l.team)
	}
}

// dispatch hands out the free slots, and lets runs begin that take none.
func (q *Queue) dispatch() {
	for p, m := q.next(); p != nil; p, m = q.next() {
		q.grant(p, m)
	}
}

// inARow is how many slots may be passed on within a unit before the other units of its team have their turn.
const inARow = 16

// next takes the permit that is served next out of the queue, and the machine where: first of the runs that
// had a slot before, which are where they were, then of the teams in turn. It is nil when nobody may run.
func (q *Queue) next() (*Permit, *machine) {
	for _, m := range q.machines {
		for _, p := range m.back {
			if m.free() > 0 && p.line.unit.mayResume() && q.mayHold(p.line) {
				m.back = remove(m.back, p)
				return p, m
			}
		}
	}
	if q.closed {
		return nil, nil
	}
	for _, t := range q.turn {
		if p, m := q.nextOf(t); p != nil {
			return p, m
		}
	}
	return nil, nil
}

// nextOf is next for the runs of a team that have not begun: those of the unit to which a slot is passed on, then of
// the units in turn.
func (q *Queue) nextOf(t *team) (*Permit, *machine) {
	if l, m := q.inherits(t); l != nil {
		q.heir = nil
		m.handed++
		return q.take(l), m
	}
	for _, l := range t.turn {
		if !l.unit.mayResume() {
			continue
		}
		if m := q.choose(l, nil); m != nil {
			p := q.take(l)
			if !p.slotless {
				m.handed = 0
			}
			return p, m
		}
	}
	return nil, nil
}

// inherits returns the line of a team to which a slot is passed on, and whose first run may begin with it.
func (q *Queue) inherits(t *team) (*line, *machine) {
	if q.heir == nil {
		return nil, nil
	}
	l, m := q.heir.line, q.heir.machine
	may := l.team == t && len(l.waiting) > 0 && m != nil && m.handed < inARow && l.unit.mayResume()
	if may && q.choose(l, m) != nil {
		return l, m
	}
	return nil, nil
}

// take returns the first permit of a line. If more of its runs wait, the line goes behind the others of its team, and
// the team behind the other teams.
func (q *Queue) take(l *line) *Permit {
	p, t := l.waiting[0], l.team
	l.waiting = l.waiting[1:]
	l.unit.waiting--
	p.count(0, -1)
	t.turn = remove(t.turn, l)
	if len(l.waiting) > 0 {
		t.turn = append(t.turn, l)
	}
	q.turn = remove(q.turn, t)
	if t.waiting > 0 {
		q.turn = append(q.turn, t)
	}
	return p
}

func (q *Queue) grant(p *Permit, m *machine) {
	p.machine = m
	if !p.slotless {
		m.running++
		p.count(1, 0)
	}
	p.line.unit.running++
	p.state = granted
	p.take()
	close(p.granted)
}

func (q *Queue) vacate(p *Permit) {
	if !p.slotless {
		p.machine.running--
		p.count(-1, 0)
	}
	p.line.unit.running--
}

// withdraw takes a waiting permit out of the queue.
func (q *Queue) withdraw(p *Permit) {
	l, t := p.line, p.line.team
	if p.machine != nil { // it had a slot before
		p.machine.back = remove(p.machine.back, p)
		return
	}
	l.waiting = remove(l.waiting, p)
	l.unit.waiting--
	p.count(0, -1)
	if len(l.waiting) == 0 {
		t.turn = remove(t.turn, l)
	}
	if t.waiting == 0 {
		q.turn = remove(q.turn, t)
	}
}

// forget deletes what has no permit any more: a line, its unit, its team and its token.
func (q *Queue) forget(l *line) {
	if l.permits > 0 {
		return
	}
	q.forgetToken(l.token)
	delete(l.unit.lines, l.party)
	if len(l.unit.lines) == 0 {
		delete(q.units, l.unit.unit)
	}
	if l.team.lines--; l.team.lines == 0 {
		delete(q.teams, l.team.name)
	}
}

func (q *Queue) forgetToken(t *token) {
	if t != nil && t.permits == 0 {
		delete(q.tokens, t.name)
	}
}

func remove[T comparable](list []T, gone T) []T {
	return slices.DeleteFunc(list, func(one T) bool { return one == gone })
}

// unitQueue is the queue of one unit. It exists while the unit has a permit.
type unitQueue struct {
	unit    string
	limit   int // runs at once; 0 is no limit
	running int
	waiting int // runs, for their first slot
	lines   map[party]*line

	suspended int // runs that gave up their slot for a while
	// held has how many of those the waiting runs stay behind, by their machines: on others there may be what they wait
	// for.
	held map[*machine]int

	slotless bool // see Run
}

// waitingOf returns how many runs of the unit wait for a team, in all of its lines.
func (u *unitQueue) waitingOf(t *team) (n int) {
	for of, l := range u.lines {
		if of.team == t {
			n += len(l.waiting)
		}
	}
	return n
}

// open returns the machines on which no run of the unit holds further ones back.
func (u *unitQueue) open(all machines) (open machines) {
	if len(u.held) == 0 {
		return all
	}
	for _, m := range all {
		if u.held[m] == 0 {
			open = append(open, m)
		}
	}
	return open
}

// mayResume reports whether a run of the unit may begin, or go on that gave up its slot.
func (u *unitQueue) mayResume() bool { return u.limit == 0 || u.running < u.limit }

// party is whose runs of a unit wait in one line.
type party struct {
	team  *team
	token *token // nil: all of the team's that have no bounds of their own
}

// line is the runs of a unit that belong to one party. It exists while it has a permit.
type line struct {
	party
	unit    *unitQueue
	permits int       // that haven't left
	waiting []*Permit // for their first slot, in the order of arrival
}
