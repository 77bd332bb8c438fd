package httpapi

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestExecute(t *testing.T) {
	s := newServer(t, nil)
	ok := decode[executed](t, s.do("POST", "/execute", `{"capsule":"actor","input":{"do":"files"}}`).wants(t, 200))
	if !ok.Success || ok.Error != nil || string(ok.Output) != `{"n":1,"report":"report.txt"}` || len(ok.Files) != 3 || ok.Session == "" {
		t.Errorf("%+v", ok)
	}
	content, err := os.ReadFile(ok.Files["report.txt"])
	if err != nil || string(content) != "0123456789" {
		t.Errorf("%q, %v", content, err)
	}
	a := s.do("POST", "/execute", `{"capsule":"actor","input":{"do":"fail"}}`).wants(t, 200)
	for _, part := range []string{`"success":false`, `"output":null`, `"files":null`} {
		if !strings.Contains(a.body, part) {
			t.Errorf("no %s in %s", part, a.body)
		}
	}
	if failed := decode[executed](t, a); failed.Error == nil || *failed.Error == "" {
		t.Errorf("%+v", failed)
	}
	for body, status := range map[string]int{
		`{"capsule":"","input":{}}`:                      400,
		`{"input":{}}`:                                   422,
		`{"capsule":"actor"}`:                            422,
		`{"capsule":`:                                    422,
		`{"capsule":7,"input":{}}`:                       422,
		`{"capsule":"actor","input":[]}`:                 422,
		`{"capsule":"actor","input":{"do":7}}`:           422,
		`{"capsule":"actor","input":{},"files":["a"]}`:   422,
		`{"capsule":"nobody","input":{}}`:                404,
		`{"capsule":"actor","input":{},"files":null}`:    200,
		`{"capsule":"actor","input":{},"files":{}}`:      200,
		`{"capsule":"actor","input":{"doc":"x.txt"}}`:    422,
		`{"capsule":"actor","input":{"say":"/etc/x"}}`:   200,
		`{"capsule":"actor","input":{"file":"/etc/x"}}`:  403,
		`{"capsule":"actor","input":{"files":["/etc"]}}`: 403,
	} {
		if a := s.do("POST", "/execute", body); a.StatusCode != status {
			t.Errorf("%s: %d, want %d: %s", body, a.StatusCode, status, a.body)
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
	root, outside := hostDir(t)
	s := newServer(t, func(o *Options) { o.FileRoots = []string{t.TempDir(), root} })
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
		{"one for a field that takes none", `"input":{"file":"ROOT/a.txt"}`, 422, "file"},
		{"one that no field names", `"input":{},"files":{"x":"ROOT/a.txt"}`, 422, "no field"},
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
	root, _ := hostDir(t)
	s := newServer(t, nil)
	s.do("POST", "/execute", `{"capsule":"actor","input":{"doc":"`+root+`/a.txt"}}`).wants(t, 403)
}
