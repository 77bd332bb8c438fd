package web_test

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"golang.org/x/net/html"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/testing/contracttest"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// withInputs are the files of a unit that takes such inputs.
func withInputs(name, schema string) map[string]string {
	return map[string]string{
		name + "/Dockerfile":  unitFiles["actor/Dockerfile"],
		name + "/agent.yaml":  "name: " + name + "\n",
		name + "/schema.json": `{"input":` + schema + `,"output":{}}`,
	}
}

// filledForm is a unit's form with an input in its fields.
func (p *page) filledForm(t testing.TB, unit, input string) shownForm {
	t.Helper()
	f := p.send("/ui/units/"+unit+"/run", "k", part{"mode", "", "json"}, part{"as", "", "fields"}, part{"#", "", input}).
		wants(t, http.StatusOK).form(t)
	for n := range f.root.Descendants() {
		if (n.Data == "label" || n.Data == "legend") && n.Type == html.ElementNode && strings.TrimSpace(text(n)) == "" {
			t.Errorf("%s: a control for %q has no title", unit, attr(n, "for"))
		}
	}
	return f
}

// posted is the input that a form gives which a browser posts.
func (p *page) posted(t testing.TB, unit string, f shownForm) string {
	t.Helper()
	key, parts := f.parts()
	return p.send("/ui/units/"+unit+"/run", key, append(parts, part{"as", "", "json"})...).wants(t, http.StatusOK).form(t).whole()
}

func TestAnInputComesBackOfThePage(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(strings.Repeat("[", 50)+strings.Repeat("]", 50)+",", 400)
	samples := []struct{ schema, input string }{
		{`{"properties":{"a\\":{"type":"string"},"a\\/b":{"properties":{"x":{"type":"int"}}},"a\\\\b":{"type":"string"},"c\\\"":{"type":"string"}}}`, `{"a\\":"x","a\\/b":{"x":1},"a\\\\b":"y","c\\\"":"z"}`},
		{`{"properties":{"a\u0000":{"type":"string"},"b\u001b":{"type":"string"},"\t":{"type":"string"},"\u007f":{"type":"string"},"\n\r\r\n":{"type":"string"},"":{"type":"string"}}}`, `{"a\u0000":"x","b\u001b":"y","\t":"z","\u007f":"1","\n\r\r\n":"2","":"3"}`},
		{`{"properties":{"%0D%25":{"type":"string"},"\u0085\ufeff":{"type":"string"},"x;y=\"1\"":{"type":"string"},"__proto__":{"properties":{"constructor":{"type":"int"}}}}}`, `{"%0D%25":"x","\u0085\ufeff":"y","x;y=\"1\"":"\ufeff","__proto__":{"constructor":1}}`},
		{`{"properties":{"d":{"type":"list","items":{"type":"string","format":"date"}}}}`, `{"d":["0000-01-02","0001-01-02","9999-12-31"]}`},
		{`{"properties":{"s":{"type":"string"},"t":{"type":"string","maxLength":5}}}`, `{"s":"\n\n a\t\n","t":"\nb"}`},
		{`{"properties":{"l":{"type":"list","items":{"type":"int"}}}}`, `{"l":[1` + strings.Repeat(",2.0", 999) + `]}`},
		{`{"properties":{"l":{"type":"list","items":{"properties":{"a":{"type":"int"},"b":{"type":"int"},"c":{"type":"int"}}}}}}`, `{"l":[{"a":"x"}` + strings.Repeat(`,{"a":1,"b":null}`, 999) + `]}`},
		{`{"properties":{"a":{},"b":{"type":"string"},"c":{}}}`, `{"a":[` + nested + `1],"b":[` + nested + `1],"c":[` + nested + `1]}`},
		{`{"properties":{"f":{"type":"list","items":{"type":["string","null"],"format":"file_path"}}}}`, `{"f":[null,null]}`},
		{`{"properties":{"l":{"type":"list","items":{"type":"list","items":{"type":"bool"}}}}}`, `{"l":[[],[true,false],[]]}`},
		{`{"properties":{"l":{"type":"list","items":{"required":["k"],"properties":{"k":{"type":["string","null"]}}}}}}`, `{"l":[{"k":null},{"k":"a"},null,{"k":""}]}`},
		{`{"required":["b"],"properties":{"b":{"type":["bool","null"]},"e":{"enum":["a",null,1]},"n":{"type":["int","null"]}}}`, `{"b":null,"e":null,"n":null}`},
	}
	units := make([]map[string]string, len(samples))
	for i, s := range samples {
		units[i] = withInputs(fmt.Sprintf("u%d", i), s.schema)
	}
	p := newPage(t, units...).signIn()
	for i, s := range samples {
		unit := fmt.Sprintf("u%d", i)
		if got := p.posted(t, unit, p.filledForm(t, unit, s.input)); !sameJSON(t, got, s.input) {
			t.Errorf("%.200s became %.500s", s.input, got)
		}
	}
}

// verdict is what the API says of an input: whether a run began, or what is wrong.
func (p *page) verdict(t testing.TB, unit, input string) (begun bool, found []fault.Finding) {
	t.Helper()
	body := fmt.Sprintf(`{"unit":%q,"input":%s}`, unit, input)
	r, err := http.NewRequestWithContext(trusted.Context(t), http.MethodPost, p.url+"/v1/runs", strings.NewReader(body))
	must(t, err)
	r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	resp, err := p.client.Do(r)
	must(t, err)
	defer resp.Body.Close()
	if problem, is := httpwire.ReadProblem(resp); is {
		if problem.Status != http.StatusUnprocessableEntity {
			t.Fatalf("%s of %s: %v", unit, input, problem)
		}
		return false, problem.Findings
	}
	return true, nil
}

// judged fails the test unless the page says of a form what the API says of its input, at the fields.
func (p *page) judged(t testing.TB, unit string, f shownForm, input string) {
	t.Helper()
	begun, found := p.verdict(t, unit, input)
	key, parts := f.parts()
	a := p.send("/ui/units/"+unit+"/run", key, parts...)
	if begun {
		if got := p.begins(a); !sameJSON(t, string(got.Input), input) {
			t.Errorf("%s: %s became %s", unit, input, got.Input)
		}
		return
	}
	refused := a.wants(t, http.StatusUnprocessableEntity).form(t)
	told := refused.errors()
	for _, f := range found {
		at := refused.place(f)
		if !slices.ContainsFunc(told[at], func(text string) bool { return strings.Contains(text, f.Message) }) {
			t.Errorf("%s of %s: %s doesn't stand at %q of %q", unit, input, f, at, told)
		}
	}
	if len(told) == 0 {
		t.Errorf("%s of %s: the API said %v, the page nothing", unit, input, found)
	}
	for _, to := range refused.links() {
		if !slices.ContainsFunc(slices.Collect(refused.root.Descendants()), func(n *html.Node) bool { return attr(n, "id") == to }) {
			t.Errorf("%s of %s: the page leads to %q, which isn't there", unit, input, to)
		}
	}
}

// errors are the texts of findings, by the pointers of the controls at which they stand.
func (f shownForm) errors() map[string][]string {
	told := map[string][]string{}
	for n := range f.root.Descendants() {
		if id, is := strings.CutPrefix(attr(n, "id"), "e-f"); is {
			pointer, err := url.PathUnescape(id)
			must(f.t, err)
			for p := range n.ChildNodes() {
				told[pointer] = append(told[pointer], text(p))
			}
		}
	}
	return told
}

// place is the pointer of the control at which a finding has to stand.
func (f shownForm) place(found fault.Finding) string {
	shown := map[string]bool{}
	for n := range f.root.Descendants() {
		name, err := url.PathUnescape(strings.TrimPrefix(attr(n, "name"), "#"))
		must(f.t, err)
		for at := name; strings.HasPrefix(at, "/"); at = at[:strings.LastIndex(at, "/")] {
			shown[at] = true
		}
		if n.Data == "button" || attr(n, "role") == "group" || n.Data == "fieldset" {
			at, err := url.PathUnescape(strings.TrimPrefix(attr(n, "id"), "f"))
			must(f.t, err)
			shown[at] = true
		}
	}
	at := found.Pointer
	for at != "" && !shown[at] {
		at = at[:strings.LastIndex(at, "/")]
	}
	for field := range shown {
		last := field[strings.LastIndex(field, "/")+1:]
		if field == at+"/"+last && found.Message == fmt.Sprintf("required field %q is missing", strictjson.Unescape(last)) {
			return field
		}
	}
	return at
}

// links are the ids to which the headline leads.
func (f shownForm) links() (ids []string) {
	for n := range f.root.Descendants() {
		if to, is := strings.CutPrefix(attr(n, "href"), "#"); is && n.Data == "a" {
			id, err := url.PathUnescape(to)
			must(f.t, err)
			ids = append(ids, id)
		}
	}
	return ids
}

// lacks reports whether an input lacks a field: the form gives null, or an empty list or object, for some.
func lacks(found []fault.Finding) bool {
	return slices.ContainsFunc(found, func(f fault.Finding) bool { return strings.HasPrefix(f.Message, "required field") })
}

func TestThePageJudgesGeneratedInputsAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	const contracts, inputs = 12, 3
	makers, schemas := make([]*contracttest.Maker, contracts), make([]map[string]any, contracts)
	units := make([]map[string]string, contracts)
	for i := range makers {
		makers[i] = contracttest.New(uint64(1000 + i))
		schemas[i] = makers[i].Contract()
		units[i] = withInputs(fmt.Sprintf("u%d", i), encoded(t, schemas[i]))
	}
	p := newPage(t, units...).signIn()
	p.busy()
	for i, m := range makers {
		unit := fmt.Sprintf("u%d", i)
		for range inputs {
			input := encoded(t, m.Input(schemas[i]))
			f := p.filledForm(t, unit, input)
			got := p.posted(t, unit, f)
			if !sameJSON(t, got, input) {
				if _, found := p.verdict(t, unit, input); !lacks(found) {
					t.Errorf("%s became %s", input, got)
				}
			}
			p.judged(t, unit, f, got)
			if t.Failed() {
				t.Fatalf("seed %d of %s", 1000+i, units[i][unit+"/schema.json"])
			}
		}
	}
}

// press sends a form with a button of it that has such a name.
func (p *page) press(t testing.TB, unit string, f shownForm, name string) shownForm {
	t.Helper()
	for n := range f.root.Descendants() {
		if n.Data == "button" && attr(n, "name") == name {
			key, parts := f.parts()
			pressed := part{name, "", crlf(attr(n, "value"))}
			return p.send("/ui/units/"+unit+"/run", key, append(parts, pressed)...).wants(t, http.StatusOK).form(t)
		}
	}
	t.Fatalf("no button is called %q", name)
	return f
}

func TestRowsOfListsWithOddNames(t *testing.T) {
	t.Parallel()
	names := []string{"", "%22", `"`, `\`, "a/b~", "two\nlines", "\x00", "é <&"}
	units := make([]map[string]string, len(names))
	for i, name := range names {
		units[i] = withInputs(fmt.Sprintf("u%d", i), fmt.Sprintf(`{"properties":{%s:{"type":"array","items":{"type":"string"}}}}`, encoded(t, name)))
	}
	p := newPage(t, units...).signIn()
	for i, name := range names {
		unit := fmt.Sprintf("u%d", i)
		rows := func(f shownForm) (count int) {
			_, parts := f.parts()
			for _, one := range parts {
				if strings.HasSuffix(one.name, "/0") || strings.HasSuffix(one.name, "/1") {
					count++
				}
			}
			return count
		}
		f := p.filledForm(t, unit, fmt.Sprintf(`{%s:["a"]}`, encoded(t, name)))
		more := p.press(t, unit, f, "add")
		fewer := p.press(t, unit, more, "less")
		if rows(f) != 1 || rows(more) != 2 || rows(fewer) != 0 {
			t.Errorf("%q: of %d rows there are %d with one more, and %d with one fewer", name, rows(f), rows(more), rows(fewer))
		}
	}
}

func encoded(t testing.TB, value any) string {
	t.Helper()
	raw, err := strictjson.Encode(value)
	must(t, err)
	return string(raw)
}

// busy has the server's slots taken: what begins from now on waits, and costs little.
func (p *page) busy() {
	p.t.Helper()
	p.begun()
	p.begun()
}

// exampleUnits are the files of all units in examples/, each in a directory of its own.
func exampleUnits(t testing.TB) (files map[string]string) {
	t.Helper()
	files = map[string]string{}
	units := 0
	root := "../../examples"
	must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "agent.yaml" {
			return err
		}
		units++
		dir := filepath.Dir(path)
		return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			name, _ := filepath.Rel(dir, path)
			files[fmt.Sprintf("e%d/%s", units, filepath.ToSlash(name))] = string(content)
			return err
		})
	}))
	return files
}

func TestThePageJudgesInputsOfTheExamplesAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	p := newPage(t, exampleUnits(t)).signIn()
	p.busy()
	all, err := p.svc.Units.List(trusted.Context(t))
	must(t, err)
	begun, refused := 0, 0
	for i, one := range all {
		if one.Kind == "mcp" { // which this server can't run
			continue
		}
		if one.Problem != nil {
			t.Errorf("%s: %v", one.Name, one.Problem)
			continue
		}
		u, err := p.svc.Units.Get(trusted.Context(t), one.Name)
		must(t, err)
		schema, err := strictjson.Decode(u.Contract.Input.Plain())
		must(t, err)
		m := contracttest.New(uint64(i))
		for n := range 2 {
			input, err := contract.NewPayload(m.Input(schema.(map[string]any)))
			must(t, err)
			if example, is := u.Contract.Input.Example(); n == 0 && is {
				input = example
			}
			record, found := p.given(t, u.Name, u.Contract.Input, input)
			if record.ID != "" {
				begun++
				p.comesBackFrom(t, record)
				continue
			}
			refused++
			if f := p.filledForm(t, u.Name, string(input.JSON())); !f.loses() {
				if got := p.posted(t, u.Name, f); !lacks(found) && !sameJSON(t, got, string(input.JSON())) {
					t.Errorf("%s: %s became %s", u.Name, input.JSON(), got)
				} else {
					p.judged(t, u.Name, f, got)
				}
			}
		}
	}
	if len(all) < 45 || begun < 45 || refused < 10 {
		t.Errorf("%d units, %d runs, %d inputs that were refused: that tells little", len(all), begun, refused)
	}
}

// given begins a run as clients do, with the files that the input names.
func (p *page) given(t testing.TB, unit string, of *contract.Schema, input contract.Payload) (api.Record, []fault.Finding) {
	t.Helper()
	sub := spool.Submission{Unit: unit, Input: input.JSON()}
	for _, ref := range of.FileRefs(input) {
		if sub.Files == nil {
			files, err := p.svc.NewSpool()
			must(t, err)
			defer func() { _ = files.Remove() }()
			sub.Files = files
		}
		if ref.Err == nil && !slices.ContainsFunc(sub.Files.Files(), func(f spool.File) bool { return f.Name == ref.Name }) {
			must(t, sub.Files.Add("", ref.Name, strings.NewReader(ref.Name), 1<<10))
		}
	}
	record, _, err := p.svc.Submit(trusted.Context(t), sub)
	if err != nil && !fault.Is(err, fault.Input) {
		t.Fatalf("%s of %s: %v", unit, input.JSON(), err)
	}
	return record, fault.Public(err).Findings
}

// comesBackFrom fails the test unless the form that is filled with the input of a run begins one of the same input.
func (p *page) comesBackFrom(t testing.TB, earlier api.Record) {
	t.Helper()
	f := p.get("/ui/units/"+earlier.Unit+"?from="+earlier.ID).wants(t, http.StatusOK, "Filled with the input of run").form(t)
	key, parts := f.parts()
	again := p.begins(p.send("/ui/units/"+earlier.Unit+"/run", key, parts...))
	if again.ID == earlier.ID || !sameJSON(t, string(earlier.Input), string(again.Input)) {
		t.Errorf("%s: %s became %s", earlier.Unit, earlier.Input, again.Input)
	}
}

// loses reports whether the form has names of files that have to be chosen again.
func (f shownForm) loses() bool {
	return slices.ContainsFunc(slices.Collect(f.root.Descendants()), func(n *html.Node) bool { return has(n, "data-lost") })
}

// Whatever is posted, the page answers, and nothing is left of it.
func FuzzUnitForm(f *testing.F) {
	every := withEvery() // but no run of it begins
	every["every/schema.json"] = strings.Replace(every["every/schema.json"], `["title"]`, `["title","never"],"not":{}`, 1)
	p := newPage(f, every).signIn()
	key, parts := p.get("/ui/units/every").form(f).parts()
	parts = append(parts, part{"key", "", key}, part{"/doc", "a.txt", "A"}, part{"/docs", "b.txt", "B"}, part{"#/words", "", "[1,"})
	for _, more := range []part{{"add", "", "/words"}, {"less", "", "/words/0"}, {"as", "", "json"}, {"mode", "", "json"}, {"from", "", "x"}, {"part", "", "true"}} {
		var b strings.Builder
		for _, one := range append(parts, more) {
			fmt.Fprintf(&b, "--b\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n\r\n%s\r\n", one.name, one.filename, one.content)
		}
		f.Add(b.String() + "--b--")
	}
	fuzzbound.Run(f, func(t *testing.T, body string) {
		r, err := http.NewRequestWithContext(trusted.Context(t), http.MethodPost, p.url+"/ui/units/every/run", strings.NewReader(body))
		must(t, err)
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		resp, err := p.client.Do(r)
		must(t, err)
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		must(t, err)
		if got := resp.StatusCode; got != http.StatusOK && (got < 400 || got > 499) {
			t.Errorf("status %d of %q", got, body)
		}
		p.spoolIsEmpty(t)
	})
}

// A form that is sent several times at once, with a file, is one run.
func TestSubmitsAtOnceAreOneRun(t *testing.T) {
	t.Parallel()
	p := newPage(t, withEvery()).signIn()
	p.busy()
	for round := range 5 {
		key, parts := p.get("/ui/units/every").form(t).parts()
		parts = append(slices.DeleteFunc(parts, func(one part) bool { return one.name == "/title" || one.name == "/doc" }),
			part{"/title", "", fmt.Sprint(round)}, part{"/doc", "a.txt", "A"})
		answers := make([]answer, 4)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = p.send("/ui/units/every/run", key, parts...) })
		}
		all.Wait()
		runs := map[string]bool{}
		for _, a := range answers {
			runs[p.begins(a).ID] = true
		}
		if len(runs) != 1 {
			t.Errorf("there are %d runs of one form", len(runs))
		}
	}
	listed, err := p.svc.Runs.List(trusted.Context(t), api.Filter{Unit: "every"})
	if must(t, err); len(listed.Runs) != 5 {
		t.Errorf("there are %d runs of five forms", len(listed.Runs))
	}
	p.spoolIsEmpty(t)
}
