package web_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

func TestARunIsComparedWithAnother(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	first := p.ran("", "<b>old</b>")
	p.get("/ui/runs/"+first).wants(t, 200, `href="../runs/`+first+`/compare"`)
	p.get("/ui/runs/"+first+"/compare").wants(t, 200, "Its unit has no earlier run")
	again, _, err := p.svc.Rerun(trusted.Context(t), first, "", api.Rerun{})
	must(t, err)
	p.ended(again.ID)
	failed := p.ran("fail", "new")

	same := p.get("/ui/runs/"+again.ID+"/compare").wants(t, 200, "this run repeats it", `value="`+first+`" selected`)
	if n := strings.Count(same.body, "It is the same."); n != 2 {
		t.Errorf("%d of its documents are the same: %s", n, same.body)
	}
	p.get("/ui/runs/"+failed+"/compare").wants(t, 200, `value="`+again.ID+`" selected`)
	p.get("/ui/runs/"+p.ran("fail", "")+"/compare?with="+failed).wants(t, 200, "Neither run has any.")
	p.get("/ui/runs/"+failed+"/compare?with="+first).wants(t, 200,
		`State <span class="tag">differs</span></th><td>Succeeded</td><td>Failed</td>`, `Unit</th><td>actor</td><td>actor</td>`,
		`<tr class="del"><td>3</td><td></td><td>-   &#34;say&#34;: &#34;\u003cb\u003eold\u003c/b\u003e&#34;</td></tr>`,
		`<tr class="add"><td></td><td>3</td><td>&#43;   &#34;say&#34;: &#34;new&#34;</td></tr>`).lacks(t, "<b>old", "It is the same.")
	p.get("/ui/runs/"+failed+"/compare?with=00000000-0000-7000-8000-000000000000").wants(t, 404)
	p.get("/ui/runs/"+failed+"/compare?with=..%2F").wants(t, 404)
}

func TestWhatIsComparedIsBounded(t *testing.T) {
	t.Parallel()
	p := newPage(t, map[string]string{
		"lists/agent.yaml":  "name: lists\ndescription: takes a list\n",
		"lists/Dockerfile":  "FROM base:1\nCMD [\"actor\"]\n",
		"lists/tools.yaml":  "[]\n",
		"lists/schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
	}).signIn()
	var id string
	for _, from := range []int{0, 10_000} {
		many := make([]int, 8000)
		for i := range many {
			many[i] = from + i
		}
		input, err := json.Marshal(map[string]any{"n": many})
		must(t, err)
		record, _, err := p.svc.Submit(trusted.Context(t), spool.Submission{Unit: "lists", Input: input})
		must(t, err)
		id = record.ID
		p.ended(id)
	}
	shown := p.get("/ui/runs/"+id+"/compare").wants(t, 200, "Only the first lines are compared", "more lines aren’t shown").body
	if n := strings.Count(shown, "<tr"); n > 400 {
		t.Errorf("%d rows", n)
	}
}
