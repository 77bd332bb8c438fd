package contract

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

const file = `{"type":"string","format":"file_path"}`

func TestFileRefsAreFoundWhereverTheContractSaysFilePath(t *testing.T) {
	cases := []struct {
		name, schema, payload string
		want                  []string // "pointer=name"
	}{
		{"a property", `{"properties":{"f":` + file + `,"s":{"type":"string"}}}`, `{"f":"a.txt","s":"b.txt"}`, []string{"/f=a.txt"}},
		{"a pattern property", `{"patternProperties":{"^f":` + file + `}}`, `{"f1":"a","g":"b"}`, []string{"/f1=a"}},
		{"additional properties", `{"properties":{"s":{}},"additionalProperties":` + file + `}`, `{"s":"x","a/b":"y"}`, []string{"/a~1b=y"}},
		{"items", `{"properties":{"l":{"items":` + file + `}}}`, `{"l":["a","b"]}`, []string{"/l/0=a", "/l/1=b"}},
		{"a tuple and what follows", `{"properties":{"l":{"items":[{},` + file + `],"additionalItems":` + file + `}}}`, `{"l":["a","b","c"]}`, []string{"/l/1=b", "/l/2=c"}},
		{"allOf, anyOf and oneOf, each place once", `{"properties":{"a":{"allOf":[` + file + `,` + file + `]},"b":{"anyOf":[{"type":"int"},` + file + `]},"c":{"oneOf":[` + file + `]}}}`, `{"a":"x","b":"y","c":"z"}`, []string{"/a=x", "/b=y", "/c=z"}},
		{"if, then and else", `{"if":{"required":["k"]},"then":{"properties":{"t":` + file + `}},"else":{"properties":{"e":` + file + `}}}`, `{"t":"x","e":"y"}`, []string{"/e=y", "/t=x"}},
		{"a dependency", `{"dependencies":{"k":{"properties":{"f":` + file + `}}}}`, `{"k":1,"f":"x"}`, []string{"/f=x"}},
		{"a reference, recursively", `{"properties":{"f":` + file + `,"next":{"$ref":"#"}}}`, `{"f":"a","next":{"next":{"f":"b"}}}`, []string{"/f=a", "/next/next/f=b"}},
		{"a nullable file that is null", `{"properties":{"f":{"type":["string","null"],"format":"file_path"}}}`, `{"f":null}`, nil},
		{"not under not", `{"properties":{"f":{"not":` + file + `}}}`, `{"f":"a"}`, nil},
		{"not under an untaken type", `{"properties":{"f":{"type":"list","items":` + file + `}}}`, `{"f":"a"}`, nil},
		{"absolute names of any stage", `{"additionalProperties":` + file + `}`, `{"a":"/io/input/x","b":"/io/output//d/./y"}`, []string{"/a=x", "/b=d/y"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, ref := range compiled(t, c.schema).FileRefs(payload(t, c.payload)) {
				if ref.Err != nil {
					t.Errorf("%s: %v", ref.Pointer, ref.Err)
				}
				got = append(got, ref.Pointer+"="+ref.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFileRefsCarryTheReasonOfARefusal(t *testing.T) {
	s := compiled(t, `{"additionalProperties":`+file+`}`)
	refs := s.FileRefsAt(payload(t, `{"a":"/io/input/x","b":"../x"}`), StageOutput)
	if len(refs) != 2 || refs[0].Name != "" || !fault.Is(refs[0].Err, fault.Input) || !fault.Is(refs[1].Err, fault.Input) {
		t.Errorf("refs = %v", refs)
	}
}

func TestCleanFilesPutsCleanNamesInPlace(t *testing.T) {
	s := compiled(t, `{"properties":{"f":`+file+`,"l":{"items":`+file+`},"o":{"additionalProperties":`+file+`},"s":{"type":"string"}}}`)
	long := strings.Repeat("k", 2000)
	for name, c := range map[string]struct{ given, want string }{
		"what is clean stays as it was given":      {`{"s":"./x","n":1.0,"f":"a"}`, `{"s":"./x","n":1.0,"f":"a"}`},
		"texts that stand for a name are replaced": {`{"s":"./x","n":1e2,"f":"./a","l":["b","/io/handoff/outgoing/c"]}`, `{"f":"a","l":["b","c"],"n":1e2,"s":"./x"}`},
		"a refused name stays":                     {`{"l":["./a","../b"]}`, `{"l":["a","../b"]}`},
		"names that need escapes":                  {`{"o":{"a/b~":"./x","":"./y"}}`, `{"o":{"":"y","a/b~":"x"}}`},
		"names that are cut in a pointer":          {`{"o":{"` + long + `1":"./x","` + long + long + `2":"./y","` + long + long + `3":"./z"}}`, `{"o":{"` + long + `1":"x","` + long + long + `2":"y","` + long + long + `3":"z"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := payload(t, c.given)
			_, clean, err := s.CleanFiles(p, StageOutgoing)
			if err != nil || string(clean.JSON()) != c.want {
				t.Errorf("CleanFiles = %.200s, %v", clean.JSON(), err)
			}
			if compact := payload(t, c.given); string(p.JSON()) != string(compact.JSON()) {
				t.Error("the payload itself has changed")
			}
		})
	}
	refs, _, _ := s.CleanFiles(payload(t, `{"l":["./a","../b"]}`), StageOutgoing)
	if len(refs) != 2 || refs[0].Text != "./a" || refs[0].Name != "a" || refs[1].Text != "../b" || refs[1].Err == nil {
		t.Errorf("refs %+v", refs)
	}
}

// stageDir is a directory with one of everything in it.
func stageDir(t *testing.T) *os.Root {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(at("sub/deep"), 0o755))
	must(os.WriteFile(at("plain.txt"), []byte("x"), 0o600))
	must(os.WriteFile(at("sub/deep/plain.txt"), nil, 0))
	must(os.Symlink("/etc/passwd", at("passwd")))
	must(os.Symlink("plain.txt", at("link")))
	must(os.Symlink("sub", at("linkdir")))
	must(os.Symlink("loop", at("loop")))
	must(os.Symlink("..", at("sub/up")))
	must(syscall.Mkfifo(at("fifo"), 0o600))
	listener, err := net.Listen("unix", at("sock"))
	must(err)
	t.Cleanup(func() { _ = listener.Close() })
	root, err := os.OpenRoot(dir)
	must(err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestCheckFiles(t *testing.T) {
	root := stageDir(t)
	s := compiled(t, `{"properties":{"f":`+file+`}}`)
	cases := []struct{ name, file, want, hint string }{
		{"a regular file", "plain.txt", "", ""},
		{"a regular file that nobody may read", "sub/deep/plain.txt", "", ""},
		{"the stage's absolute form", "/io/output/plain.txt", "", ""},
		{"a file that isn't there", "nope.txt", `names file "nope.txt", which is not in /io/output`, "before the result is returned"},
		{"a file in a directory that isn't there", "nope/x", `names file "nope/x", which is not in /io/output`, ""},
		{"a link to /etc/passwd", "passwd", `names file "passwd", which is a symbolic link, not a regular file`, "copy the content"},
		{"a link to a file beside it", "link", "which is a symbolic link", ""},
		{"a link to itself", "loop", "which is a symbolic link", ""},
		{"a link to a directory", "linkdir", "which is a symbolic link", ""},
		{"a file behind a linked directory", "linkdir/deep/plain.txt", "a directory on the way is a symbolic link", "real directories"},
		{"a loop of directories", "sub/up/sub/up/plain.txt", "a directory on the way is a symbolic link", ""},
		{"a directory", "sub", "which is a directory, not a regular file", "archive"},
		{"a FIFO", "fifo", "which is a FIFO", ""},
		{"a socket", "sock", "which is a socket", ""},
		{"a file as a directory", "plain.txt/x", "a directory on the way is a file", ""},
		{"a way out", "../x", `the file name has ".." in it`, "/io/output"},
		{"a way out and back", "sub/../plain.txt", `".." in it`, ""},
		{"an absolute name", "/etc/passwd", "the file name is absolute", "relative to /io/output"},
		{"another stage's absolute form", "/io/input/plain.txt", "the file name is absolute", ""},
		{"an empty name", "", "the file name is empty", ""},
		{"a NUL", "a\\u0000b", "control character", ""},
		{"a terminal's escape", "a\\u001b[31m", "control character", ""},
		{"a very long name", strings.Repeat("x", 300), "longer than 255", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found := s.CheckFiles(payload(t, `{"f":"`+c.file+`"}`), StageOutput, root)
			if c.want == "" {
				wantFindings(t, found, nil)
				return
			}
			wantFindings(t, found, []string{"/f|" + c.want + "|" + c.hint})
		})
	}
}

func TestCheckFilesSeesADevice(t *testing.T) {
	root, err := os.OpenRoot("/dev")
	if err != nil {
		t.Skip("no /dev here: ", err)
	}
	defer func() { _ = root.Close() }()
	found := compiled(t, `{"properties":{"f":`+file+`}}`).CheckFiles(payload(t, `{"f":"null"}`), StageOutput, root)
	wantFindings(t, found, []string{"/f|which is a device|"})
}

func TestCheckFilesAtTheInputPointsToTheFlag(t *testing.T) {
	found := compiled(t, `{"properties":{"f":`+file+`}}`).CheckFiles(payload(t, `{"f":"x"}`), StageInput, stageDir(t))
	wantFindings(t, found, []string{`/f|which is not in /io/input|--file field=PATH`})
}

func TestCheckFilesReportsEachPlaceOfOneName(t *testing.T) {
	s := compiled(t, `{"additionalProperties":`+file+`}`)
	found := s.CheckFiles(payload(t, `{"a":"x","b":"x","c":"plain.txt"}`), StageOutput, stageDir(t))
	wantFindings(t, found, []string{"/a|names file|", "/b|names file|"})
}

func TestCheckFilesIsBounded(t *testing.T) {
	s := compiled(t, `{"properties":{"l":{"items":`+file+`}}}`)
	found := s.CheckFiles(payload(t, `{"l":["x"`+strings.Repeat(`,"x"`, 5000)+`]}`), StageOutput, stageDir(t))
	if len(found) != MaxFindings+1 {
		t.Errorf("%d findings", len(found))
	}
}

func TestFileFields(t *testing.T) {
	s := compiled(t, `{"definitions":{"f":`+file+`,"o":{"properties":{"d":`+file+`}}},"allOf":[{"$ref":"#/definitions/o"}],
		"properties":{"b":{"$ref":"#/definitions/f"},"a":`+file+`,"c":{"anyOf":[{"type":"null"},`+file+`]},"list":{"items":`+file+`},"s":{"type":"string"}}}`)
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, s.FileFields()); diff != "" {
		t.Error(diff)
	}
}

func TestCleanName(t *testing.T) {
	good := map[string]string{
		"a": "a", "a/b.txt": "a/b.txt", "./a": "a", "a//b": "a/b", "a/./b": "a/b", "..a/b..": "..a/b..", "a b": "a b", "é/日本": "é/日本", "-rf": "-rf", "...": "...",
		"/io/output/a": "a", "/io/output//a/b": "a/b", "io/output/a": "io/output/a", strings.Repeat("x", 255): strings.Repeat("x", 255),
		strings.Repeat("d/", 15) + "f": strings.Repeat("d/", 15) + "f",
	}
	for name, want := range good {
		if got, err := CleanName(name, StageOutput); got != want || err != nil {
			t.Errorf("CleanName(%q) = %q, %v, want %q", name, got, err, want)
		}
	}
	bad := []string{
		"", ".", "..", "/", "./", "a/", "a/.", "a/..", "../a", "a/../b", "a/../../b", "/a", "//a", "/io/output", "/io/output/", "/io/output/..", "/io/output/../../etc/passwd", "/io/output/./.",
		"/io/outputs/a", "/io/input/a", "/io/handoff/incoming/a", "/IO/output/a", `a\b`, `C:\a`, "a\x00b", "a\nb", "a\x7fb", "a\u0085b", "a\xffb", strings.Repeat("x", 256),
		strings.Repeat("d/", 16) + "f", strings.Repeat("abcdefgh/", 120) + "f",
	}
	for _, name := range bad {
		if got, err := CleanName(name, StageOutput); !fault.Is(err, fault.Input) || got != "" || fault.Public(err).Hint == "" {
			t.Errorf("CleanName(%q) = %q, %v, want an Input fault with a hint", name, got, err)
		}
	}
	for _, stage := range stages {
		if got, err := CleanName(string(stage)+"/x", AnyStage); got != "x" || err != nil {
			t.Errorf("CleanName(%s/x, AnyStage) = %q, %v", stage, got, err)
		}
	}
}

func TestNamesAtTheirLimits(t *testing.T) {
	part := strings.Repeat("x", maxPartBytes)
	for _, c := range []struct {
		name, text string
		stage      Stage
		want       string // of the message; "": it is taken
	}{
		{"parts as long as a name may be", strings.Join([]string{part, part, part, part[:254]}, "/"), StageInput, ""},
		{"a part too long in a short name", part + "x/a", StageInput, "a part of the file name is longer than 255 bytes"},
		{"a byte too long in all", strings.Join([]string{part, part, part, part, "x"}, "/"), StageInput, "longer than 1024 bytes"},
		{"bytes, not letters", strings.Repeat("é", 128), StageInput, "longer than 255 bytes"},
		{"the stage's own form counts", string(StageInput) + "/" + strings.Repeat("a/", 508) + "x", StageInput, "longer than 1024 bytes"},
		{"directories of no meaning don't count", strings.Repeat("./", 100) + "a", StageInput, ""},
		{"another stage's form, of any", string(StageIncoming) + "/a", AnyStage, ""},
		{"a stage that is none", "/io/other/a", AnyStage, "the file name is absolute"},
		{"the stage twice", string(StageInput) + string(StageInput) + "/a", StageInput, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := CleanName(c.text, c.stage)
			if (err == nil) != (c.want == "") || err != nil && (got != "" || !fault.Is(err, fault.Input) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestFilesThatCantBeLookedAt(t *testing.T) {
	root := stageDir(t)
	if err := root.Close(); err != nil {
		t.Fatal(err)
	}
	s := compiled(t, `{"properties":{"f":`+file+`}}`)
	for _, stage := range stages {
		wantFindings(t, s.CheckFiles(payload(t, `{"f":"plain.txt"}`), stage, root), []string{`/f|which can't be looked at in ` + string(stage) + `|permissions`})
	}
}

func TestWhatIsToBeDoneAboutAFileDependsOnTheStage(t *testing.T) {
	root, s := stageDir(t), compiled(t, `{"properties":{"f":`+file+`}}`)
	for stage, hint := range map[Stage]string{
		StageInput: "--file field=PATH", StageIncoming: "--file field=PATH", StageOutput: "write the file to /io/output", StageOutgoing: "write the file to /io/handoff/outgoing",
	} {
		wantFindings(t, s.CheckFiles(payload(t, `{"f":"none"}`), stage, root), []string{"/f|which is not in " + string(stage) + "|" + hint})
		wantFindings(t, s.CheckFiles(payload(t, `{"f":"fifo"}`), stage, root), []string{"/f|which is a FIFO|regular file in " + string(stage)})
	}
}

func TestOtherValuesInThePlaceOfFiles(t *testing.T) {
	s := compiled(t, `{"properties":{"f":`+file+`,"l":{"items":`+file+`},"o":{"additionalProperties":`+file+`}}}`)
	p := payload(t, `{"f":"./a","l":["b","../c"],"o":{"x/y":"d"},"n":1.50,"s":"a"}`)
	refs := s.FileRefs(p)
	got := p.Replaced(refs[:len(refs)-1], func(ref FileRef) any { return map[string]any{"name": ref.Name, "bad": ref.Err != nil} })
	want := map[string]any{
		"f": map[string]any{"name": "a", "bad": false},
		"l": []any{map[string]any{"name": "b", "bad": false}, map[string]any{"name": "", "bad": true}},
		"o": map[string]any{"x/y": "d"}, "n": json.Number("1.50"), "s": "a",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got["l"].([]any)[0] = "changed"
	if string(p.JSON()) != `{"f":"./a","l":["b","../c"],"o":{"x/y":"d"},"n":1.50,"s":"a"}` || p.Values()["l"].([]any)[0] != "b" {
		t.Errorf("the payload has changed: %s", p.JSON())
	}
	if empty := (Payload{}).Replaced(nil, nil); empty == nil || len(empty) > 0 {
		t.Errorf("of nothing: %v", empty)
	}
}
