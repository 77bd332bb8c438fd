package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func hook(t *testing.T, s *Store, change func(*Webhook)) Webhook {
	t.Helper()
	id := newID()
	w := Webhook{ID: id, Team: "a", URL: "https://a.example/" + id, Host: "a.example", CreatedAt: epoch, Events: []string{"run.completed", "run.failed", "question.asked"}}
	if change != nil {
		change(&w)
	}
	stored, err := s.Webhooks.Add(t.Context(), w)
	must(t, err)
	return stored
}

// hookRun is a run of a team, which has ended or asked by the events.
func hookRun(t *testing.T, s *Store, n int, change func(*Run), events ...Event) Run {
	t.Helper()
	r := aRun(n)
	r.Root, r.Team, r.MadeBy, r.Outcome = r.ID, "a", "ada", ""
	if change != nil {
		change(&r)
	}
	must(t, s.Runs.Insert(t.Context(), r, Key{}, events...))
	return r
}

func says(kind, state string) Event {
	return NewEvent(epoch, kind, map[string]string{"state": state})
}

// hears returns the events of runs that a webhook has to tell of, as RUN EVENT, and notes that they are delivered.
func hears(t *testing.T, s *Store, id string) (all []string) {
	t.Helper()
	due, _, err := s.Deliveries.Due(t.Context(), epoch.Add(1000*time.Hour), Besides{}, 1000)
	must(t, err)
	for _, push := range due {
		for {
			d, err := s.Deliveries.Next(t.Context(), push.Seq)
			if fault.Is(err, fault.NotFound) || d.Webhook != id {
				break
			}
			must(t, err)
			if d.Push.URL != "https://a.example/"+id {
				t.Errorf("it is told at %s", d.Push.URL)
			}
			all = append(all, d.Push.Run+" "+HookedAs(d.Event))
			must(t, s.Deliveries.Note(t.Context(), Try{Push: push.Seq, Event: d.Event.Seq, At: epoch, Status: 200, Delivered: true}))
		}
	}
	slices.Sort(all)
	return all
}

func TestAWebhookTellsOfWhatItsTeamHas(t *testing.T) {
	t.Parallel()
	s := open(t)
	one := hookRun(t, s, 0, nil)
	whole, own := hook(t, s, nil), hook(t, s, func(w *Webhook) { w.OnlyBy = "ada" })
	ofOne, failed := hook(t, s, func(w *Webhook) { w.Run = one.ID }), hook(t, s, func(w *Webhook) { w.Events = []string{"run.failed"} })
	theirs := hook(t, s, func(w *Webhook) { w.Team = "b" })
	asked, done := says("question", "open"), says("end", "completed")
	root := hookRun(t, s, 1, nil, says("state", "idle"), asked, says("question", "answered"), done)
	child := hookRun(t, s, 2, func(r *Run) { r.Parent, r.Root = root.ID, root.ID }, asked, done)
	below := hookRun(t, s, 3, func(r *Run) { r.Parent, r.Root = one.ID, one.ID }, asked, done)
	bobs := hookRun(t, s, 4, func(r *Run) { r.MadeBy = "bob" }, says("end", "failed"))
	hookRun(t, s, 5, func(r *Run) { r.Team = "default" }, asked, done)
	must(t, s.Events.Append(t.Context(), one.ID, done))
	want := func(id string, all ...string) {
		t.Helper()
		slices.Sort(all)
		if diff := cmp.Diff(all, hears(t, s, id)); diff != "" {
			t.Error(diff)
		}
	}
	want(whole.ID, root.ID+" question.asked", root.ID+" run.completed", child.ID+" question.asked", below.ID+" question.asked", bobs.ID+" run.failed", one.ID+" run.completed")
	want(own.ID, root.ID+" question.asked", root.ID+" run.completed", child.ID+" question.asked", below.ID+" question.asked", one.ID+" run.completed")
	want(ofOne.ID, below.ID+" question.asked", one.ID+" run.completed")
	want(failed.ID, bobs.ID+" run.failed")
	want(theirs.ID)
	all, err := s.Webhooks.List(t.Context(), Owned{Teams: []string{"a"}}, 0, 0)
	must(t, err)
	if len(all) != 4 || all[3].Delivered != 6 || all[3].Waiting != 0 || all[3].Outcome != "delivered" || all[1].Run != one.ID {
		t.Errorf("%+v", all)
	}
	for _, r := range []Run{root, one} { // what clients of the run have named is apart
		if pushes, err := s.Pushes.List(t.Context(), r.ID); err != nil || len(pushes) > 0 {
			t.Errorf("%+v, %v", pushes, err)
		}
		_, err := s.Pushes.Get(t.Context(), r.ID, " "+whole.ID)
		wantKind(t, err, fault.NotFound)
		wantKind(t, s.Pushes.Delete(t.Context(), r.ID, " "+whole.ID), fault.NotFound)
	}
	must(t, s.Webhooks.Delete(t.Context(), whole.ID))
	wantKind(t, s.Webhooks.Delete(t.Context(), whole.ID), fault.NotFound)
	hookRun(t, s, 6, nil, done)
	want(whole.ID)
}

func TestTheWebhooksOfATeamAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t)
	r := hookRun(t, s, 1, nil)
	for range MaxWebhooks {
		hook(t, s, nil)
	}
	for range MaxPushes {
		hook(t, s, func(w *Webhook) { w.Run, w.Team = r.ID, "b" })
	}
	hook(t, s, func(w *Webhook) { w.Team = "b" })
	add := func(w Webhook) error { _, err := s.Webhooks.Add(t.Context(), w); return err }
	wantKind(t, add(Webhook{ID: "x", Team: "a"}), fault.TooLarge)
	wantKind(t, add(Webhook{ID: "x", Run: r.ID}), fault.TooLarge)
	wantKind(t, add(Webhook{ID: "x", Run: newID()}), fault.NotFound)
	r.Outcome, r.Finished = "success", true
	must(t, s.Runs.Save(t.Context(), r))
	wantKind(t, add(Webhook{ID: "x", Run: r.ID}), fault.Conflict)
	must(t, s.Runs.Delete(t.Context(), r.ID))
	if all, err := s.Webhooks.List(t.Context(), Owned{}, 0, 0); err != nil || len(all) != MaxWebhooks+1 {
		t.Errorf("%d are left, %v", len(all), err)
	}
}

// fails notes a failure of the first delivery that waits for a run.
func fails(t *testing.T, s *Store, r Run, try Try) {
	t.Helper()
	must(t, s.core.readers.QueryRowContext(t.Context(), "SELECT pushes.seq FROM pushes JOIN runs ON runs.seq = run WHERE runs.id = ? AND waiting > 0", r.ID).Scan(&try.Push))
	d, err := s.Deliveries.Next(t.Context(), try.Push)
	must(t, err)
	try.Event = d.Event.Seq
	must(t, s.Deliveries.Note(t.Context(), try))
}

func TestADeadReceiverIsAskedCalmlyAndGivenUp(t *testing.T) {
	t.Parallel()
	s := open(t)
	w := hook(t, s, nil)
	first, second := hookRun(t, s, 1, nil, says("end", "failed")), hookRun(t, s, 2, nil, says("end", "failed"))
	is := func() Webhook { t.Helper(); got, err := s.Webhooks.Get(t.Context(), w.ID); must(t, err); return got }
	for n := range calmFrom {
		fails(t, s, first, Try{At: epoch.Add(time.Duration(n) * time.Minute), Next: epoch.Add(time.Hour), Status: 503, Reason: "refused"})
	}
	if due, next, err := s.Deliveries.Due(t.Context(), epoch.Add(30*time.Minute), Besides{}, 10); err != nil || len(due) > 0 || !next.Equal(epoch.Add(time.Hour)) {
		t.Errorf("due are %v, next %v, %v", due, next, err)
	}
	if got := is(); got.Failures != calmFrom || !got.FailingAt.Equal(epoch) || got.Status != 503 || got.Outcome != "refused" || got.Waiting != 2 || !got.NextAt.Equal(epoch.Add(time.Hour)) {
		t.Errorf("%+v", got)
	}
	if due, _, err := s.Deliveries.Due(t.Context(), epoch.Add(time.Hour), Besides{}, 10); err != nil || len(due) != 1 {
		t.Errorf("when it may be there again, due are %v, %v", due, err)
	}
	fails(t, s, second, Try{At: epoch.Add(time.Hour), Delivered: true, Status: 200})
	if due, _, err := s.Deliveries.Due(t.Context(), epoch.Add(time.Hour), Besides{}, 10); err != nil || len(due) != 1 {
		t.Errorf("when it is there again, due are %v, %v", due, err)
	}
	fails(t, s, first, Try{At: epoch.Add(2 * time.Hour), Reason: "refused"}) // the last try of this one
	if got := is(); got.Lost != 1 || got.Delivered != 1 || got.Failures != 1 || !got.GivenUpAt.IsZero() {
		t.Errorf("%+v", got)
	}
	third := hookRun(t, s, 3, nil, says("end", "failed"))
	last := epoch.Add(2*time.Hour + maxWebhookFailing)
	fails(t, s, third, Try{At: last, Next: last.Add(time.Hour), Reason: "unanswered"})
	if got := is(); got.Lost != 2 || got.Waiting != 0 || !got.GivenUpAt.Equal(last) || got.Reason != "unanswered" {
		t.Errorf("%+v", got)
	}
	hookRun(t, s, 4, nil, says("end", "failed"))
	if got := is(); got.Waiting != 0 {
		t.Errorf("one that is given up is told: %+v", got)
	}
}

func TestAWebhookIsGivenUpForItsBacklogOrWhenItsReceiverHasGone(t *testing.T) {
	t.Parallel()
	s := open(t)
	w, other := hook(t, s, nil), hook(t, s, func(w *Webhook) { w.Team = "b" })
	r := hookRun(t, s, 1, nil, says("question", "open"))
	fails(t, s, r, Try{At: epoch, Next: epoch.Add(time.Hour), Reason: "gone", Status: 410})
	if got, err := s.Webhooks.Get(t.Context(), w.ID); err != nil || got.Reason != "gone" || got.Lost != 1 || got.Waiting != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range 3 {
		hookRun(t, s, 2+n, func(r *Run) { r.Team = "b" }, slices.Repeat([]Event{says("question", "open")}, maxPushWaiting-300)...)
	}
	if got, err := s.Webhooks.Get(t.Context(), other.ID); err != nil || got.Reason != "backlog" || got.Lost != maxWebhookWaiting+1 || got.Waiting != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if n, err := s.Pushes.Backlog(t.Context(), Owned{}); err != nil || n != 0 {
		t.Errorf("%d wait, %v", n, err)
	}
}

func TestWhichPushesAreLookedFor(t *testing.T) {
	t.Parallel()
	s := open(t)
	w := hook(t, s, nil)
	r := hookRun(t, s, 1, nil)
	put(t, s, aPush(r.ID, "named"))
	must(t, s.Events.Append(t.Context(), r.ID, says("end", "failed")))
	for _, c := range []struct {
		besides Besides
		want    string
	}{{Besides{}, "named.example a.example"}, {Besides{Named: true}, "a.example"}, {Besides{Webhooks: true}, "named.example"}, {Besides{Named: true, Webhooks: true}, ""}} {
		due, _, err := s.Deliveries.Due(t.Context(), epoch, c.besides, 10)
		must(t, err)
		got := ""
		for _, d := range due {
			got += " " + d.Host
		}
		if got != "" {
			got = got[1:]
		}
		if got != c.want {
			t.Errorf("%+v: %q", c.besides, got)
		}
	}
	if got := fmt.Sprint(hears(t, s, w.ID)); got != "["+r.ID+" run.failed]" {
		t.Error(got)
	}
}
