package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/quotas"
)

func TestWhatWasUsedAndWhoDidWhat(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.signIn(access.Admin)
	p.get("/ui/usage").wants(t, 200, "Nothing was used")
	id := p.ran("files", "a.txt")
	testkit.Eventually(t, "the run is counted", func() bool { return strings.Contains(p.get("/ui/usage?by=unit&days=7").body, "1 of 1 run") })
	p.get("/ui/usage?by=unit").wants(t, 200, "actor", "<option selected>unit", "usage.csv?by=unit&amp;days=30")
	table := p.get("/ui/usage.csv?by=unit").wants(t, 200, "unit,runs,wait_ms,run_ms,cpu_ms,calls,tokens,cost\nactor,1,")
	if kind := table.Header.Get("Content-Disposition"); kind != "attachment; filename=usage-by-unit.csv" {
		t.Error(kind)
	}
	p.get("/ui/usage").lacks(t, "What is left")
	p.svc.Quotas.Set(quotas.Given{Teams: map[string]quotas.Bounds{"default": {Queued: 7}}})
	p.get("/ui/usage").wants(t, 200, "What is left", "teams.default.queued", "0 of 7", "when it is given back")
	p.get("/ui/usage?by=everything&days=x").wants(t, 200, "<option selected>unit")
	p.post("/ui/runs/"+id+"/again").wants(t, http.StatusSeeOther)
	p.get("/ui/audit").wants(t, 200, "start run", id[:8])
	p.get("/ui/audit?by=token:nobody").wants(t, 200, "Nothing is in the audit of that")
	p.get("/ui/audit?before=x").wants(t, 400)
	p.signIn(access.Read)
	p.get("/ui/audit").wants(t, 403)
	p.get("/ui/usage").wants(t, 200).lacks(t, "/audit")
}
