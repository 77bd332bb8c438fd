package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
)

var allStates = []api.State{
	api.Idle, api.Starting, api.Running, api.Completed, api.Failed, api.Timeout, api.Cancelled, api.Cleanup,
}

// legalWays are the transitions that a run may make, written down a second time.
var legalWays = map[api.State]string{
	api.Idle:      "starting failed timeout cancelled",
	api.Starting:  "starting running failed timeout cancelled",
	api.Running:   "completed failed timeout cancelled",
	api.Completed: "cleanup",
	api.Failed:    "starting failed timeout cancelled cleanup",
	api.Timeout:   "cleanup",
	api.Cancelled: "cleanup",
	api.Cleanup:   "cleanup idle",
}

func TestARunEntersWhatMayFollowAndNothingElse(t *testing.T) {
	for _, from := range allStates {
		for _, to := range allStates {
			legal := strings.Contains(" "+legalWays[from]+" ", " "+string(to)+" ")
			t.Run(string(from)+" to "+string(to), func(t *testing.T) {
				host, told := &fakeHost{}, 0
				r := runIn(from)
				r.LedBy(host, func(Event) { told++ })
				before := r.Record.State
				err := r.Enter(to, "why")
				if legal && (err != nil || r.State() != to || len(host.saved) != 1 || told != 1) {
					t.Errorf("error %v, now %s, saved %v, told %d times", err, r.State(), host.saved, told)
				}
				if legal {
					return
				}
				if err == nil || !strings.Contains(err.Error(), "can't go from "+string(from)+" to "+string(to)) {
					t.Errorf("error %v", err)
				}
				if r.State() != from || r.Record.State != before || len(host.saved) > 0 || told > 0 {
					t.Errorf("something of it was done: now %s, record %s, saved %v, told %d times", r.State(), r.Record.State, host.saved, told)
				}
			})
		}
	}
}

func TestTheRecordGoesOnShowingHowTheRunEnded(t *testing.T) {
	for _, c := range []struct {
		to, recorded api.State
		from         api.State
	}{
		{from: api.Idle, to: api.Starting, recorded: api.Starting},
		{from: api.Running, to: api.Timeout, recorded: api.Timeout},
		{from: api.Timeout, to: api.Cleanup, recorded: api.Timeout},
		{from: api.Cleanup, to: api.Idle, recorded: api.Timeout},
	} {
		r := runIn(c.from)
		r.LedBy(&fakeHost{}, nil)
		if c.from == api.Cleanup {
			r.Record.State = api.Timeout
		}
		if err := r.Enter(c.to, ""); err != nil {
			t.Fatal(err)
		}
		if r.Record.State != c.recorded || r.State() != c.to {
			t.Errorf("%s to %s: the record says %s, the run is %s", c.from, c.to, r.Record.State, r.State())
		}
	}
}

func TestATransitionTellsWhichAttemptItIsOf(t *testing.T) {
	for attempt, want := range map[int]int{0: 0, 1: 0, 2: 2, 7: 7} {
		host := &fakeHost{}
		r := runIn(api.Failed)
		r.Attempt = attempt
		r.LedBy(host, nil)
		if err := r.Enter(api.Starting, "again"); err != nil {
			t.Fatal(err)
		}
		if got := host.saved[0]; got.Attempt != want || got.Reason != "again" || got.At.IsZero() || got.At.Location().String() != "UTC" {
			t.Errorf("attempt %d: %+v", attempt, got)
		}
	}
}

func TestWhatIsNotStoredIsSaid(t *testing.T) {
	full := errors.New("the disk is full")
	r := runIn(api.Starting)
	r.LedBy(&fakeHost{err: full}, nil)
	if err := r.Enter(api.Running, ""); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

func TestARunIsOverWhenItIsCleanedUp(t *testing.T) {
	for _, c := range []struct {
		name string
		in   api.State
		out  api.Outcome
		over bool
	}{
		{"accepted", api.Idle, "", false},
		{"on its way", api.Running, "", false},
		{"with its outcome, and not cleaned up", api.Completed, api.Success, false},
		{"while it is cleaned up", api.Cleanup, api.Success, false},
		{"cleaned up", api.Idle, api.Success, true},
	} {
		r := runIn(c.in)
		r.Record.Outcome = c.out
		if r.Over() != c.over || Over(r.Record) != c.over {
			t.Errorf("%s: over is %v", c.name, r.Over())
		}
	}
	if Over(api.Record{Outcome: api.Success}) {
		t.Error("a record without transitions is over")
	}
	if state := (&Run{}).State(); state != api.Idle {
		t.Errorf("a run without transitions is %s", state)
	}
}

// runIn returns a run that is in a state.
func runIn(state api.State) *Run {
	return &Run{
		ID: "r1", Unit: &unit.Unit{Name: "u"},
		Record: api.Record{ID: "r1", Unit: "u", State: state, Transitions: []api.Transition{{State: state}}},
	}
}

// fakeHost is a Host that remembers.
type fakeHost struct {
	Host
	saved []api.Transition
	noted []Event
	err   error // of Save
}

func (h *fakeHost) Save(transition api.Transition) error {
	h.saved = append(h.saved, transition)
	return h.err
}

func (h *fakeHost) Note(event Event) { h.noted = append(h.noted, event) }
