package queue

import (
	stdcmp "cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

// simulation has runs pass through a queue by a clock of its own, in milliseconds.
type simulation struct {
	t     *testing.T
	queue *Queue
	now   int
	runs  []*simulated
}

type simulated struct {
	team                 string
	permit               *Permit
	came, began, ends, d int // began -1: it waits
}

func (s *simulation) enter(team, unit string, takes int) *simulated {
	s.t.Helper()
	p, err := s.queue.Enter(Run{ID: fmt.Sprint(len(s.runs)), Team: team, Unit: unit}, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	r := &simulated{team: team, permit: p, came: s.now, began: -1, d: takes}
	s.runs = append(s.runs, r)
	return r
}

// step notes who has begun, ends whose time is over, and goes on to the next moment.
func (s *simulation) step(to int) {
	for {
		var going []*simulated
		for _, r := range s.runs {
			select {
			case <-r.permit.granted:
				if r.began < 0 {
					r.began, r.ends = s.now, s.now+r.d
				}
				if r.ends > 0 {
					going = append(going, r)
				}
			default:
			}
		}
		if len(going) == 0 {
			s.now = to
			return
		}
		next := slices.MinFunc(going, func(a, b *simulated) int { return stdcmp.Compare(a.ends, b.ends) })
		if next.ends > to {
			s.now = to
			return
		}
		s.now = next.ends
		next.ends = 0
		next.permit.PassOn()
	}
}

func waits(of []*simulated) (sorted []int) {
	for _, r := range of {
		sorted = append(sorted, r.began-r.came)
	}
	slices.Sort(sorted)
	return sorted
}

// A team's hundred runs don't make another one wait: its first run begins when the next one of those ends.
func TestTeamsHaveTheirTurn(t *testing.T) {
	t.Parallel()
	s := &simulation{t: t, queue: New(8)}
	for n := range 500 {
		s.enter("a", fmt.Sprint("u", n%3), 2000)
	}
	s.step(5000)
	var late []*simulated
	for range 10 {
		late = append(late, s.enter("b", "u0", 2000))
	}
	s.step(1_000_000)
	got := waits(late)
	if got[0] > 2000 || got[4] > 3000 {
		t.Errorf("the second team's runs wait %v ms", got)
	}
	if last := waits(s.runs); last[0] < 0 || last[len(last)-1] > 510/8*2000+2000 {
		t.Errorf("somebody waits %d ms, or has never begun: %d", last[len(last)-1], last[0])
	}
}

// In an hour of random load of ten teams nobody waits longer than it takes until each team has had as many slots.
func TestNoTeamStarves(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	s := &simulation{t: t, queue: New(6)}
	s.queue.SetBounds(map[string]Bounds{"t9": {Slots: 1}}, nil)
	longest := map[string]int{}
	for s.now < 3_600_000 {
		for team := range 10 {
			burst := 1
			if team == 0 {
				burst = 6 // one asks for much more than its part
			}
			if random.IntN(60) == 0 {
				for range burst {
					s.enter(fmt.Sprint("t", team), fmt.Sprint("u", random.IntN(4)), 500+random.IntN(3000))
				}
			}
		}
		s.step(s.now + 1000)
		s.runs = slices.DeleteFunc(s.runs, func(r *simulated) bool {
			if r.began >= 0 {
				longest[r.team] = max(longest[r.team], r.began-r.came)
			}
			return r.began >= 0 && r.ends == 0
		})
		if running, _ := s.queue.OfTeam("t9"); running > 1 {
			t.Fatalf("a team with one slot holds %d", running)
		}
	}
	for team := range 9 {
		if most := longest[fmt.Sprint("t", team)]; most > 60_000 && team > 0 {
			t.Errorf("a run of t%d waited %d ms", team, most)
		}
	}
}

func TestATeamIsBound(t *testing.T) {
	t.Parallel()
	q := New(4)
	q.SetBounds(map[string]Bounds{"a": {Slots: 2, Queued: 1}}, nil)
	enter := func(id, team string) (*Permit, error) { return q.Enter(Run{ID: id, Team: team, Unit: "u"}, 10) }
	var held []*Permit
	for n := range 3 {
		p, err := enter(fmt.Sprint("a", n), "a")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, p)
	}
	if _, err := enter("a3", "a"); !fault.Is(err, fault.Busy) {
		t.Errorf("beyond what may wait: %v", err)
	}
	if place, waits := q.PlaceOf("u", "a2"); !waits || place.Reason != ForTeam || place.Limit != 2 || place.Ahead != 0 {
		t.Errorf("it waits %v: %+v", waits, place)
	}
	for n := range 3 {
		if _, err := enter(fmt.Sprint("b", n), "b"); err != nil {
			t.Error(err)
		}
	}
	if place, _ := q.PlaceOf("u", "b2"); place.Ahead != 0 || place.Reason != ForSlot {
		t.Errorf("another team's place is %+v", place)
	}
	q.SetBounds(nil, nil) // the team's third run could begin, but no slot is free
	held[0].Leave()
	held[1].Leave()
	if running, waiting := q.OfTeam("a"); running != 1 || waiting != 0 {
		t.Errorf("%d run and %d wait", running, waiting)
	}
	held[2].Leave()
	if running, waiting := q.OfTeam("a"); running+waiting != 0 || q.teams["a"] != nil {
		t.Errorf("%d run and %d wait of a team that has left", running, waiting)
	}
}

// What keeps a token's runs back is nothing to the others of its team, of the same unit, too.
func TestATokenIsBoundWithinItsTeam(t *testing.T) {
	t.Parallel()
	q := New(4)
	q.SetBounds(map[string]Bounds{"a": {Slots: 3}}, map[string]Bounds{"ci": {Slots: 1, Queued: 2}})
	enter := func(id, token string) (*Permit, error) {
		return q.Enter(Run{ID: id, Team: "a", Token: token, Unit: "u"}, 10)
	}
	permits := map[string]*Permit{}
	for _, one := range []struct{ id, token string }{
		{"c0", "ci"}, {"c1", "ci"}, {"c2", "ci"}, {"m0", "me"}, {"n0", ""}, {"m1", "me"},
	} {
		p, err := enter(one.id, one.token)
		if err != nil {
			t.Fatal(one, err)
		}
		permits[one.id] = p
	}
	_, err := enter("c3", "ci")
	if public := fault.Public(err); !fault.Is(err, fault.Busy) || !strings.Contains(public.Hint, "tokens.ci.queued") {
		t.Errorf("beyond what may wait: %v, %s", err, public.Hint)
	}
	wants := func(when string, want map[string]Place) {
		t.Helper()
		got := map[string]Place{}
		for id := range permits {
			if place, waits := q.PlaceOf("u", id); waits {
				got[id] = place
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	wants("at first", map[string]Place{
		"c1": {Reason: ForTeam, Slots: 4, Limit: 3}, "c2": {Ahead: 1, Reason: ForTeam, Slots: 4, Limit: 3},
		"m1": {Reason: ForTeam, Slots: 4, Limit: 3},
	})
	permits["n0"].Leave()
	wants("with a slot for the team", map[string]Place{
		"c1": {Reason: ForTeam, Slots: 4, Limit: 3}, "c2": {Ahead: 1, Reason: ForTeam, Slots: 4, Limit: 3},
	})
	permits["m0"].Leave()
	wants("with another one", map[string]Place{
		"c1": {Reason: ForToken, Slots: 4, Limit: 1}, "c2": {Ahead: 1, Reason: ForToken, Slots: 4, Limit: 1},
	})
	permits["c0"].Leave()
	wants("with one for the token", map[string]Place{"c2": {Reason: ForToken, Slots: 4, Limit: 1}})
	q.SetBounds(nil, nil)
	wants("without bounds", map[string]Place{})
	if running, waiting := q.OfToken("ci"); running != 2 || waiting != 0 {
		t.Errorf("%d run and %d wait", running, waiting)
	}
	for _, p := range permits {
		p.Leave()
		p.Leave()
	}
	if running, waiting := q.OfToken("ci"); running+waiting != 0 || len(q.tokens)+len(q.teams)+len(q.units) != 0 {
		t.Errorf("it leaves %v, %v, %v", q.tokens, q.teams, q.units)
	}
}

// A run that waits when its token is bound counts for it, and keeps nobody of its team back.
func TestABoundOfATokenCountsWhatIsThere(t *testing.T) {
	t.Parallel()
	q := New(2)
	first := q.Occupy(Run{ID: "c0", Team: "a", Token: "ci", Unit: "u"})
	q.SetBounds(nil, map[string]Bounds{"ci": {Slots: 1}})
	if _, err := q.Enter(Run{ID: "c1", Team: "a", Token: "ci", Unit: "u"}, 10); err != nil {
		t.Fatal(err)
	}
	if place, waits := q.PlaceOf("u", "c1"); !waits || place.Reason != ForToken {
		t.Errorf("it waits %v: %+v", waits, place)
	}
	first.Leave()
	if _, waits := q.PlaceOf("u", "c1"); waits {
		t.Error("it waits on")
	}
}

// A token with bounds of its own gives its team no more room in the queue of a unit.
func TestATokensLineIsOfItsTeamsQueue(t *testing.T) {
	t.Parallel()
	q := New(0)
	q.SetBounds(nil, map[string]Bounds{"ci": {Slots: 1}})
	for n, token := range []string{"me", "ci", "me"} {
		_, err := q.Enter(Run{ID: fmt.Sprint(n), Team: "a", Token: token, Unit: "u"}, 2)
		if (err != nil) != (n == 2) || err != nil && !fault.Is(err, fault.Busy) {
			t.Errorf("the %dth, by %s: %v", n, token, err)
		}
	}
	if _, err := q.Enter(Run{ID: "b", Team: "b", Token: "you", Unit: "u"}, 2); err != nil {
		t.Errorf("another team's: %v", err)
	}
}
