package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

func TestAQueuedRunTellsWhyItWaits(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	began := []string{s.begin(), s.begin()} // as many as there are slots
	var ids []string
	for range 2 {
		a := s.do("POST", "/v1/runs", `{"unit":"actor","input":{}}`).wants(t, 202)
		ids = append(ids, decode[api.Record](t, a).ID)
	}
	for i, id := range ids {
		got := decode[api.Record](t, s.do("GET", "/v1/runs/"+id, "").wants(t, 200))
		want := &api.Waiting{Place: i + 1, Reason: "slots", Message: "all slots are taken, of which there are 2", Since: got.CreatedAt}
		if diff := cmp.Diff(want, got.Waiting); diff != "" {
			t.Error(diff)
		}
	}
	places := map[string]int{}
	for _, r := range decode[api.Page](t, s.do("GET", "/v1/runs", "").wants(t, 200)).Runs {
		if r.Waiting != nil {
			places[r.ID] = r.Waiting.Place
		}
	}
	if diff := cmp.Diff(map[string]int{ids[0]: 1, ids[1]: 2}, places); diff != "" {
		t.Error(diff)
	}
	for range began {
		s.release <- struct{}{}
	}
	for _, id := range slices.Concat(began, ids) {
		if got := decode[api.Record](t, s.do("GET", "/v1/runs/"+id+"?wait=3m", "").wants(t, 200)); got.Waiting != nil || got.Outcome != api.Success {
			t.Errorf("%s waits for %+v", got.State, got.Waiting)
		}
	}
}

func TestARunThatIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	a := s.do("POST", "/v1/runs?wait=3m", `{"unit":"actor","input":{},"timeout":"2m"}`).wants(t, 200)
	record := decode[api.Record](t, a)
	if record.Outcome != api.Success || a.Header.Get("Location") != "/v1/runs/"+record.ID {
		t.Errorf("%s %s", a.Header.Get("Location"), a.body)
	}
	if got := s.do("GET", "/v1/runs/"+record.ID+"/output", "").wants(t, 200).body; got != "{\"n\":1}\n" {
		t.Errorf("output %q", got)
	}
	page := decode[api.Page](t, s.do("GET", "/v1/runs?unit=actor&state=completed,failed&limit=1&active=false", "").wants(t, 200))
	if len(page.Runs) != 1 || page.Runs[0].ID != record.ID || page.Runs[0].Status != "completed" || record.Status != "completed" {
		t.Errorf("listed %+v", page.Runs)
	}
	if page := decode[api.Page](t, s.do("GET", "/v1/runs?state=queued", "").wants(t, 200)); len(page.Runs) != 0 {
		t.Errorf("queued are %+v", page.Runs)
	}
}

func TestARunThatFails(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	record := s.run(`{"do":"fail"}`)
	if record.Outcome != api.CapsuleError {
		t.Errorf("outcome %s", record.Outcome)
	}
	s.do("GET", "/v1/runs/"+record.ID+"/output", "").wants(t, 404)
	s.do("POST", "/v1/runs/"+record.ID+"/cancel", "").wants(t, 409)
}

func TestHowManyRunsEndedHow(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.run(`{"do":"fail"}`)
	for range 2 {
		s.run(`{"do":"files","say":"x"}`)
	}
	facet := decode[api.Facet](t, s.do("GET", "/v1/runs/counts?by=outcome&unit=actor&roots=true", "").wants(t, 200))
	want := api.Facet{By: "outcome", Counts: []api.FacetCount{{Value: "success", Runs: 2}, {Value: "capsule_error", Runs: 1}}, Runs: 3}
	if diff := cmp.Diff(want, facet); diff != "" {
		t.Error(diff)
	}
	for query, status := range map[string]int{"": 422, "?by=record": 422, "?by=outcome&by=state": 400, "?of=outcome": 400, "?by=outcome&limit=x": 400} {
		if a := s.do("GET", "/v1/runs/counts"+query, ""); a.StatusCode != status {
			t.Errorf("%s: %d", query, a.StatusCode)
		}
	}
	unit := decode[api.Unit](t, s.do("GET", "/v1/units/actor", "").wants(t, 200))
	if l := unit.Status.Lately; l == nil || l.Runs != 3 || l.Succeeded != 2 || l.P50 < 0 || l.P95 < l.P50 || l.Models != nil {
		t.Errorf("lately: %+v", l)
	}
}

func TestARunThatGoesOn(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := s.begin()
	s.do("GET", "/v1/runs/"+id+"/output", "").wants(t, 409)
	if a := s.do("POST", "/v1/runs?wait=1ms", `{"unit":"actor","input":{"do":"wait"}}`); a.StatusCode != http.StatusAccepted {
		t.Errorf("a wait that was too short: %d", a.StatusCode)
	}
	if a := s.do("POST", "/v1/runs/"+id+"/cancel", `{"reason":"enough"}`); a.StatusCode != http.StatusAccepted {
		t.Errorf("cancel: %d", a.StatusCode)
	}
	events := s.do("GET", "/v1/runs/"+id+"/events", "").wants(t, 200).body
	if !strings.Contains(events, `{"state":"cancelled","outcome":"cancelled"}`) || !strings.Contains(events, "enough") {
		t.Errorf("events %s", events)
	}
}

func TestTheRunGoesOnWhenItsClientGoes(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	ctx, leave := contextWithCancel(t)
	r := s.request("POST", "/v1/runs?wait=1m", `{"unit":"actor","input":{"do":"wait"}}`).WithContext(ctx)
	gone := make(chan error, 1)
	go func() {
		resp, err := client.Do(r)
		if err == nil {
			resp.Body.Close()
		}
		gone <- err
	}()
	page := func() api.Page {
		return decode[api.Page](t, s.do("GET", "/v1/runs", "").wants(t, 200))
	}
	s.until(func() bool { runs := page().Runs; return len(runs) == 1 && runs[0].State == api.Running })
	leave()
	if err := <-gone; err == nil {
		t.Error("the client did not go")
	}
	s.release <- struct{}{}
	s.until(func() bool { return page().Runs[0].Outcome == api.Success })
}

func TestAKeyMakesOneRun(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	const key = "Idempotency-Key: k-1"
	first := s.run(`{"say":"x"}`, key)
	again := s.do("POST", "/v1/runs?wait=3m", `{"unit":"actor","input":{"say":"x"}}`, key).wants(t, 200)
	if decode[api.Record](t, again).ID != first.ID || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("another run: %s", again.body)
	}
	s.do("POST", "/v1/runs", `{"unit":"actor","input":{"say":"y"}}`, key).wants(t, 422)
	for _, bad := range []string{strings.Repeat("k", 256), "has space", "é"} {
		s.do("POST", "/v1/runs", `{"unit":"actor"}`, "Idempotency-Key: "+bad).wants(t, 400)
	}
}

func TestRerun(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	first := s.run(`{"say":"x"}`)
	a := s.do("POST", "/v1/runs/"+first.ID+"/rerun?wait=3m", "").wants(t, 200)
	second := decode[api.Record](t, a)
	if second.RerunOf != first.ID || a.Header.Get("Location") != "/v1/runs/"+second.ID {
		t.Errorf("%+v", second)
	}
}

func TestSubmissionsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *Options) { o.PayloadBytes = 1 << 10 })
	deep := strings.Repeat("[", 100_000)
	cases := []struct {
		name, body string
		status     int
		says       string
	}{
		{"no JSON", `{"unit":`, 400, "line 1"},
		{"an empty body", ``, 400, "Content-Type"},
		{"a twin", `{"unit":"actor","unit":"other"}`, 400, "twice"},
		{"a twin in the input", `{"unit":"actor","input":{"do":"a","do":"b"}}`, 400, "twice"},
		{"another spelling", `{"Unit":"actor"}`, 400, "not known"},
		{"a field too many", `{"unit":"actor","inputs":{}}`, 400, "not known"},
		{"no unit", `{"input":{}}`, 400, "no unit"},
		{"a unit of the wrong type", `{"unit":7}`, 400, "wrong type"},
		{"a timeout without a unit", `{"unit":"actor","timeout":"30"}`, 400, "timeout"},
		{"a timeout below zero", `{"unit":"actor","timeout":"-1s"}`, 400, "timeout"},
		{"JSON that is 100,000 deep", `{"unit":"actor","input":{"a":` + deep + `}}`, 413, "more than"},
		{"JSON that is 100 deep", `{"unit":"actor","input":{"a":` + deep[:100] + `}}`, 400, "deep"},
		{"an input that isn't an object", `{"unit":"actor","input":[1]}`, 422, "object"},
		{"an input that breaks the contract", `{"unit":"actor","input":{"do":7}}`, 422, "contract"},
		{"an input over the limit", `{"unit":"actor","input":{"say":"` + strings.Repeat("x", 30<<10) + `"}}`, 413, "more than"},
		{"a unit that is not there", `{"unit":"nobody"}`, 404, "nobody"},
		{"a unit with a path for a name", `{"unit":"../../etc"}`, 422, "image tag"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := s.do("POST", "/v1/runs", c.body).wants(t, c.status)
			if !strings.Contains(a.body, c.says) {
				t.Errorf("it doesn't say %q: %s", c.says, a.body)
			}
		})
	}
}

func TestQueriesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for _, query := range []string{
		"limit=0", "limit=1001", "limit=x", "state=done", "state=running,", "stat=running", "active=yes", "since=yesterday",
		"parent=../x", "limit=1&limit=2", "a=%zz", "unit=" + strings.Repeat("u", 600),
	} {
		s.do("GET", "/v1/runs?"+query, "").wants(t, 400)
	}
	s.do("GET", "/v1/runs?cursor=garbage", "").wants(t, 422)
	for _, wait := range []string{"6m", "-1s", "30", "x"} {
		s.do("POST", "/v1/runs?wait="+wait, `{"unit":"actor"}`).wants(t, 400)
	}
}
