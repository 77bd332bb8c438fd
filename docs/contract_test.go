package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

const contractGuide = "agent-http-contract.md"

// What stands under "Serving" is a tour too, with two clients: blocks whose titles are
// their files' names. The one in Go is built within this module, as the guide has it.
func TestTheContractIsServedAsShown(t *testing.T) {
	dockertest.Require(t)
	requirePrograms(t, "python3")
	text, _ := readGuide(t, contractGuide)
	_, serving, found := strings.Cut(text, "\n## Serving\n")
	serving, _, ended := strings.Cut(serving, "\n## ")
	if !found || !ended {
		t.Fatal("there is no section on serving")
	}
	var blocks []block
	files := map[string]string{}
	for _, m := range fences.FindAllStringSubmatch(serving, -1) {
		b := block{language: m[1], title: m[2], text: m[3]}
		if b.title != "" {
			files[b.title] = b.text
			continue
		}
		blocks = append(blocks, b)
	}
	files["go.mod"], files["go.sum"] = moduleFor(t)
	scripts, shown := stops(blocks)
	if len(scripts) < 6 || len(files) != 4 {
		t.Fatalf("%d things to run, %d files", len(scripts), len(files))
	}
	for i, said := range tour(t, scripts, files) {
		for _, b := range shown[i] {
			compare(t, scripts[i], b, said)
		}
	}
}

// moduleFor makes a module that has this one as it is in the tree.
func moduleFor(t *testing.T) (mod, sum string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	mod = strings.Replace(read("../go.mod"), "module github.com/agent-on-demand/aod", "module ask", 1)
	return mod + "\nrequire github.com/agent-on-demand/aod v0.0.0\n\nreplace github.com/agent-on-demand/aod => " + root + "\n", read("../go.sum")
}
