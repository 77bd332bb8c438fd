package web

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
)

// rendered shows a template by itself, to somebody who may do all.
func rendered(t *testing.T, template string, data any) string {
	t.Helper()
	texts, err := parseTemplates(newAssets())
	if err != nil {
		t.Fatal(err)
	}
	p := &Page{texts: texts}
	f := &frame{Up: "../", view: view{zone: time.UTC}, now: time.Now(), may: func(access.Scope) bool { return true }}
	parts, err := p.render(f, part{"it", template, data})
	if err != nil {
		t.Fatal(err)
	}
	return string(parts[0].HTML)
}

func TestAPermissionIsAskedForInItsOwnWords(t *testing.T) {
	t.Parallel()
	r := &request{httptest.NewRequest("GET", "/ui/questions/q", nil), &frame{now: time.Now()}}
	row := rowOfQuestion(r, api.Question{
		ID: "q", Kind: api.QuestionApproval, Address: "permission/7", Text: "Bash: rm -rf \u202egpj.build", Answers: []string{"allow_once", "reject"},
		Show: []byte(`{"allow_once":"Allow <once>","reject":"No"}`), MayAnswer: true,
	})
	want := []askAnswer{{Value: "allow_once", Label: "Allow <once>", Bare: true}, {Value: "reject", Label: "No", Bare: true}}
	if diff := cmp.Diff(want, answersOf(row)); diff != "" || row.Text != "Bash: rm -rf \uFFFDgpj.build" || row.Place() != "a permission" {
		t.Error(row.Text, diff)
	}
	html := rendered(t, "question", askView{askRow: row, Answers: answersOf(row)})
	if !strings.Contains(html, `value="allow_once" formnovalidate>Allow &lt;once&gt;</button>`) {
		t.Error(html)
	}
}

func TestTheStateOfAQuestionIsTold(t *testing.T) {
	t.Parallel()
	now := time.Now()
	before, after := now.Add(-time.Hour), now.Add(time.Hour)
	r := &request{httptest.NewRequest("GET", "/", nil), &frame{now: now}}
	for want, q := range map[string]api.Question{
		"ask":  {Until: &after},
		"late": {Until: &before, ClosedAt: &now},
		"off":  {Until: &after, ClosedAt: &now},
		"ok":   {Until: &before, Answered: &api.Answered{Action: "approve"}},
	} {
		if got := rowOfQuestion(r, q); got.Is.Class != want || (got.Over != "") != (want == "late" || want == "off") {
			t.Errorf("%+v, want %s", got.Is, want)
		}
	}
}

func TestWhatAQuestionShowsIsShownByItsKind(t *testing.T) {
	t.Parallel()
	file := `{"$file":{"name":"a b.png","size_bytes":3,"sha256":"x"}}`
	for value, want := range map[string]showed{
		`"text"`:         {Text: "text"},
		`12.50`:          {Text: "12.50"},
		`["a",1,null]`:   {List: []string{"a", "1", "null"}},
		`["a",{}]`:       {JSON: "[\n  \"a\",\n  {}\n]", List: nil},
		`[]`:             {},
		file:             {Files: []showedFile{{File: api.File{Name: "a b.png", SizeBytes: 3, SHA256: "x"}, Path: "questions/r/files/n", Picture: true}}},
		"[" + file + "]": {Files: []showedFile{{File: api.File{Name: "a b.png", SizeBytes: 3, SHA256: "x"}, Path: "questions/r/files/n", Picture: true}}},
	} {
		got := showOf([]byte(value), func(f api.File) showedFile { return fileShown("r", f, "n") })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", value, diff)
		}
	}
	if long := showOf([]byte(`"`+strings.Repeat("x", 5000)+`"`), nil); long.Long != "4.9 KiB" {
		t.Error(long.Long)
	}
}

func TestChangesAreShownWithWhatToLookAtFirst(t *testing.T) {
	t.Parallel()
	found := api.Changes{Partial: true, Warnings: []string{"left out: <x>"}, Changes: []api.Change{
		{Path: "notes.txt", Op: api.OpModify, Mode: "100644"},
		{Path: "run.sh", Op: api.OpAdd, Mode: "100755", Mind: []string{"can be executed, which is new"}},
		{Path: "<b>\x1b\u202e.txt", Op: api.OpDelete, Mode: "100644"},
	}}
	view, err := newChanges("id", found, "")
	if err != nil {
		t.Fatal(err)
	}
	files, _, _ := readDiff(strings.NewReader(aPatch), wide)
	view.Rows[0].Diff, view.Rows[1].Diff = files[1], files[0]
	html := rendered(t, "changes", view)
	for _, want := range []string{
		"half done", "left out: &lt;x&gt;", "Look at these first", `<a class="path" href="#f2">run.sh</a>`, "1 added, 1 modified, 1 deleted", "&lt;b&gt;&lt;U&#43;001B&gt;&lt;U&#43;202E&gt;.txt",
		`<tr class="del"><td>1</td><td></td><td>- thee ferry</td></tr>`, "new file mode 100755", "changes?file=%3cb%3e%1b%e2%80%ae.txt",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("%q isn't in %s", want, html)
		}
	}
	if view.Rows[0].Path != "run.sh" || len(view.First) != 1 {
		t.Errorf("%+v", view.Rows)
	}
	if _, err := newChanges("id", found, "other"); err == nil {
		t.Error("a file that wasn't changed is shown")
	}
}
