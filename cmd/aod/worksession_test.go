package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// talkersAt returns a fleet with units that are talked with.
func talkersAt(t *testing.T, grace string) *fleet {
	t.Helper()
	f := fleetOf(t, grace)
	f.addTalker("living", keptAlive)
	f.addTalker("asking", askPeople+keptAlive)
	f.addTalker("resuming", resumable+keptAlive)
	f.start()
	return f
}

// crash kills the server, and starts it again.
func (f *fleet) crash() {
	f.kill()
	f.start()
}

// living returns how many containers of a session there are at a worker.
func (w *far) living(session string) int {
	refs, err := w.engine.ContainersByLabel(context.Background(), map[string]string{runtime.LabelRun: session})
	if err != nil {
		w.fleet.t.Fatal(err)
	}
	return len(refs)
}

// hasSession reports whether a worker has files of a session.
func (w *far) hasSession(session string) bool {
	_, err := os.Lstat(filepath.Join(w.data, "worker", "sessions", session))
	return err == nil
}

// The turns of a session go on where its container is, over every process that ends, and nothing is left of it.
func TestASessionLivesAtItsWorker(t *testing.T) {
	f := talkersAt(t, "1m")
	one, two := f.worker("one", 2), f.worker("two", 4)
	session := f.converse("living")
	first := f.hears(session, "good day", "heard 1, told 1: good day")
	has, other := one, two
	if first.Worker == "two" {
		has, other = two, one
	}
	if text := f.transcript(first.ID); text != "heard 1, told 1: good day" {
		t.Errorf("it told %q", text)
	}
	for i, between := range []func(){func() {}, has.again, f.crash, func() { has.leave(); f.crash(); has.begin(); has.ready() }} {
		between()
		r := f.hears(session, "next", "heard "+string(rune('2'+i))+", told "+string(rune('2'+i))+": next")
		if r.Worker != has.name || has.living(session) != 1 || other.living(session) != 0 {
			t.Fatalf("turn %d at %q", r.Turn, r.Worker)
		}
	}
	f.endSession(session)
	testkit.Eventually(t, "nothing is left of the session", func() bool { return has.living(session) == 0 })
}

// What a program may do is asked at the server, over its end and the worker's.
func TestAProgramAtAWorkerAsksForAPermission(t *testing.T) {
	f := talkersAt(t, "1m")
	w := f.worker("big", 2)
	for _, between := range []func(){func() {}, f.crash, w.again} {
		record, err := f.submit(t.Context(), client.Submission{Unit: "asking", Input: []byte(`{"message": "may I well"}`)})
		if err != nil {
			t.Fatal(err)
		}
		q := f.question(record.ID)
		between()
		if err := f.client.Questions.Answer(t.Context(), q.ID, api.Answer{Action: "allow"}); err != nil {
			t.Fatal(err)
		}
		r := f.await(record.ID)
		f.replied(r, "well: heard 1, told 1: may I well allow")
		if text := f.transcript(r.ID); text != "well: heard 1, told 1: may I well allow" {
			t.Errorf("it told %q", text)
		}
	}
}

// A session whose worker is lost goes on at another one, with what its programs remember; where its program can't take
// it up again, it is over.
func TestASessionGoesOnAtAnotherWorker(t *testing.T) {
	f := talkersAt(t, "2s")
	one := f.worker("one", 4)
	resumed, kept := f.converse("resuming"), f.converse("living")
	f.hears(resumed, "good day", "heard 1, told 1: good day")
	f.hears(kept, "good day", "heard 1, told 1: good day")
	one.road.is(-1)
	one.leave()
	two := f.worker("two", 4)
	r := f.hears(resumed, "again", "heard 1, told 2: again")
	if r.Worker != "two" {
		t.Errorf("it was at %q", r.Worker)
	}
	if r := f.await(f.say(kept, "again")); r.Outcome != api.CapsuleError {
		t.Errorf("%s %+v", r.Outcome, r.Error)
	}
	one.road.heals()
	one.begin()
	one.ready()
	testkit.Eventually(t, "the first worker has nothing more of them", func() bool {
		return !one.hasSession(resumed) && !one.hasSession(kept)
	})
	f.endSession(resumed)
	testkit.Eventually(t, "nothing is left of it", func() bool { return !two.hasSession(resumed) })
}

// What turns have made of their project goes on at another worker, in one container and in one for each turn, and so do
// turns that two workers take in turn.
func TestTheProjectOfASessionGoesOnAtAnotherWorker(t *testing.T) {
	f := fleetOf(t, "2s")
	f.addEditor("editor", "access: read-write\n", true)
	f.addEditor("fresh", "access: read-write\n", false)
	f.start()
	dir := linkedProject(t)
	one := f.worker("one", 2)
	sessions := []string{f.converseOn("editor", dir), f.converseOn("fresh", dir)}
	for _, session := range sessions {
		f.hears(session, "append a.txt new.txt", "/workspace/project; a.txt link new.txt sub/b.txt; ")
	}
	two := f.worker("two", 2)
	f.aod("worker", "drain", "one")
	for _, session := range sessions {
		r := f.hears(session, "append a.txt", "/workspace/project; a.txt link new.txt sub/b.txt; ")
		if r.Worker != "two" || r.Changes == nil || r.Changes.Files != 2 {
			t.Errorf("at %q, changes %+v", r.Worker, r.Changes)
		}
		contains(t, f.aod("diff", session), "M a.txt 14 B\n", "A new.txt 5 B\n")
	}
	f.aod("worker", "undrain", "one")
	f.aod("worker", "drain", "two")
	for _, session := range sessions {
		if r := f.hears(session, "append a.txt", "/workspace/project; a.txt link new.txt sub/b.txt; "); r.Worker != "one" {
			t.Errorf("at %q", r.Worker)
		}
		contains(t, f.aod("diff", session), "M a.txt 19 B\n")
		f.endSession(session)
		testkit.Eventually(t, "nothing is left of it", func() bool { return !one.hasSession(session) && !two.hasSession(session) })
	}
}
