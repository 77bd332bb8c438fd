package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// unitAt writes a unit's directory. The text makes it another content.
func unitAt(t *testing.T, dir, name, text string) {
	t.Helper()
	write(t, "FROM "+dockertest.Image+"\nCMD [\"true\"]\n", dir, "Dockerfile")
	write(t, "name: "+name+"\ndescription: "+text+"\n", dir, "agent.yaml")
	write(t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, dir, "schema.json")
}

func TestANameNeverUploads(t *testing.T) {
	work, _ := alone(t)
	s := newInside(t)
	unitAt(t, filepath.Join(s.units, "own"), "own", "the server's")
	for _, name := range []string{"own", "mine", "v.1_a"} {
		unitAt(t, filepath.Join(work, name), name, "from here")
	}
	if err := os.Mkdir(filepath.Join(work, "blank"), 0o755); err != nil {
		t.Fatal(err)
	}
	unitAt(t, filepath.Join(s.units, "blank"), "blank", "beside an empty directory")
	unitAt(t, filepath.Join(work, "Mine@2"), "mine", "from a directory that can't be a name")
	s.start()
	token := map[string]string{}
	for _, who := range []string{"ann", "bob"} {
		code, out, told := command(t, t.Context(), "--data", s.data, "token", "add", who, "--scope", "run,upload,read")
		if code != 0 {
			t.Fatal(told)
		}
		token[who] = strings.TrimSpace(out)
	}
	for _, c := range []struct {
		who   string
		args  string
		code  int
		tells string
	}{
		{"ann", "run own --detach", 0, ""},
		{"ann", "run blank --detach", 0, ""},
		{"ann", "run mine --detach", 2, "`./mine` uploads it"},
		{"ann", "run v.1_a --detach", 2, "`./v.1_a` uploads it"},
		{"ann", "agent run mine -m hi", 2, "`./mine` uploads it"},
		{"ann", "describe mine", 2, "`./mine` describes it"},
		{"ann", "test mine", 2, "works on this machine"},
		{"ann", "build own", 2, "works on this machine"},
		{"ann", "run ./own --detach", 2, "kept in a directory of the server, " + filepath.Join(s.units, "own")},
		{"ann", "run own --replace --detach", 2, "--replace is for uploads"},
		{"ann", "run Mine --detach", 2, `there is no capsule "Mine"`},
		{"ann", "run ./mine --detach", 0, "uploading mine"},
		{"ann", "run mine/ --detach", 0, "mine is up to date there"},
		{"bob", "run mine --detach", 0, ""},
		{"bob", "run Mine@2 --detach", 2, "the server has another unit mine, uploaded by ann at"},
		{"bob", "units mine", 0, "ann"},
		{"bob", "run Mine@2 --replace --detach", 0, "uploading mine"},
		{"bob", "units versions mine", 0, "bob"},
		{"bob", "agent run ./mine --session 01a2243b-a4b4-7b14-a75b-6d19262dab23 -m hi", 2, "a session goes on with a unit"},
	} {
		t.Setenv("AOD_TOKEN", token[c.who])
		code, out, told := command(t, t.Context(), append(strings.Fields(c.args), "--server", s.url())...)
		if code != c.code || !strings.Contains(out+told, c.tells) || c.tells == "" && strings.Contains(told, "uploading") {
			t.Errorf("%s: aod %s: code %d, %s%s", c.who, c.args, code, out, told)
		}
	}
}

func TestANameOfThisMachine(t *testing.T) {
	work, _ := alone(t)
	for dir, name := range map[string]string{
		"one/hello": "hello", "hello": "hello", "one/other": "twin", "one/twin": "twin", "two/far": "far", "three/near": "far",
	} {
		unitAt(t, filepath.Join(work, dir), name, "of "+dir)
	}
	if err := os.Symlink("hello", filepath.Join(work, "one", "link")); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		code  int
		tells []string
	}{
		"hello --units one":             {0, []string{"of one/hello", "hello is the unit in one/hello; the directory here is ./hello"}},
		"./hello --units one":           {0, []string{"of hello"}},
		"hello":                         {0, []string{"of hello"}},
		"twin --units one":              {2, []string{"one/other and one/twin"}},
		"far --units two":               {0, []string{"of two/far"}},
		"far --units two --units two":   {0, []string{"of two/far"}},
		"far --units two/far":           {0, []string{"of two/far"}},
		"far --units two --units three": {2, []string{"two/far and three/near", "name one by its directory"}},
		"one --units two":               {2, []string{"Dockerfile: it is missing"}},
	} {
		code, out, told := command(t, t.Context(), append([]string{"describe"}, strings.Fields(args)...)...)
		if code != want.code {
			t.Errorf("describe %s: code %d, %s", args, code, told)
		}
		contains(t, out+told, want.tells...)
	}
}
