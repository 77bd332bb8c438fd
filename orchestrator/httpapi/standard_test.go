package httpapi

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func TestExecute(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	ok := decode[httpwire.Executed](t, s.do("POST", "/execute", `{"capsule":"actor","input":{"do":"files"}}`).wants(t, 200))
	if !ok.Success || ok.Error != nil || string(ok.Output) != `{"n":1,"report":"report.txt"}` || len(ok.Files) != 3 || ok.Session == nil {
		t.Errorf("%+v", ok)
	}
	content, err := os.ReadFile(ok.FilePaths["report.txt"])
	if err != nil || string(content) != "0123456789" || !slices.Contains(ok.Files, "report.txt") {
		t.Errorf("%q, %v", content, err)
	}
}

func TestExecuteTellsWhyACapsuleFailed(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	a := s.do("POST", "/execute", `{"capsule":"actor","input":{"do":"fail","say":"oh\u001b[31mno"}}`).wants(t, 200)
	const want = `{"success":false,"output":null,"files":null,"file_paths":null,` +
		`"error":"the capsule failed with exit code 3\nhint: its log says more\nits own last words on stderr:\nerr oh\ufffd[31mno","session_id":null}` + "\n"
	if got := strings.ReplaceAll(a.body, "\ufffd", `\ufffd`); got != want {
		t.Error(got)
	}
	a = s.do("POST", "/execute", `{"capsule":"actor","input":{"do":"complain","say":"Oops"}}`).wants(t, 200)
	if got := decode[httpwire.Executed](t, a); !strings.HasPrefix(*got.Error, "Oops: Oops (exit code 1)\nits own") {
		t.Errorf("%q", *got.Error)
	}
	if strings.Contains(s.log.String(), "Oops") {
		t.Error("the log tells a program's words")
	}
}

func TestExecuteAnswersInTheStandardsWords(t *testing.T) {
	t.Parallel()
	problems := newServer(t, func(o *Options) { o.ExecuteProblems = true })
	s := newServer(t, nil)
	for body, status := range map[string]int{
		`{"capsule":"","input":{}}`:                    400,
		`{"input":{}}`:                                 422,
		`{"capsule":"actor"}`:                          422,
		`{"capsule":`:                                  422,
		`{"capsule":7,"input":{}}`:                     422,
		`{"capsule":"actor","input":[]}`:               422,
		`{"capsule":"actor","input":{},"files":["a"]}`: 422,
	} {
		a := s.do("POST", "/execute", body)
		u := decode[httpwire.Unreadable](t, a)
		if a.StatusCode != status || len(u.Detail) == 0 || u.Detail[0].Loc[0] != "body" || u.Detail[0].Msg == "" || u.Detail[0].Type == "" {
			t.Errorf("%s: %d %+v", body, a.StatusCode, u)
		}
		decode[httpwire.Problem](t, problems.do("POST", "/execute", body).wants(t, status))
	}
	for body, status := range map[string]int{
		`{"capsule":"actor","input":{"do":7}}`:           422,
		`{"capsule":"nobody","input":{}}`:                404,
		`{"capsule":"actor","input":{"doc":"x.txt"}}`:    422,
		`{"capsule":"actor","input":{"file":"/etc/x"}}`:  403,
		`{"capsule":"actor","input":{"files":["/etc"]}}`: 403,
		`{"capsule":"actor","input":{"n":1}}`:            422,
	} {
		got := decode[httpwire.Executed](t, s.do("POST", "/execute", body).wants(t, 200))
		p := decode[httpwire.Problem](t, problems.do("POST", "/execute", body).wants(t, status))
		if got.Success || got.Error == nil || !strings.HasPrefix(*got.Error, p.Detail) || got.Session != nil || got.Files != nil {
			t.Errorf("%s: %+v", body, got)
		}
		s.do("POST", "/execute", body, "Accept: "+httpwire.TypeProblem).wants(t, status)
	}
	for _, body := range []string{
		`{"capsule":"actor","input":{},"files":null,"session":1}`,
		`{"capsule":"actor","input":{},"files":{}}`,
		`{"capsule":"actor","input":{"say":"/etc/x"}}`,
	} {
		if got := decode[httpwire.Executed](t, s.do("POST", "/execute", body).wants(t, 200)); !got.Success {
			t.Errorf("%s: %s", body, *got.Error)
		}
	}
}

// hostDir makes a root with files and, beside it, what is none of the server's business.
func hostDir(t *testing.T) (root, outside string) {
	t.Helper()
	root, outside = t.TempDir(), filepath.Join(t.TempDir(), "outside.txt")
	write(t, outside, "secret")
	write(t, filepath.Join(root, "a.txt"), "AAA")
	write(t, filepath.Join(root, "sub", "b.txt"), "BBB")
	must(t, os.Symlink(outside, filepath.Join(root, "link")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(root, "linkdir")))
	must(t, os.Symlink("a.txt", filepath.Join(root, "within")))
	must(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600))
	return root, outside
}

func TestExecuteTakesFilesOfTheHostFromTheRootsOnly(t *testing.T) {
	t.Parallel()
	root, outside := hostDir(t)
	s := newServer(t, func(o *Options) { o.FileRoots, o.ExecuteProblems = []string{t.TempDir(), root}, true })
	cases := []struct {
		name, rest string
		status     int
		says       string
	}{
		{"a path in the input", `"input":{"do":"read","doc":"ROOT/a.txt"}`, 200, `"got":"AAA"`},
		{"a name in the input and its path in files", `"input":{"do":"read","doc":"x.txt"},"files":{"x.txt":"ROOT/sub/b.txt"}`, 200, `"got":"BBB"`},
		{"the form within /io", `"input":{"do":"read","doc":"/io/input/x.txt"},"files":{"x.txt":"ROOT/a.txt"}`, 200, `"got":"AAA"`},
		{"a field's name in files", `"input":{"do":"read"},"files":{"doc":"ROOT/a.txt"}`, 200, `"got":"AAA"`},
		{"a link that stays within", `"input":{"do":"read","doc":"ROOT/within"}`, 200, `"got":"AAA"`},
		{"several files", `"input":{"docs":["ROOT/a.txt","y"]},"files":{"y":"ROOT/sub/b.txt"}`, 200, `"success":true`},
		{"a list with one that was not given", `"input":{"docs":["ROOT/a.txt","y"]}`, 422, "/docs/1"},
		{"a file of the host", `"input":{"doc":"OUTSIDE"}`, 403, "may not be taken"},
		{"a file of the host in files", `"input":{"doc":"x"},"files":{"x":"OUTSIDE"}`, 403, "may not be taken"},
		{"a way out by dots", `"input":{"doc":"ROOT/../../../../../../etc/passwd"}`, 403, "may not be taken"},
		{"a link out", `"input":{"doc":"ROOT/link"}`, 403, "may not be taken"},
		{"a directory that leads out", `"input":{"doc":"ROOT/linkdir/outside.txt"}`, 403, "may not be taken"},
		{"a FIFO", `"input":{"doc":"ROOT/fifo"}`, 403, "may not be taken"},
		{"a directory", `"input":{"doc":"ROOT/sub"}`, 403, "may not be taken"},
		{"a relative path", `"input":{"doc":"x"},"files":{"x":"a.txt"}`, 403, "may not be taken"},
		{"one that is not there", `"input":{"doc":"ROOT/none"}`, 422, "not there"},
		{"one for a field that the contract doesn't allow", `"input":{"file":"ROOT/a.txt"}`, 422, "/file"},
		{"one that no field names", `"input":{"do":"read","doc":"x"},"files":{"x":"ROOT/a.txt","y":"ROOT/sub/b.txt"}`, 200, `"got":"AAA"`},
		{"a further file of the host", `"input":{},"files":{"x":"OUTSIDE"}`, 403, "may not be taken"},
		{"a further file with a name that leads out", `"input":{},"files":{"../x":"ROOT/a.txt"}`, 422, "can't keep its name"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rest := strings.NewReplacer("ROOT", root, "OUTSIDE", outside).Replace(c.rest)
			a := s.do("POST", "/execute", `{"capsule":"actor",`+rest+`}`).wants(t, c.status)
			if !strings.Contains(a.body, c.says) {
				t.Errorf("it doesn't say %s: %s", c.says, a.body)
			}
			if strings.Contains(a.body, "secret") {
				t.Errorf("it lets out what is outside: %s", a.body)
			}
			s.spoolIsEmpty(t)
		})
	}
}

func TestExecuteWithoutRootsTakesNothing(t *testing.T) {
	t.Parallel()
	root, _ := hostDir(t)
	s := newServer(t, func(o *Options) { o.ExecuteProblems = true })
	s.do("POST", "/execute", `{"capsule":"actor","input":{"doc":"`+root+`/a.txt"}}`).wants(t, 403)
}

func TestFilesThatNoContractDeclares(t *testing.T) {
	t.Parallel()
	root, outside := hostDir(t)
	s := newServer(t, func(o *Options) { o.FileRoots = []string{root} })
	for name, content := range unitFiles {
		write(t, filepath.Join(s.sources, "lister", name), strings.Replace(content, "name: actor", "name: lister", 1))
	}
	write(t, filepath.Join(s.sources, "lister", "schema.json"), `{"input":{"type":"object","properties":{"file":{"type":"string","maxLength":8}}},"output":{"type":"object"}}`)
	cases := []struct{ name, rest, want string }{
		{"a path in file", `"input":{"file":"ROOT/a.txt"}`, `{"file":"a.txt"} a.txt=AAA`},
		{"paths in files", `"input":{"files":["ROOT/a.txt","ROOT/sub/b.txt"]}`, `{"files":["a.txt","b.txt"]} a.txt=AAA b.txt=BBB`},
		{"a path in files that is no list", `"input":{"files":"ROOT/a.txt"}`, `{"files":"a.txt"} a.txt=AAA`},
		{"a list in file", `"input":{"file":["ROOT/a.txt"]}`, "/file"},
		{"a name that came with the request", `"input":{"file":"x.txt"},"files":{"x.txt":"ROOT/a.txt"}`, `{"file":"x.txt"} x.txt=AAA`},
		{"further files", `"input":{"files":["x"]},"files":{"x":"ROOT/a.txt","more/y":"ROOT/sub/b.txt"}`, `{"files":["x"]} more/y=BBB x=AAA`},
		{"texts", `"input":{"file":"a.txt","files":["b.txt",7],"other":"ROOT/a.txt"}`, `{"file":"a.txt","files":["b.txt",7],"other":"ROOT/a.txt"}`},
		{"a list with something else", `"input":{"files":["ROOT/a.txt",7]}`, "/files/1: names a file that was not given"},
		{"a link out", `"input":{"file":"ROOT/link"}`, "may not be taken"},
		{"a file of the host", `"input":{"files":["OUTSIDE"]}`, "may not be taken"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			paths := strings.NewReplacer("ROOT", root, "OUTSIDE", outside)
			a := s.do("POST", "/execute", `{"capsule":"lister",`+strings.Replace(paths.Replace(c.rest), `"input":{`, `"input":{"do":"list",`, 1)+`}`).wants(t, 200)
			got := decode[httpwire.Executed](t, a)
			text := string(got.Output)
			if !got.Success {
				text = *got.Error
			}
			if want := paths.Replace(c.want); !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), want) {
				t.Errorf("no %s in %s", want, text)
			}
			s.spoolIsEmpty(t)
		})
	}
}
