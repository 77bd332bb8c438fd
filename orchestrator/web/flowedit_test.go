package web_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
)

const (
	sentFlow = "# the way of a report\nnodes:\n  one: {run: actor, with: {say: hello}} # says it\n"
	editAt   = "/ui/units/sent/flow/edit"
)

// uploads makes a flow with a file beside it an upload, and returns its version.
func (p *page) uploads(text string) string {
	p.t.Helper()
	files := flowFiles("sent", text)
	files["sent/tests/first.json"] = `{"input": {}, "expect": {"outcome": "success"}}`
	files["sent/notes/a.sh"] = "echo notes\n"
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		must(p.t, w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(name, "sent/"), Size: int64(len(content)), Mode: 0o755, Typeflag: tar.TypeReg}))
		_, err := io.WriteString(w, content)
		must(p.t, err)
	}
	must(p.t, w.Close())
	made, _, err := p.svc.Units.Put(trusted.Context(p.t), "sent", &b)
	must(p.t, err)
	return made.Version
}

// versions are those of the unit that uploads makes, the newest first.
func (p *page) versions() []api.UnitVersion {
	p.t.Helper()
	all, err := p.svc.Units.Versions(trusted.Context(p.t), "sent")
	must(p.t, err)
	return all
}

// files are those of a version, each with its mode and what is in it, but for its graph.
func (p *page) filesOf(version string) map[string]string {
	p.t.Helper()
	all, root := map[string]string{}, filepath.Join(p.home, "units", "sent", version, "sent")
	must(p.t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "flow.yaml" {
			return err
		}
		info, err := d.Info()
		must(p.t, err)
		raw, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, root)] = info.Mode().String() + " " + string(raw)
		return err
	}))
	return all
}

func TestAFlowIsCheckedAsItIsEdited(t *testing.T) {
	t.Parallel()
	p := newPage(t, chain).signIn()
	version := p.uploads(sentFlow)
	p.get("/ui/units/sent/flow").wants(t, 200, `href="../../units/sent/flow/edit">Edit</a>`)
	p.get(editAt).wants(t, 200, "<textarea", "\n"+html.EscapeString(sentFlow)+"</textarea>", "Nothing is wrong", `data-key="one"`, `href="?node=one#node"`,
		`name="from" value="`+version+`"`, "Save as a new version").lacks(t, "Unfold")

	a := p.post(editAt, "do", "check", "from", version, "text", "nodes:\r\n  one:\r\n    run: nobody\r\n    next: twoo\r\n  two: {}\r\n").wants(t, 200,
		"1 finding, line 4", `<li id="l4" class="mark">4</li>`, `data-wrong="4"><a href="#l4">4</a><span>    next: twoo</span>`, "did you mean two?", "There is no graph of a text", "next: twoo\n  two: {}\n</textarea>")
	if strings.Contains(a.body, "nobody&#34;</b>") {
		t.Error("it is held against the units before it can be read")
	}
	p.post(editAt, "do", "check", "text", "nodes:\n  one:\n    run: nobody\n").wants(t, 200, "1 finding, line 3", html.EscapeString(`there is no unit "nobody"`), `data-key="one"`)
	p.post(editAt, "do", "check", "text", "nodes: {in: {flow: {nodes: {deep: {wait: 1s}}}}}").wants(t, 200, "Nothing is wrong", `data-key="in/deep"`).lacks(t, "?fold")
	p.post(editAt, "do", "check", "text", "").wants(t, 200, "1 finding, line 1", "it must hold nodes")
	p.post(editAt, "do", "check", "text", strings.Repeat("#", 300<<10)).wants(t, 200, "it is larger than 256KiB")
	p.post(editAt, "do", "check", "text", strings.Repeat("#", 2<<20)).wants(t, 400, "at most 4.5 MiB")
	piece := p.post(editAt, "part", "found", "text", sentFlow).wants(t, 200, "Nothing is wrong", `data-key="one"`).body
	if strings.Contains(piece, "<html") || strings.Contains(piece, "<textarea") {
		t.Errorf("a script gets more than what was found: %s", piece)
	}
	if got := p.versions(); len(got) != 1 {
		t.Errorf("to check has made a version: %v", got)
	}
	p.get("/ui/units/actor/flow/edit").wants(t, 409)
	p.post("/ui/units/actor/flow/edit", "do", "check", "text", sentFlow).wants(t, 409)
	p.get("/ui/units/nobody/flow/edit").wants(t, 404)
	p.post("/ui/units/nobody/flow/edit", "do", "check", "text", sentFlow).wants(t, 404)
}

func TestAnEditedFlowIsSavedAsANewVersion(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	first := p.uploads(sentFlow)
	p.signIn(access.Read, access.Upload)
	edited := strings.Replace(sentFlow, "hello", "goodbye", 1)
	p.post(editAt, "do", "save", "from", first, "text", strings.ReplaceAll(edited, "\n", "\r\n")).leads(t, "../flow")
	p.post(editAt, "do", "save", "from", first, "text", edited).leads(t, "../flow") // sent twice
	all := p.versions()
	if len(all) != 2 || !all[0].Current || all[0].By != "read" || all[1].Version != first {
		t.Fatalf("its versions are %+v", all)
	}
	second := all[0].Version
	flow, _, err := p.svc.Units.Flow(trusted.Context(t), "sent", "")
	if must(t, err); flow.Text != edited || flow.Version != second {
		t.Errorf("version %s has %q", flow.Version, flow.Text)
	}
	was, is := p.filesOf(first), p.filesOf(second)
	if len(is) != 4 {
		t.Errorf("it has %v", is)
	}
	for name, content := range was {
		if is[name] != content {
			t.Errorf("%s was %q, and is %q", name, content, is[name])
		}
	}

	t.Run("not with an error", func(t *testing.T) {
		p.post(editAt, "do", "save", "from", second, "text", "nodes: {one: {run: nobody}}\n").wants(t, 422, "Nothing was saved", "1 finding, line 1", "nodes: {one: {run: nobody}}\n</textarea>")
	})
	t.Run("not in place of another's", func(t *testing.T) {
		mine := strings.Replace(sentFlow, "hello", "mine", 1)
		p.post(editAt, "do", "save", "from", first, "text", mine).wants(t, 409, "Nothing was saved", "any more", "Your text is kept", `name="from" value="`+first+`"`, "say: mine")
		p.post(editAt, "do", "save", "text", mine).wants(t, 404, "Nothing was saved", "say: mine")
		p.post(editAt, "do", "save", "from", "../../x", "text", mine).wants(t, 404, "Nothing was saved")
	})
	t.Run("not after the unit has gone", func(t *testing.T) {
		must(t, p.svc.Units.Remove(trusted.Context(t), "sent", true))
		p.post(editAt, "do", "save", "from", second, "text", sentFlow).wants(t, 409, "Nothing was saved", "says it")
	})
	if got := p.versions(); len(got) != 2 {
		t.Errorf("its versions are %+v", got)
	}
}

func TestLinesEndAsTheyDid(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	dos := strings.ReplaceAll(sentFlow, "\n", "\r\n")
	version := p.uploads(dos)
	p.get(editAt).wants(t, 200, `name="ends" value="crlf"`)
	p.post(editAt, "do", "save", "from", version, "ends", "crlf", "text", dos).leads(t, "../flow")
	if got := p.versions(); len(got) != 1 {
		t.Errorf("what wasn't changed is another version: %+v", got)
	}
}

func TestAFlowOfADirectoryIsDownloaded(t *testing.T) {
	t.Parallel()
	p := newPage(t, chain).signIn()
	const at = "/ui/units/chain/flow/edit"
	p.get(at).wants(t, 200, "Download flow.yaml", "doesn’t write there").lacks(t, "Save as a new version")
	a := p.post(at, "do", "download", "text", "nodes:\r\n  other: {}\r\n").wants(t, 200)
	if a.body != "nodes:\n  other: {}\n" || a.Header.Get("Content-Disposition") != `attachment; filename=flow.yaml` || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/yaml") {
		t.Errorf("%q, %v", a.body, a.Header)
	}
	p.post(at, "do", "save", "text", "nodes: {other: {}}").wants(t, 404, "Nothing was saved")
	version := p.get("/ui/units/chain/flow").wants(t, 200).version(t)
	p.post(at, "do", "save", "from", version, "text", "nodes: {other: {}}").wants(t, 409, "is kept in a directory of the server", "nodes: {other: {}}")
	p.write("chain/flow.yaml", "nodes:\n  one: {walk: x}\n")
	p.get(at).wants(t, 200, "1 finding, line 2", "walk: x}", "Download flow.yaml")
	p.post(at, "do", "check", "text", "nodes:\n  one: {run: actor}\n").wants(t, 200, "Nothing is wrong", `data-key="one"`)
	raw, err := os.ReadFile(filepath.Join(p.sources, "chain", "flow.yaml"))
	if must(t, err); string(raw) != "nodes:\n  one: {walk: x}\n" {
		t.Errorf("the server wrote %q", raw)
	}
}

// version is the one that the page of a flow shows.
func (a answer) version(t testing.TB) string {
	t.Helper()
	m := regexp.MustCompile(`version <code>([0-9a-f]+)</code>`).FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("there is no version in %s", a.body)
	}
	return m[1]
}

// fields are the controls of a form that belong to its node, with what they are filled with.
func (a answer) fields() (filled []string) {
	for _, m := range regexp.MustCompile(`<input form="edit"[^>]* name="([^"]*)" value="([^"]*)"|<textarea form="edit"[^>]* name="([^"]*)"[^>]*>\n([^<]*)</textarea>`).FindAllStringSubmatch(a.body, -1) {
		filled = append(filled, html.UnescapeString(m[1]+m[3]), html.UnescapeString(m[2]+m[4]))
	}
	return filled
}

// text is what the editor has.
func (a answer) text(t testing.TB) string {
	t.Helper()
	m := regexp.MustCompile(`(?s)<textarea id="text"[^>]*>\n(.*?)</textarea>`).FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("there is no text in %s", a.body)
	}
	return html.UnescapeString(m[1])
}

func TestAFormChangesOneNodeAndNoOtherByte(t *testing.T) {
	t.Parallel()
	const text = `# the whole
nodes:
  one:   # first
    run: actor
    with: { say: "hello" } # says it
    set: {n: "${{ out.n }}"}
    next: in

  in:
    flow:
      nodes: {deep: {run: actor, with: {do: 'files'}, retry: 2}} # short
  # the end
`
	p := newPage(t).signIn()
	version := p.uploads(text)
	// fill posts the form of a node with some fields filled in otherwise.
	fill := func(node, do string, other ...string) answer {
		t.Helper()
		form := append(p.get(editAt+"?node="+node).wants(t, 200, `data-node="`+node+`"`).fields(), "do", do, "from", version, "text", text, "node", node)
		for i := 0; i < len(other); i += 2 {
			for j := 0; j < len(form); j += 2 {
				if form[j] == other[i] {
					form[j+1] = other[i+1]
				}
			}
		}
		return p.post(editAt, form...)
	}
	for name, c := range map[string]struct {
		node     string
		filled   []string
		from, to string
	}{
		"a text":                     {"one", []string{"v:/with/say", "good bye: # all"}, `"hello"`, `"good bye: # all"`},
		"an expression":              {"one", []string{"v:/set/n", "${{ out.n + 1 }}"}, "out.n }}", "out.n + 1 }}"},
		"a new value":                {"one", []string{"v:/timeout", "5m"}, "next: in\n", "next: in\n    timeout: 5m\n"},
		"a new number":               {"one", []string{"v:/retry", "3"}, "next: in\n", "next: in\n    retry: 3\n"},
		"a new expression":           {"one", []string{"v:/when", "${{ input.x == 1 }}"}, "next: in\n", "next: in\n    when: \"${{ input.x == 1 }}\"\n"},
		"a value that goes":          {"one", []string{"v:/set/n", ""}, `{n: "${{ out.n }}"}`, "{}"},
		"a value in brackets":        {"in/deep", []string{"v:/with/do", "it's"}, "'files'", "'it''s'"},
		"a number in brackets":       {"in/deep", []string{"v:/retry", "4"}, "retry: 2", "retry: 4"},
		"a value that goes in these": {"in/deep", []string{"v:/retry", ""}, ", retry: 2", ""},
		"two values":                 {"in/deep", []string{"v:/with/do", "say", "v:/when", "true"}, "'files'}, retry: 2", "'say'}, retry: 2, when: true"},
	} {
		a := fill(c.node, "fields", c.filled...).wants(t, 200, "Nothing is wrong")
		if got, want := a.text(t), strings.Replace(text, c.from, c.to, 1); got != want || want == text {
			t.Errorf("%s: the text is %s", name, got)
		}
	}
	for _, node := range []string{"one", "in", "in/deep"} {
		if got := fill(node, "fields").wants(t, 200, "Nothing is wrong").text(t); got != text {
			t.Errorf("the form of %s, which wasn't changed, makes %s", node, got)
		}
	}
	if got := fill("one", "fields", "v:", "run: actor\r\nnext: in # then\r\n").wants(t, 200, "Nothing is wrong").text(t); got != strings.Replace(text, text[strings.Index(text, "run: actor"):strings.Index(text, "next: in")+8], "run: actor\n    next: in # then", 1) {
		t.Errorf("by its YAML it is %s", got)
	}
	for _, wrong := range []string{"a: [", "a: 1\n b: 2", "<script>: alert"} {
		a := fill("one", "fields", "v:", wrong).wants(t, 200)
		if !strings.Contains(a.body, "Nothing was changed") && !strings.Contains(a.body, "finding") || strings.Contains(a.body, "<script>:") {
			t.Errorf("%q: %s", wrong, a.body)
		}
	}
	t.Run("what was changed in the text meanwhile stays", func(t *testing.T) {
		form := append(p.get(editAt+"?node=one").fields(), "do", "fields", "text", strings.Replace(text, "hello", "typed", 1), "node", "one")
		if got := p.post(editAt, form...).wants(t, 200).text(t); got != strings.Replace(text, "hello", "typed", 1) {
			t.Errorf("the text is %s", got)
		}
	})
	fill("one", "fields", "v:", "run: actor", "v:/run", "other").wants(t, 200, "Nothing was changed: the fields were filled in, and the YAML as well")
	fill("one", "save", "v:", "a: [").wants(t, 422, "Nothing was saved")
	fill("one", "save", "v:/with/say", "bye").leads(t, "../flow")
	if flow, _, err := p.svc.Units.Flow(trusted.Context(t), "sent", ""); err != nil || flow.Text != strings.Replace(text, "hello", "bye", 1) {
		t.Errorf("saved with a field that was filled in, it is %s", flow.Text)
	}
	p.post(editAt, "do", "fields", "at", "/nowhere", "v:/x", "1", "text", text, "node", "one").wants(t, 200, "Nothing was changed", "change it in the text")
	p.post(editAt, "do", "fields", "at", "", "v:/nodes/one/run", "1", "text", `{"nodes": {"one": {"run": "actor"}}}`, "node", "one").wants(t, 200, "can&#39;t be changed by itself")
	p.post(editAt, "do", "node", "text", text, "node", "in/deep").wants(t, 200, `data-node="in/deep"`, "<option selected>in/deep")
	p.get(editAt+"?node=nothing").wants(t, 200).lacks(t, "data-node")
}

func TestWhoMayEditAFlow(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	version := p.uploads(sentFlow)
	p.signIn(access.Read, access.Run)
	p.get("/ui/units/sent/flow").wants(t, 200).lacks(t, ">Edit<")
	p.get(editAt).wants(t, 403)
	p.post(editAt, "do", "save", "from", version, "text", "nodes: {one: {}}").wants(t, 403)
	p.signIn(access.Upload)
	p.get(editAt).wants(t, 403, "read and upload")
	p.post(editAt, "do", "check", "text", "nodes: {one: {}}").wants(t, 403, "read and upload")
	if got := p.versions(); len(got) != 1 {
		t.Errorf("its versions are %+v", got)
	}
}

func TestHostileTextsInTheEditorStayText(t *testing.T) {
	t.Parallel()
	const evil = `</textarea></svg><script>alert(1)</script>`
	p := newPage(t).signIn()
	version := p.uploads(sentFlow)
	for _, text := range []string{
		"# " + evil + "\nnodes: {one: {run: actor, with: {say: '" + evil + "'}, next: {'" + evil + "': end}}}", "nodes: {one: {run: actor, with: {'\"" + evil + "': '\"" + evil + "'}}}", "nodes: {one: {walk: '" + evil + "', next: '" + evil + "'}}", evil,
	} {
		for _, do := range []string{"check", "save"} {
			body := p.post(editAt, "do", do, "from", evil, "node", "one", "text", text).body
			if strings.Contains(body, "<script>a") || strings.Count(body, "</textarea>") != strings.Count(body, "<textarea") || strings.Count(body, "</svg>") != strings.Count(body, "<svg") || !strings.Contains(body, "&lt;script&gt;") {
				t.Errorf("%q has become markup in %s", text, body)
			}
		}
	}
	many := []string{"do", "fields", "node", "one", "at", "/nodes/one/with", "text", sentFlow}
	for i := range 500 {
		many = append(many, fmt.Sprintf("v:/%d", i), "x")
	}
	p.post(editAt, many...).wants(t, 200, "Nothing was changed: more fields are filled in")
	p.post(editAt, "do", "check", "from", version, "text", "nodes: \xff\x00").wants(t, 200, "1 finding")
}

// typed is a condition: so many characters stand before the caret, which is in the text.
const typed = `document.activeElement.id === "text" && document.activeElement.selectionStart === `

func TestAFlowIsCheckedWhileItIsTyped(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.uploads("nodes:\n  one: {run: actor}\n" + strings.Repeat("# far\n", 60))
	b := newTab(t, p)
	b.open(editAt)
	b.wide(1280)
	eval[bool](b, `document.querySelector("#text").focus(), document.querySelector("#text").setSelectionRange(25, 25), window.scrollTo(0, 40), true`)
	b.do(chromedp.KeyEvent(", walk: x"))
	b.until(says("#part-found", "1 finding, line 2") + ` && document.querySelector("#l2.mark") !== null`)
	if !eval[bool](b, typed+`34 && scrollY === 40 && document.querySelector("#part-found .graph [data-key=one]") !== null && document.querySelectorAll(".gut li").length === 62`) {
		t.Error("the focus, the caret, the place or the graph isn't what it was")
	}
	b.do(chromedp.KeyEvent("\b\b\b\b\b\b\b\b\b, next: two}\n  two: {wait: 1s"))
	b.until(says("#part-found", "Nothing is wrong") + ` && document.querySelector("#part-found [data-key=two]") !== null && document.querySelectorAll(".gut li").length === 63`)
	b.do(chromedp.Click(chromedp.CSS("#part-found [data-key=two] a")))
	b.until(typed + `38 && document.activeElement.selectionEnd === 55 && document.querySelector("[data-node=two]") !== null`)
	b.do(chromedp.SetValue(chromedp.CSS("#v\\/wait"), "2s"), chromedp.Focus(chromedp.CSS("#v\\/wait")), chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("#text").value.includes("next: two}\n  two: {wait: 2s}\n# far") && document.querySelector("#v\\/wait").value === "2s"`)
	b.do(chromedp.Focus(chromedp.CSS("#text")))
	b.do(chromedp.KeyEvent(kb.Tab))
	b.until(`document.activeElement.id !== "text"`)
	b.leave(chromedp.Click(chromedp.CSS(".edit .main")))
	b.until(says("h1", "Flow of sent") + ` && document.querySelector("[data-key=two]") !== null`)
	if got := p.versions(); len(got) != 2 || !got[0].Current {
		t.Errorf("its versions are %+v", got)
	}
}
