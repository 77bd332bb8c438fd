package web_test

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// ranBy is ran of a run that the holder of a token asked for.
func (p *page) ranBy(name, do string) string {
	p.t.Helper()
	record, _, err := p.svc.Submit(access.WithGrant(trusted.Context(p.t), access.Grant{Name: name, Scopes: []access.Scope{access.Read, access.Run}}), spool.Submission{
		Unit: "actor", Input: fmt.Appendf(nil, `{"do":%q}`, do),
	})
	must(p.t, err)
	p.ended(record.ID)
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

var listed = regexp.MustCompile(`<tr id="r-([^"]+)"`)

// walk lists the runs of a list from page to page, and how many each page has.
func (p *page) walk(query string) (ids []string, sizes []int) {
	p.t.Helper()
	for more := true; more; {
		body := p.get("/ui/runs"+query).wants(p.t, 200).body
		rows := listed.FindAllStringSubmatch(body, -1)
		for _, row := range rows {
			ids = append(ids, row[1])
		}
		next := regexp.MustCompile(`href="([^"]+)">Earlier<`).FindStringSubmatch(body)
		if sizes, more = append(sizes, len(rows)), next != nil; more {
			query = html.UnescapeString(next[1])
		}
	}
	return ids, sizes
}

func TestRunsThatFailedCanStandBeforeOthers(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	add := func(failed, others int) {
		var last []string
		for i := range max(failed, others) {
			if i < failed {
				last = append(last, p.submit("fail", ""))
			}
			if i < others {
				last = append(last, p.submit("", ""))
			}
		}
		for _, id := range last {
			p.ended(id)
		}
	}
	check := func(failed, others int, want ...int) {
		t.Helper()
		ids, sizes := p.walk("?order=failed")
		if !slices.Equal(sizes, want) || len(ids) != failed+others {
			t.Errorf("of %d that failed and %d others: pages of %d runs, want %d", failed, others, sizes, want)
		}
		newest, _ := p.walk("")
		bad, _ := p.walk("?state=failed")
		for _, id := range bad {
			newest = slices.DeleteFunc(newest, func(other string) bool { return other == id })
		}
		if !slices.Equal(ids, append(bad, newest...)) {
			t.Errorf("the order is %q, want those that failed, %q, then %q", ids, bad, newest)
		}
	}
	add(3, 2)
	check(3, 2, 5)
	add(47, 0)
	check(50, 2, 50, 2)
	add(2, 0)
	check(52, 2, 50, 4)
	add(0, 49)
	check(52, 51, 50, 50, 3)
	p.get("/ui/runs?order=failed").wants(t, 200, `value="failed" selected`, `href="?order=failed&amp;state=completed"`)
	p.get("/ui/runs?order=failed&cursor=others-x").wants(t, 422)
}

// ranWith is ran with a file in the field doc.
func (p *page) ranWith(name, content string) string {
	p.t.Helper()
	files, err := p.svc.NewSpool()
	must(p.t, err)
	must(p.t, files.Add("doc", name, strings.NewReader(content), 1<<20))
	record, _, err := p.svc.Submit(trusted.Context(p.t), spool.Submission{Unit: "actor", Input: []byte(`{}`), Files: files})
	must(p.t, err)
	p.ended(record.ID)
	return record.ID
}

func TestFilesThatARunWasGivenAreShown(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	id := p.ranWith("a#b.csv", "name,n\n<b>,1\n")
	p.get("/ui/runs/"+id).wants(t, 200, "Files that it was given", "1 row, 2 columns", "&lt;b&gt;", `href="../runs/`+id+`/given/a%23b.csv"`)
	saved := p.get("/ui/runs/"+id+"/given/a%23b.csv").wants(t, 200)
	if saved.body != "name,n\n<b>,1\n" || !strings.HasPrefix(saved.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%q %v", saved.body, saved.Header)
	}
	for _, name := range []string{"", "other", "..%2Finput.json", "..%2F..%2Faod.db"} {
		p.get("/ui/runs/"+id+"/given/"+name).wants(t, 404)
	}
	p.get("/ui/runs/"+p.ran("files", "a?b.txt")).wants(t, 200, "/files/a%3Fb.txt").lacks(t, "Files that it was given")
}
