package web_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"fmt"
	"html"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

const hostile = `"><script>alert(1)</script>`

// withEvery are the files of a unit with a field of every kind.
func withEvery() map[string]string {
	files := map[string]string{}
	for name, content := range unitFiles {
		files[strings.Replace(name, "actor", "every", 1)] = strings.Replace(content, "name: actor", "name: every", 1)
	}
	files["every/agent.yaml"] = "name: every\ndescription: '" + hostile + "'\n"
	files["every/schema.json"] = `{"input": {"type": "object", "required": ["title"], "properties": {
		"title": {"type": "string", "maxLength": 20, "description": "` + strings.ReplaceAll(hostile, `"`, `\"`) + `"},
		"long": {"type": "string", "title": "A long one"}, "n": {"type": "number", "minimum": 0, "default": 0.8}, "i": {"type": "integer"},
		"flag": {"type": "boolean"}, "size": {"enum": ["small", "large"], "default": "small"},
		"day": {"type": "string", "format": "date"}, "at": {"type": "string", "format": "date-time"}, "clock": {"type": "string", "format": "time"},
		"doc": {"type": "string", "format": "file_path"}, "docs": {"type": "array", "maxItems": 3, "items": {"type": "string", "format": "file_path"}},
		"words": {"type": "array", "items": {"type": "string", "maxLength": 5}},
		"people": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 50}}}},
		"address": {"type": "object", "properties": {"street": {"type": "string"}}},
		"any": {}, "we\"ird%22/": {"type": "string"}
	}}, "output": {"type": "object", "properties": {"n": {"type": "int"}}}}`
	return files
}

// part is one of a form; a filename makes it a file.
type part struct{ name, filename, content string }

// send posts a form as a browser does. Its first part is a key.
func (p *page) send(path, key string, parts ...part) answer {
	p.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, one := range append([]part{{"key", "", key}}, parts...) {
		disposition := `form-data; name="` + strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A").Replace(one.name) + `"`
		if one.filename != "" {
			disposition += `; filename="` + one.filename + `"`
		}
		out, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}})
		must(p.t, err)
		_, err = out.Write([]byte(one.content))
		must(p.t, err)
	}
	must(p.t, w.Close())
	r, err := http.NewRequestWithContext(trusted.Context(p.t), http.MethodPost, p.url+path, &b)
	must(p.t, err)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return p.do(r)
}

// begins is the run to which an answer leads.
func (p *page) begins(a answer) api.Record {
	p.t.Helper()
	at := a.wants(p.t, http.StatusSeeOther).Header.Get("Location")
	record, err := p.svc.Runs.Get(trusted.Context(p.t), strings.TrimPrefix(at, "../../runs/"))
	must(p.t, err)
	return record
}

// control is the tag of the control of a name.
func control(a answer, name string) string {
	return regexp.MustCompile(`<[a-z]+ [^>]*name="` + regexp.QuoteMeta(html.EscapeString(name)) + `"[^>]*>`).FindString(a.body)
}

func TestTheListOfUnits(t *testing.T) {
	t.Parallel()
	p := newPage(t, withEvery(), map[string]string{"broken/agent.yaml": "name: broken\nnonsense: " + "true\n"}).signIn()
	id := p.ran("say", "")
	p.get("/ui/units").wants(t, 200, `href="units/actor"`, "does what it is told", `href="runs/`+id+`"`, "Has a problem", html.EscapeString("<script>alert")).lacks(t, "<script>alert")
	p.get("/ui/units?q=EVER").wants(t, 200, `href="units/every"`).lacks(t, `href="units/actor"`)
	p.get("/ui/units?q="+strings.Repeat("x", 100)).wants(t, 200, "No unit is like that")
	p.get("/ui/units/broken").wants(t, 200, "There is no version of it that could be run", "agent.yaml:2").lacks(t, "data-form")
	p.get("/ui/units/nothing").wants(t, 404)
}

func TestTheFormHasAControlForEachKindOfField(t *testing.T) {
	t.Parallel()
	p := newPage(t, withEvery()).signIn()
	a := p.get("/ui/units/every").wants(t, 200, "A long one", "Without it 0.8", "optional, at most 3 files", `value="/words"`, "Not given (small)", "2026-12-01T14:30:00Z").lacks(t, "<script>alert")
	for name, want := range map[string]string{
		"/title": "required", "/long": "<textarea", "/n": `inputmode="decimal"`, "/i": `class="w1"`, "/flag": `type="radio"`, "/size": "<select", "/day": `type="date"`,
		"/at": "<input", "/clock": "<input", "/doc": `type="file"`, "/docs": "multiple", "/address/street": "<textarea", "#/any": "<textarea", "/we%22ird%2522~1": "<textarea",
	} {
		if got := control(a, name); !strings.Contains(got, want) {
			t.Errorf("the control of %s is %q", name, got)
		}
	}
	if !strings.Contains(control(a, "/title"), `aria-describedby="d-f%2Ftitle"`) {
		t.Errorf("the title is described by %s", control(a, "/title"))
	}
	p.get("/ui/units/every").wants(t, 200, `<th scope="row"><code>people[].name</code>`, "list of files", "one of small, large", "at most 20 characters")
}

func TestARunBeginsWithWhatTheFormWasFilledWith(t *testing.T) {
	t.Parallel()
	p := newPage(t, withEvery()).signIn()
	filled := []part{
		{"/title", "", "Ferries"},
		{"/long", "", ""},
		{"/n", "", "1.50"},
		{"/flag", "", "false"},
		{"/size", "", `"large"`},
		{"/words/0", "", "a"},
		{"/words/4", "", "b"},
		{"/people/0/name", "", "Ada"},
		{"#/any", "", `{"x": [1]}`},
		{`/we"ird%2522~1`, "", "w"},
		{"/doc", "a.txt", "A"},
		{"/docs", "a.txt", "B"},
		{"/docs", "c.txt", "C"},
		{"metadata", "", "case:17\r\n"},
		{"timeout", "", "9m"},
		{"context", "", "talk"},
	}
	record := p.begins(p.send("/ui/units/every/run", "k", filled...))
	want := `{"title":"Ferries","n":1.50,"flag":false,"size":"large","doc":"a.txt","docs":["2/a.txt","c.txt"],"words":["a","b"],"people":[{"name":"Ada"}],"any":{"x":[1]},"we\"ird%22/":"w"}`
	if string(record.Input) != want || record.Metadata["case"] != "17" || record.TimeoutMS != 540_000 || record.Context != "talk" {
		t.Errorf("input %s, metadata %v, timeout %d, context %q", record.Input, record.Metadata, record.TimeoutMS, record.Context)
	}
	for name, want := range map[string]string{"a.txt": "A", "2/a.txt": "B", "c.txt": "C"} {
		got, err := os.ReadFile(filepath.Join(p.home, "runs", record.ID, "input", name))
		if must(t, err); string(got) != want {
			t.Errorf("%s has %q", name, got)
		}
	}
	t.Run("sent again it is the same run", func(t *testing.T) {
		if again := p.begins(p.send("/ui/units/every/run", "k", filled...)); again.ID != record.ID {
			t.Errorf("it is %s, not %s", again.ID, record.ID)
		}
	})
	t.Run("changed and sent again it is another one", func(t *testing.T) {
		if again := p.begins(p.send("/ui/units/every/run", "k", part{"/title", "", "Boats"})); again.ID == record.ID {
			t.Error("it is the first one")
		}
	})
	p.ended(record.ID)
	t.Run("an earlier input fills the form, and its files are given again", func(t *testing.T) {
		a := p.get("/ui/units/every?from="+record.ID).wants(t, 200, "Filled with the input of run", `name="from" value="`+record.ID+`"`, "case:17", `value="&#34;large&#34;" selected`)
		if got := control(a, "/docs/1"); !strings.Contains(got, `value="c.txt"`) {
			t.Errorf("the second file is %q", got)
		}
		again := p.begins(p.send("/ui/units/every/run", "l", part{"from", "", record.ID}, part{"/title", "", "T"}, part{"/docs/0", "", "2/a.txt"}, part{"/docs", "", ""}, part{"/docs", "a.txt", "D"}))
		if got := string(again.Input); got != `{"title":"T","docs":["2/a.txt","3/a.txt"]}` {
			t.Errorf("input %s", got)
		}
		entries, err := os.ReadDir(filepath.Join(p.home, "runs", again.ID, "input"))
		if must(t, err); len(entries) != 2 { // 2 and 3: a.txt and c.txt weren't wanted
			t.Errorf("it has %v", entries)
		}
	})
	p.spoolIsEmpty(t)
}

// spoolIsEmpty proves that nothing is left of what was received. It is removed when the answer has been sent.
func (p *page) spoolIsEmpty(t testing.TB) {
	t.Helper()
	testkit.Eventually(t, "that the spool is empty", func() bool {
		entries, err := os.ReadDir(filepath.Join(p.home, "spool"))
		must(t, err)
		return len(entries) == 0
	})
}

func TestWhatIsRefusedIsToldAtItsField(t *testing.T) {
	t.Parallel()
	p := newPage(t, withEvery()).signIn()
	a := p.send("/ui/units/every/run", "k", part{"/title", "", "A"}, part{"/words/0", "", "much too long"}, part{"/people/0/name", "", ""}, part{"/doc", "a.txt", "A"}, part{"/n", "", "-1"})
	a.wants(t, 422, "Nothing was started: 2 fields need a look.", `href="#f%252Fn"`, "is too long: at most 5 characters", "Choose <b>a.txt</b> again", `value="much too long"`)
	if got := control(a, "/n"); !strings.Contains(got, "autofocus") || !strings.Contains(got, `value="-1"`) || !strings.Contains(got, `aria-describedby="e-f%2Fn d-f%2Fn"`) {
		t.Errorf("the first field with a finding is %s", got)
	}
	if strings.Contains(a.body, `name="key" value="k"`) {
		t.Error("the key was used, and stays")
	}
	a = p.send("/ui/units/every/run", "k", part{"/i", "", "one"}).wants(t, 422, "2 fields need a look", "isn&#39;t a whole number", "is missing")
	if got := control(a, "/title"); !strings.Contains(got, "autofocus") && !strings.Contains(control(a, "/i"), "autofocus") {
		t.Errorf("nothing has the focus: %s", got)
	}
	p.send("/ui/units/every/run", "k", part{"/title", "", "A"}, part{"timeout", "", "soon"}).wants(t, 400, "Nothing was started: the timeout is not valid", `value="soon"`, "<details class=\"fold box\" open>")
	p.send("/ui/units/every/run", "k", part{"/title", "", "A"}, part{"metadata", "", hostile}).wants(t, 400, "has no colon").lacks(t, "<script>alert")
	p.send("/ui/units/every/run", "k", part{"/title", "", hostile}, part{"/nothing", "", hostile}, part{"/i", "", hostile}).wants(t, 422).lacks(t, "<script>alert")
	p.send("/ui/units/every/run", "k", part{"/title", "", "\xff"}).wants(t, 422, "isn&#39;t valid UTF-8").lacks(t, "is missing")
	p.get("/ui/units/every/run").leads(t, "../every")
	p.spoolIsEmpty(t)
}

func TestRowsComeAndGoWithoutScript(t *testing.T) {
	t.Parallel()
	p := newPage(t, withEvery()).signIn()
	a := p.send("/ui/units/every/run", "k", part{"add", "", "/words"}, part{"/words/0", "", "a"}).wants(t, 200)
	if got := control(a, "/words/1"); !strings.Contains(got, "autofocus") || !strings.Contains(control(a, "/words/0"), `value="a"`) {
		t.Errorf("the new row is %q", got)
	}
	a = p.send("/ui/units/every/run", "k", part{"less", "", "/people/0"}, part{"/people/0/name", "", "Ada"}, part{"#/people/0", "", `{"x":1}`}, part{"/people/1/name", "", "Bob"}).wants(t, 200).lacks(t, "Ada")
	if got := control(a, "/people/0/name"); !strings.Contains(got, `value="Bob"`) {
		t.Errorf("the first row is %q", got)
	}
	for _, odd := range []string{"", "/", "/title", "/nothing/3", "#", "/words/7/x", strings.Repeat("/x", 5000)} {
		p.send("/ui/units/every/run", "k", part{"add", "", odd}, part{"less", "", odd}, part{"as", "", "fields"}).wants(t, 200)
	}
}

func TestTheInputCanBeGivenAsJSON(t *testing.T) {
	t.Parallel()
	p := newPage(t, withEvery()).signIn()
	a := p.send("/ui/units/every/run", "k", part{"as", "", "json"}, part{"/title", "", "A"}, part{"/n", "", "1.0"}).wants(t, 200, "&#34;n&#34;: 1.0", `name="mode" value="json"`, `name="files"`)
	if control(a, "/title") != "" {
		t.Error("the fields are there as well")
	}
	a = p.send("/ui/units/every/run", "k", part{"mode", "", "json"}, part{"as", "", "fields"}, part{"#", "", `{"title":"B","more":1}`}).wants(t, 200, "&#34;more&#34;: 1")
	if !strings.Contains(control(a, "/title"), `value="B"`) {
		t.Errorf("the title is %s", control(a, "/title"))
	}
	record := p.begins(p.send("/ui/units/every/run", "k", part{"mode", "", "json"}, part{"#", "", `{"title":"B","doc":"a.txt"}`}, part{"files", "a.txt", "A"}))
	if string(record.Input) != `{"title":"B","doc":"a.txt"}` {
		t.Errorf("input %s", record.Input)
	}
	p.send("/ui/units/every/run", "k", part{"mode", "", "json"}, part{"#", "", `{"title"`}).wants(t, 422, "isn&#39;t valid JSON", "{&#34;title&#34;")
	p.send("/ui/units/every/run", "k", part{"mode", "", "json"}, part{"#", "", `{"title":7}`}).wants(t, 422, "<code>/title</code> expected string")
}

func TestFormsBeyondTheBounds(t *testing.T) {
	t.Parallel()
	p := newPage(t, withEvery()).signIn()
	many := make([]part, 10_020)
	for i := range many {
		many[i] = part{fmt.Sprintf("/words/%d", i), "", "x"}
	}
	p.send("/ui/units/every/run", "k", many...).wants(t, 413, "more than 10020 parts", "What to do:")
	p.send("/ui/units/every/run", "k", many[:10_019]...).wants(t, 422, "has more than 10000 values", "write the long lists as JSON")
	for i := range many[:1002] {
		many[i] = part{"/docs", "x", ""}
	}
	p.send("/ui/units/every/run", "k", many[:1001]...).wants(t, 413, "more than 1000 files", "What to do:")
	many[600] = part{"from", "", p.ran("", "")} // it has files of its own, and takes none away
	p.send("/ui/units/every/run", "k", many[:1002]...).wants(t, 413, "more than 1000 files")
	p.send("/ui/units/every/run", "k", part{strings.Repeat("x", 3<<20), "", ""}, part{strings.Repeat("y", 2<<20), "", ""}).wants(t, 413, "names of the form", "What to do:")
	p.send("/ui/units/every/run", "k", part{"/long", "", strings.Repeat("x", 2<<20)}).wants(t, 413, "What to do:")
	t.Run("a file of more than may be sent is read to its end, for a browser to show the answer", func(t *testing.T) {
		at, err := url.Parse(p.url)
		must(t, err)
		conn, err := net.Dial("tcp", at.Host)
		must(t, err)
		defer conn.Close()
		const bytes = 257 << 20
		cookie := p.client.Jar.Cookies(p.request(http.MethodGet, "/ui/units", nil).URL)[0]
		_, err = fmt.Fprintf(conn, "POST /ui/units/every/run HTTP/1.1\r\nHost: localhost\r\nCookie: %s\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n", cookie, bytes)
		must(t, err)
		_, err = io.CopyN(conn, zeros{}, bytes)
		must(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(body), "What to do:") {
			t.Errorf("status %d: %s", resp.StatusCode, body)
		}
	})
	p.send("/ui/units/every/run", "k", part{"/doc", "..", "x"}).wants(t, 422)
	p.send("/ui/units/every/run", strings.Repeat("k", 1000), part{"/title", "", "A"}).wants(t, 400, "load the page again")
	p.post("/ui/units/every/run", "/title", "A").wants(t, 400)
	p.spoolIsEmpty(t)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestWhoMayRunUnits(t *testing.T) {
	t.Parallel()
	p := newPage(t, withEvery()).signIn(access.Read)
	p.get("/ui/units/every").wants(t, 200, "the scope <code>run</code>").lacks(t, "data-form", "Switch off", "Roll back")
	p.send("/ui/units/every/run", "k", part{"/title", "", "A"}).wants(t, 403)
	p.post("/ui/units/every/disable").wants(t, 403)
	p.post("/ui/units/every/rollback", "version", "x").wants(t, 403)
	p.signIn(access.Run)
	p.send("/ui/units/every/run", "k", part{"/title", "", "A"}).wants(t, 403, "the scopes read and run")
	p.signIn()
	p.post("/ui/units/every/disable").leads(t, "../every")
	p.get("/ui/units/every").wants(t, 200, "This unit is switched off", "Switch on").lacks(t, "data-form")
	p.send("/ui/units/every/run", "k", part{"/title", "", "A"}).leads(t, "../every")
	p.post("/ui/units/every/enable").leads(t, "../every")
	p.get("/ui/units/every").wants(t, 200, "data-form")
}

func TestAnAgenticUnitTakesArgumentsAndAFileForItsStdin(t *testing.T) {
	t.Parallel()
	p := newPage(t, map[string]string{"sizer/Dockerfile": "FROM base:1\nCMD [\"sizer\"]\n", "sizer/agent.yaml": "kind: au\nname: sizer\n"}).signIn()
	a := p.get("/ui/units/sizer").wants(t, 200, `value="/args"`)
	if !strings.Contains(control(a, "/stdin"), `type="file"`) {
		t.Errorf("the control of stdin is %q", control(a, "/stdin"))
	}
	record := p.begins(p.send("/ui/units/sizer/run", "k", part{"/stdin", "in.txt", "all"}, part{"/args/0", "", "--fast"}))
	if string(record.Input) != `{"stdin":"in.txt","args":["--fast"]}` {
		t.Errorf("input %s", record.Input)
	}
}

func TestAVersionIsRolledBack(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	upload := func(description string) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for name, content := range unitFiles {
			content = strings.NewReplacer("name: actor", "name: sent", "does what it is told", description).Replace(content)
			must(t, w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(name, "actor/"), Size: int64(len(content)), Mode: 0o644, Typeflag: tar.TypeReg}))
			_, err := io.WriteString(w, content)
			must(t, err)
		}
		must(t, w.Close())
		_, _, err := p.svc.Units.Put(trusted.Context(t), "sent", &b)
		must(t, err)
	}
	upload("the first")
	upload("the second")
	version := regexp.MustCompile(`name="version" value="([0-9a-f]+)"`).FindStringSubmatch(p.get("/ui/units/sent").wants(t, 200, "the second").body)
	if version == nil {
		t.Fatal("no version can be chosen")
	}
	p.post("/ui/units/sent/rollback", "version", version[1]).leads(t, "../sent")
	p.get("/ui/units/sent").wants(t, 200, "the first")
	p.post("/ui/units/sent/rollback").wants(t, 400, "no version was chosen")
	p.signIn(access.Read, access.Run)
	p.get("/ui/units/sent").wants(t, 200).lacks(t, `name="version"`)
}
