package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/programtest"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// readmeAddress is where the README's server listens: the default.
const readmeAddress = "127.0.0.1:7070"

// countRows is what the README leaves out of the capsule whose logic it shows.
var countRows = map[string]string{
	"Dockerfile": "FROM aod/base\nCOPY . /capsule\n",
	"agent.yaml": "name: count-rows\n",
	"run.py":     "import aod\n\naod.run()\n",
	"tools.yaml": "- {name: report, capsule: csv-report, description: Statistics of a table.}\n",
	"schema.json": `{"input": {"type": "object", "properties": {"table": {"type": "string", "format": "file_path"}}},
		"output": {"type": "object", "properties": {"rows": {"type": "int"}}, "required": ["rows"]}}`,
}

// Whoever pastes the README's blocks into a shell in a fresh clone, as somebody whose home
// is empty, sees what it shows; the programs that it shows are those that run. The address
// of the server is the only word that is changed. Who pastes gives the server time to start.
func TestTheREADMEWorks(t *testing.T) {
	t.Parallel()
	dockertest.Require(t)
	requirePrograms(t, "make", "git", "script", "curl")
	_, blocks := readGuide(t, readme)
	scripts, shown := stops(blocks)
	dir := clone(t)
	for name, text := range countRows {
		writeFile(t, filepath.Join(dir, "count-rows", name), text)
	}
	writeFile(t, filepath.Join(dir, "count-rows/src/main.py"), titled(t, blocks, "count-rows/src/main.py"))
	scripts = append(scripts,
		"aod run ./count-rows --units examples/capsules --file table=examples/capsules/csv-report/input/sales.csv\n")
	shown = append(shown, []block{{language: "json", text: `{"rows": 60}`}})

	address := programtest.FreeAddress(t)
	const session, serves = "aod run examples/capsules/analyst", "aod serve --units examples/capsules &\n"
	started := false
	for i := range scripts {
		scripts[i] = strings.ReplaceAll(scripts[i], readmeAddress, address)
		if strings.Contains(scripts[i], session) {
			scripts[i] = "sh scripts/readme-session.sh\n" // in a terminal
		}
		started = started || strings.Contains(scripts[i], serves)
		scripts[i] = strings.Replace(scripts[i], serves, serves+"until curl -sf -o /dev/null "+address+"/readyz; do sleep 0.1; done\n", 1)
	}
	if !started {
		t.Fatalf("the README has no line %q", serves)
	}
	printed := paste(t, dir, scripts, newcomer(t, dir, "AOD_LISTEN="+address))
	for i, said := range printed {
		for _, b := range shown[i] {
			compare(t, scripts[i], b, said)
		}
	}
	made, err := os.ReadFile(filepath.Join(dir, "word-count/src/main.py"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(made), titled(t, blocks, "word-count/src/main.py")) {
		t.Errorf("aod init makes another src/main.py than the README shows:\n%s", made)
	}
	if last := printed[len(scripts)-2]; !strings.Contains(last, "hello") || !strings.Contains(last, "completed") {
		t.Errorf("the server's runs are listed as %q", last)
	}
}

// titled returns the text of the block with a title.
func titled(t *testing.T, blocks []block, title string) string {
	t.Helper()
	for _, b := range blocks {
		if b.title == title {
			return b.text
		}
	}
	t.Fatalf("the README shows no %s", title)
	return ""
}

// clone copies what a clone of the repository would have, as it is in the tree.
func clone(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = ".."
	names, err := list.Output()
	if err != nil {
		t.Skipf("this isn't a clone: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "aod")
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		from := filepath.Join("..", name)
		info, err := os.Lstat(from)
		if err != nil {
			continue // removed, and not committed
		}
		raw, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), string(raw))
		if err := os.Chmod(filepath.Join(dir, name), info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newcomer is the environment of somebody who has never had AOD: an empty home, and no
// setting of AOD's but the given ones. Go's caches are ours, or the test would fetch all.
func newcomer(t *testing.T, dir string, more ...string) []string {
	t.Helper()
	var env []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "AOD_") && !strings.HasPrefix(name, "XDG_") && name != "HOME" && name != "MAKEFLAGS" {
			env = append(env, pair)
		}
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	home := filepath.Join(filepath.Dir(dir), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return append(append(env, "HOME="+home), more...)
}
