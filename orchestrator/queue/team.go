package queue

// holder is whose runs are counted together: a team or a token.
type holder struct {
	name    string
	running int // runs that hold a slot
	waiting int // runs, for their first slot
}

// team is whose runs have their turn together. It exists while it has a permit.
type team struct {
	holder
	lines int
	turn  []*line // those with a waiting run; the first is served next
}

// token is by which runs were asked for. It exists while it has a permit.
type token struct {
	holder
	permits int
}

// Bounds are the most that a team or a token may have; 0 is no bound.
type Bounds struct {
	Slots  int // that its runs hold at once
	Queued int // runs that wait
}

func (b Bounds) hasSlot(h *holder) bool { return b.Slots == 0 || h.running < b.Slots }

func (b Bounds) hasPlace(h *holder) bool { return b.Queued == 0 || h.waiting < b.Queued }

// bounds are those of the teams and tokens that have any, by their names.
type bounds struct{ teams, tokens map[string]Bounds }

// SetBounds bounds teams and tokens by their names, from now on. Who has more goes on. A token's runs that wait by then
// keep their places among those of its team.
func (q *Queue) SetBounds(teams, tokens map[string]Bounds) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bounds = bounds{teams, tokens}
	q.dispatch()
}

// OfTeam returns how many slots a team holds, and how many of its runs wait for their first one.
func (q *Queue) OfTeam(name string) (running, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.teams[name]; t != nil {
		return t.running, t.waiting
	}
	return 0, 0
}

// OfToken is OfTeam for a token.
func (q *Queue) OfToken(name string) (running, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.tokens[name]; t != nil {
		return t.running, t.waiting
	}
	return 0, 0
}

// The methods below are called with the lock held.

// tokenOf returns a token, a new one if there is none; nil for "".
func (q *Queue) tokenOf(name string) *token {
	t := q.tokens[name]
	if t == nil && name != "" {
		t = &token{holder: holder{name: name}}
		q.tokens[name] = t
	}
	return t
}

// teamMayHold reports whether the team of a line may hold one more slot.
func (q *Queue) teamMayHold(l *line) bool { return q.bounds.teams[l.team.name].hasSlot(&l.team.holder) }

// mayHold reports whether a run of a line may hold one more slot, as far as its team and its token go.
func (q *Queue) mayHold(l *line) bool {
	return q.teamMayHold(l) && (l.token == nil || q.bounds.tokens[l.token.name].hasSlot(&l.token.holder))
}

func (h *holder) add(running, waiting int) {
	h.running += running
	h.waiting += waiting
}

// count changes how many runs of the permit's team and token hold a slot, and how many wait.
func (p *Permit) count(running, waiting int) {
	p.line.team.add(running, waiting)
	if p.token != nil {
		p.token.add(running, waiting)
	}
}
