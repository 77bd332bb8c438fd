package web_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

var everyScope = []access.Scope{access.Read, access.Run, access.Upload, access.Admin}

// signInAs signs in with the token of a team, which may do everything in it.
func (p *page) signInAs(team string) *page {
	p.t.Helper()
	made, err := p.tokens.Add(access.Grant{Name: team, Scopes: everyScope, Teams: []string{team}})
	must(p.t, err)
	p.client = p.newBrowser()
	p.post("/ui/login", "token", made).leads(p.t, "./runs")
	return p
}

// teamScene is what the team a has: something of each kind that a page can be about.
func teamScene(p *page) scene {
	p.t.Helper()
	ctx := access.WithGrant(context.WithoutCancel(p.t.Context()), access.Grant{Name: "a", Scopes: everyScope, Teams: []string{"a"}})
	upload, _, err := p.svc.Units.Put(ctx, "alpha", tarOf(p.t, map[string]string{"Dockerfile": "FROM base:1\nCMD [\"actor\"]\n", "schema.json": unitFiles["actor/schema.json"], "agent.yaml": "description: canary\n"}))
	must(p.t, err)
	_, _, err = p.svc.Units.Put(ctx, "alpha-talk", tarOf(p.t, map[string]string{"Dockerfile": "FROM base:1\n", "agent.yaml": strings.Replace(talker["talker/agent.yaml"], "name: talker\n", "", 1)}))
	must(p.t, err)
	run := func(unit, input string) string {
		record, _, err := p.svc.Submit(ctx, spool.Submission{Unit: unit, Input: json.RawMessage(input), Timeout: time.Hour}) // none ends meanwhile
		must(p.t, err)
		return record.ID
	}
	asks, done, waits, own := run("teller", "{}"), run("actor", `{"do":"files","say":"canary"}`), run("actor", `{"do":"wait"}`), run("alpha", "{}")
	var asked api.QuestionPage
	testkit.Eventually(p.t, "it runs, or asks", func() bool {
		asked, err = p.svc.Questions.List(ctx, questions.Filter{Limit: 1})
		must(p.t, err)
		return len(asked.Questions) == 1
	})
	p.ended(done)
	p.ended(own)
	p.until(waits, func(r api.Record) bool { return r.State == api.Running })
	testkit.Eventually(p.t, "the end of what has its outcome", func() bool {
		running := 0
		for _, unit := range []string{"actor", upload.Name} {
			status, err := p.svc.Figures.OfUnit(ctx, unit)
			must(p.t, err)
			running += status.Running
		}
		return running == 1
	})
	timer, _ := orchestrator.FeatureOf[*schedules.Scheduler](p.svc)
	_, _, err = timer.Put(ctx, "alpha-plan", api.ScheduleSpec{Unit: "alpha", Cron: "@daily", Note: "canary"}, nil)
	must(p.t, err)
	talk, err := p.svc.Sessions.Create(ctx, "talker", nil)
	must(p.t, err)
	told, _ := orchestrator.FeatureOf[*webhooks.Feature](p.svc)
	hook, err := told.Add(ctx, api.WebhookRequest{URL: "https://hook.example/canary"})
	must(p.t, err)
	return scene{
		"runs": {asks, done, waits, own}, "units": {upload.Name, "alpha"}, "questions": {asked.Questions[0].ID},
		"schedules": {"a.alpha-plan", "alpha-plan"}, "chat": {talk.ID}, "webhooks": {hook.ID},
	}
}

func tarOf(t testing.TB, files map[string]string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	archive := tar.NewWriter(&b)
	for name, text := range files {
		must(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
		_, err := archive.Write([]byte(text))
		must(t, err)
	}
	must(t, archive.Close())
	return &b
}

// never is the id of something that never was, where another one is of something.
func never(id string) string {
	if strings.Contains(id, "alpha") {
		return strings.Replace(id, "alpha", "omega", 1)
	}
	return "01a1feba-b3df-731f-9394-1f77680bf6ce"
}

// once are texts that each answer has of its own: keys, times of the clock, and the hashes of what has them.
var once = regexp.MustCompile(`[A-Z2-7]{26}|\d\d:\d\d:\d\d|hash="[^"]*"|"hash":"[^"]*"`)

// asks sends what a page could, about something, and returns the answer as it would be about anything.
func (p *page) answers(method, path, id string) string {
	p.t.Helper()
	a := p.do(p.request(method, strings.ReplaceAll(path, "ID", id), fields("act", "cancel", "run", id, "unit", id, "message", "x", "action", "approve", "version", "x")))
	text := fmt.Sprint(a.Status, a.Header.Get("Location"), a.Header.Get("Content-Type"), "\n", a.body)
	return once.ReplaceAllString(strings.ReplaceAll(text, id, "ID"), "KEY")
}

// Each page and each action that is about something of another team's is answered as about what never was, and changes
// nothing. What is about nothing doesn't change with what another team has.
func TestThePageTellsATeamNothingOfAnother(t *testing.T) {
	t.Parallel()
	p := newPage(t, sceneFiles...).signInAs("b")
	ofB := p.client
	p.signInAs("a")
	ofA := p.client
	plain := []string{"/ui/runs", "/ui/units", "/ui/units/actor", "/ui/units/teller", "/ui/units/teller/flow", "/ui/units/talker", "/ui/questions", "/ui/schedules", "/ui/webhooks", "/ui/chat", "/ui/operations", "/ui/operations/prune?age=0s"}
	seen := func(by *http.Client) map[string]string {
		p.client = by
		told := map[string]string{}
		for _, path := range plain {
			told[path] = p.answers(http.MethodGet, path, "-none-")
		}
		return told
	}
	before := seen(ofB)
	all := teamScene(p)
	for path, now := range seen(ofB) {
		if diff := cmp.Diff(before[path], now); diff != "" {
			t.Errorf("%s has changed: %s", path, diff)
		}
	}
	hers := p.state()
	asked := 0
	for _, route := range p.web.Routes() {
		method, path, _ := strings.Cut(route.Pattern, " ")
		nouns := []string{strings.Split(path+"///", "/")[2]}
		if !strings.Contains(path, "{") {
			nouns = map[string][]string{"POST /ui/runs": {"runs"}, "POST /ui/chat": {"units"}}[route.Pattern]
		} else if path == "/ui/static/{name}" {
			continue
		}
		at := placeholder.ReplaceAllString(path, "ID")
		if strings.HasSuffix(at, "/") {
			at += "report.txt"
		}
		for _, noun := range nouns {
			leads := route.Pattern == "GET /ui/units/{name}/run" // to the unit's page, whatever there is
			told := leads
			for _, id := range all[noun] {
				p.client = ofB
				got, none := p.answers(method, at, id), p.answers(method, at, never(id))
				if diff := cmp.Diff(none, got); diff != "" || !strings.HasPrefix(got, "404") && strings.Contains(path, "{") && method == http.MethodGet && !leads {
					t.Errorf("%s %s: %s and %s", route.Pattern, id, got[:3], diff)
				}
				live := "/ui/live?once&page=" + strings.TrimPrefix(at, "/ui/")
				if got, none := p.answers(http.MethodGet, live, id), p.answers(http.MethodGet, live, never(id)); got != none {
					t.Errorf("%s %s live: %s", route.Pattern, id, cmp.Diff(none, got))
				}
				if p.client = ofA; method == http.MethodGet {
					told = told || p.answers(method, at, id) != none
				}
				asked++
			}
			if method == http.MethodGet && !told {
				t.Errorf("%s tells a nothing of its own, either", route.Pattern)
			}
		}
	}
	if p.unchanged(hers); asked < 60 {
		t.Errorf("only %d were asked", asked)
	}
}
