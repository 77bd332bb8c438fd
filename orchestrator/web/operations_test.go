package web_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
)

// lacks fails the test if the answer says a text.
func (a answer) lacks(t testing.TB, texts ...string) answer {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			t.Errorf("%s says %q: %s", a.Request.URL, text, a.body)
		}
	}
	return a
}

func TestOperationsTellWhatGoesOnAndWhatWaits(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	p.get("/ui/operations").wants(t, 200, "Ready for runs", "0 of 2", "nothing has to wait", "No run has been asked for", "until somebody removes them")
	p.get("/ui/live?page=operations&once=true").wants(t, 200, `"key":"queue"`)
	p.begun()
	p.begun()
	waits := p.submit("wait", "")
	testkit.Eventually(t, "it waits", func() bool { stats, _ := p.svc.Figures.Stats(trusted.Context(t)); return stats.Queued == 1 })
	first := p.get("/ui/operations").wants(t, 200, "2 of 2", "Place 1 in the queue: all slots are taken, of which there are 2", `id="w-`+waits+`"`, `<rect width="100%"`, "1.2.3").body
	since := regexp.MustCompile(`data-since="[^"]*"|data-hash="[^"]*"`)
	if again := p.get("/ui/operations").body; strings.Join(since.FindAllString(first, -1), " ") != strings.Join(since.FindAllString(again, -1), " ") {
		t.Error("its parts differ although nothing has changed")
	}
}

func TestAnOperatorSeesWhatWouldGoBeforeItGoes(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn(access.Read, access.Run)
	id := p.ran("", "x")
	p.get("/ui/operations").wants(t, 200).lacks(t, "operations/prune")
	p.get("/ui/operations/prune?age=0s").wants(t, 403)
	p.post("/ui/operations/prune", "before", "2026-01-01T00:00:00Z").wants(t, 403)

	p.signIn()
	p.get("/ui/operations").wants(t, 200, "operations/prune")
	p.get("/ui/operations/prune?age=24h").wants(t, 200, "There is nothing to remove")
	p.get("/ui/operations/prune?age=soon").wants(t, 400, "168h")
	p.post("/ui/operations/prune").wants(t, 400)
	p.post("/ui/operations/prune", "before", "2999-01-01T00:00:00Z").wants(t, 400)
	testkit.Eventually(t, "the run is over, with its files", func() bool {
		return strings.Contains(p.get("/ui/operations/prune?age=0s").body, "Remove them")
	})
	would := p.get("/ui/operations/prune?age=0s").wants(t, 200, "<dd>1</dd>").body
	later := p.ran("", "y")
	before := regexp.MustCompile(`name="before" value="([^"]+)"`).FindStringSubmatch(would)
	p.post("/ui/operations/prune", "before", before[1]).wants(t, 200, "It is removed")
	p.post("/ui/operations/prune", "before", before[1]).wants(t, 200, "There was nothing left to remove")
	p.get("/ui/runs/"+id).wants(t, 404)
	p.get("/ui/runs/"+later).wants(t, 200)
	p.get("/ui/operations/prune?age=images").wants(t, 200)
}

func TestASchedule(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	p.get("/ui/schedules").wants(t, 200, "There is no schedule yet")
	keeper, _ := orchestrator.FeatureOf[*schedules.Scheduler](p.svc)
	_, _, err := keeper.Put(trusted.Context(t), "nightly", api.ScheduleSpec{
		Unit: "actor", Input: []byte(`{"say":"<b>"}`), Cron: "30 2 * * 1-5", Timezone: "Europe/Berlin", Note: "<i>mine</i>", Overlap: api.OverlapQueue,
	}, nil)
	must(t, err)
	p.get("/ui/schedules").wants(t, 200, "nightly", "30 2 * * 1-5, Europe/Berlin", "&lt;i&gt;mine").lacks(t, "<i>mine")
	shown := p.get("/ui/schedules/nightly").wants(t, 200, "it waits for the end", "None yet", "&lt;b&gt;", "Run now")
	if n := strings.Count(shown.body, " CE"); n != 5 {
		t.Errorf("it shows %d next times: %s", n, shown.body)
	}
	to := p.post("/ui/schedules/nightly/run").wants(t, 303).Header.Get("Location")
	run := strings.TrimPrefix(to, "../../runs/")
	p.ended(run)
	p.get("/ui/schedules/nightly").wants(t, 200, "somebody asked for it", "/runs/"+run, "Succeeded")
	p.get("/ui/schedules").wants(t, 200, "/runs/"+run)
	p.post("/ui/schedules/nightly/pause").leads(t, "../nightly")
	p.get("/ui/schedules/nightly").wants(t, 200, "Paused", "weren’t paused", "schedules/nightly/resume")
	p.post("/ui/schedules/nightly/resume").leads(t, "../nightly")

	t.Run("who may only read changes nothing", func(t *testing.T) {
		p.signIn(access.Read)
		p.get("/ui/schedules/nightly").wants(t, 200).lacks(t, "Run now", "Remove")
		for _, act := range []string{"run", "pause", "resume", "remove"} {
			p.post("/ui/schedules/nightly/"+act).wants(t, 403)
		}
		p.signIn()
	})
	p.post("/ui/schedules/nightly/remove").leads(t, "../../schedules")
	p.post("/ui/schedules/nightly/remove").leads(t, "../../schedules")
	p.get("/ui/schedules/nightly").wants(t, 404)
	p.post("/ui/schedules/nightly/run").wants(t, 404)
}
