package turns

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

func TestOfNineSessionsTheIdlestGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 8
		r := New(Options{Living: bound, Logger: slog.New(slog.DiscardHandler)})
		began := time.Now()
		talk := func(id string, at time.Time) *Session {
			s, err := r.Begin(store.Session{ID: id}, nil, run.SessionTerms{Idle: time.Hour, Resumes: true})
			if err != nil {
				t.Fatal(err)
			}
			s.join("turn of "+id, 1, at)
			return s
		}
		var all []*Session
		for i := range bound {
			s := talk(fmt.Sprint(i), began)
			if now, idlest := s.begin(s.turns[0]); !now || idlest != nil {
				t.Fatalf("session %d: %v, %v", i, now, idlest)
			}
			all = append(all, s)
		}
		ninth := talk("ninth", began)
		if now, idlest := ninth.begin(ninth.turns[0]); now || idlest != nil {
			t.Fatalf("while all are busy: %v, %v", now, idlest)
		}
		for _, s := range []*Session{all[5], all[2]} { // the fifth is idle for longer
			s.leave(s.turns[0])
			time.Sleep(time.Millisecond)
		}
		now, idlest := ninth.begin(ninth.turns[0])
		if now || idlest != all[5] {
			t.Fatalf("%v, %v", now, idlest)
		}
		if now, other := ninth.begin(ninth.turns[0]); now || other != all[2] {
			t.Errorf("while that is being ended: %v, %v", now, other) // nobody ends one twice
		}
		all[5].rested()
		if now, _ := ninth.begin(ninth.turns[0]); !now {
			t.Error("its place isn't given to the ninth")
		}
	})
}
