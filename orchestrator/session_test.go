package orchestrator

import (
	"fmt"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/store"
)

func TestOfNineSessionsTheIdlestGoesFirst(t *testing.T) {
	const bound = 8
	var d desk
	began := time.Now()
	talk := func(id string, at time.Time) *session {
		s := &session{row: store.Session{ID: id}, terms: run.SessionTerms{Idle: time.Hour, Resumes: true}}
		if err := d.add(s, false); err != nil {
			t.Fatal(err)
		}
		d.join(s, "turn of "+id, 1, at)
		return s
	}
	var all []*session
	for i := range bound {
		s := talk(fmt.Sprint(i), began)
		if now, idlest := d.begin(s, s.turns[0], bound); !now || idlest != nil {
			t.Fatalf("session %d: %v, %v", i, now, idlest)
		}
		all = append(all, s)
	}
	ninth := talk("ninth", began)
	if now, idlest := d.begin(ninth, ninth.turns[0], bound); now || idlest != nil {
		t.Fatalf("while all are busy: %v, %v", now, idlest)
	}
	for _, s := range []*session{all[5], all[2]} { // the fifth is idle for longer
		d.leave(s, s.turns[0])
		time.Sleep(time.Millisecond)
	}
	now, idlest := d.begin(ninth, ninth.turns[0], bound)
	if now || idlest != all[5] {
		t.Fatalf("%v, %v", now, idlest)
	}
	if now, other := d.begin(ninth, ninth.turns[0], bound); now || other != all[2] {
		t.Errorf("while that is being ended: %v, %v", now, other) // nobody ends one twice
	}
	d.rested(all[5], true)
	if now, _ := d.begin(ninth, ninth.turns[0], bound); !now {
		t.Error("its place isn't given to the ninth")
	}
}
