package web_test

import (
	"fmt"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// ranBy is ran of a run that the holder of a token asked for.
func (p *page) ranBy(name, do string) string {
	p.t.Helper()
	record, _, err := p.svc.Submit(access.WithClient(p.t.Context(), name), spool.Submission{
		Unit: "actor", Input: fmt.Appendf(nil, `{"do":%q}`, do),
	})
	must(p.t, err)
	p.until(record.ID, func(r api.Record) bool { return r.Outcome != "" })
	return record.ID
}

func TestRunsOfOnePersonAreListed(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	ada, bob, nobody := p.ranBy("ada", ""), p.ranBy("b & b", "fail"), p.ran("", "")
	p.get("/ui/runs").wants(t, 200, "r-"+ada, "r-"+bob, "r-"+nobody, `href="?by=b&#43;%26&#43;b"`)
	p.get("/ui/runs?by=b+%26+b").wants(t, 200, "r-"+bob, `name="by" placeholder="anybody" value="b &amp; b"`,
		`href="?by=b&#43;%26&#43;b&amp;state=failed"`).lacks(t, "r-"+ada, "r-"+nobody)
	p.get("/ui/runs?by=b+%26+b&state=completed").wants(t, 200, "No run is like that", `Failed <span>1</span>`)
}
