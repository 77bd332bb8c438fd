package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// logged is a run that has ended, and wrote lines: all of one text.
func (p *page) logged(lines int, text string) (id string) {
	p.t.Helper()
	id = p.ran("", "")
	must(p.t, os.Truncate(p.logOf(id), 0))
	p.logs(id, 1, lines, text)
	return id
}

func (p *page) logOf(id string) string {
	p.t.Helper()
	dir, err := p.svc.Files.RunDir(trusted.Context(p.t), id)
	must(p.t, err)
	return filepath.Join(dir, layout.Log)
}

// logs adds lines to the log of a run, from one number to another.
func (p *page) logs(id string, from, to int, text string) {
	p.t.Helper()
	var all bytes.Buffer
	out := json.NewEncoder(&all)
	for n := from; n <= to; n++ {
		must(p.t, out.Encode(api.LogEntry{Line: int64(n), Time: time.Unix(1_800_000_000, 0), Stream: "stdout", Text: text, Attempt: 1}))
	}
	file, err := os.OpenFile(p.logOf(id), os.O_APPEND|os.O_WRONLY, 0)
	must(p.t, err)
	defer file.Close()
	_, err = file.Write(all.Bytes())
	must(p.t, err)
}

func TestTheLastLinesOfALogAreShown(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	at := "/ui/runs/" + p.logged(12_034, "a line") + "/log"
	for _, c := range []struct {
		query, says, earlier string
		first, last          int
	}{
		{"", "lines 7,051 to 12,034", "?before=7051", 7051, 12_034},
		{"?before=7051", "lines 2,051 to 7,050", "?before=2051", 2051, 7050},
		{"?before=2051", "lines 1 to 2,050", "", 1, 2050},
		{"?before=2", "lines 1 to 1", "", 1, 1},
	} {
		a := p.get(at+c.query).wants(t, 200, c.says, fmt.Sprintf(`id="L%d"`, c.first), fmt.Sprintf(`<a href="#L%d">`, c.last))
		if got := strings.Count(a.body, `<li id="L`); got != c.last-c.first+1 {
			t.Errorf("%q shows %d lines", c.query, got)
		}
		if c.earlier == "" {
			a.lacks(t, "Earlier lines")
		} else if got := regexpIn(t, a.body, `href="([^"]*)">Earlier lines`); got != c.earlier {
			t.Errorf("%q: the earlier lines are at %s", c.query, got)
		}
	}
	p.get(at+"?before=1").wants(t, 200, "There is nothing before that line")
}

// A page that follows a log gets what is new of it.
func TestALineMoreIsSmall(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	const lines, more = 6048, 3 // the last of them begins a block
	text := strings.Repeat("wide ", 20)
	id := p.logged(lines, text)
	p.get("/ui/units") // it is known from now on whether there are chats
	key := regexp.MustCompile(`data-part="([^"]*)" data-hash="([^"]*)"|"key":"([^"]*)","hash":"([^"]*)"`)
	has := map[string]string{}
	take := func(text string) {
		for _, m := range key.FindAllStringSubmatch(text, -1) {
			has[m[1]+m[3]] = m[2] + m[4]
		}
	}
	take(p.get("/ui/runs/"+id+"/log").wants(t, 200).body)
	for n := lines + 1; n <= lines+more; n++ {
		p.logs(id, n, n, text)
		var have []string
		for k, hash := range has {
			have = append(have, k+":"+hash)
		}
		at := "/ui/live?once=true&page=runs/" + id + "/log&have=" + strings.Join(have, ",")
		a := p.get(at).wants(t, 200, fmt.Sprintf("L%d", n))
		if t.Logf("line %d: %d bytes are sent for an address of %d", n, len(a.body), len(at)); len(a.body) > 16<<10 || len(at) > 6<<10 {
			t.Errorf("line %d: %d bytes are sent for an address of %d", n, len(a.body), len(at))
		}
		take(a.body)
	}
}

func TestALogOfLongLinesIsAPageOfSomeOfThem(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	at := "/ui/runs/" + p.logged(250, strings.Repeat(`"`, 16<<10)) + "/log"
	for range 2 {
		a := p.get(at).wants(t, 200, "Earlier lines")
		if n := strings.Count(a.body, `<li id="L`); len(a.body) > 6<<20 || n < 50 {
			t.Errorf("%d bytes, %d lines", len(a.body), n)
		}
		at = strings.Split(at, "?")[0] + regexpIn(t, a.body, `href="([^"]*)">Earlier lines`)
	}
}
