// Package docs_test keeps the guides true: the capsules that they show are loaded and,
// where an engine answers, run; the commands must exist and the tables be whole.
//
// In capsules.md a fenced block whose info string ends in title="DIR/FILE" is a file of
// the capsule DIR; in agentic-units.md, of the unit DIR (au_test.go). In server.md, server-api.md, warm-starts.md,
// backup.md, models.md, agents-ai.md and mcp.md the blocks for a shell are run in order, and what stands below one is held
// against what it printed; titled blocks are files that are there before (tour_test.go). Those of README.md are run in a fresh clone (readme_test.go).
package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

const (
	guide          = "capsules.md"
	schedulesGuide = "schedules.md"
)

var guides = []string{
	guide, "configuration.md", "server.md", "team.md", "webhooks.md", apiGuide, "warm-starts.md", "docker.md", "remote-engine.md", contractGuide,
	"performance.md", auGuide, "models.md", "agents-ai.md", "mcp.md", schedulesGuide, "chat.md", readme,
}

// block is a fenced block of the guide.
type block struct{ language, title, text string }

var fences = regexp.MustCompile("(?ms)^```(\\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$")

func TestTheCapsulesShownAreValid(t *testing.T) {
	for _, dir := range extract(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c, err := capsule.Load(dir)
			if err != nil {
				t.Fatal(problems(err))
			}
			if len(c.Warnings) > 0 {
				t.Errorf("warnings: %v", c.Warnings)
			}
			if c.Name != filepath.Base(dir) {
				t.Errorf("it is called %s", c.Name)
			}
			if cases, err := c.Cases(); err != nil || len(cases) == 0 {
				t.Errorf("%d test cases: %v", len(cases), problems(err))
			}
		})
	}
}

func TestTheCapsulesShownPassTheirTests(t *testing.T) {
	dockertest.Require(t)
	aod := program.Path(t)
	for _, dir := range extract(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			args := []string{"test", dir, "--data", t.TempDir()}
			if _, err := os.Stat(dir + ".yaml"); err == nil {
				args = append(args, "--unit-config", dir+".yaml")
			}
			cmd := exec.CommandContext(t.Context(), aod, args...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// problems shows an error with its findings; nil stays nil.
func problems(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %v", err, fault.Public(err).Findings)
}

// readGuide returns a guide's text and its fenced blocks.
func readGuide(t *testing.T, name string) (text string, blocks []block) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text = string(raw)
	for _, m := range fences.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, block{language: m[1], title: m[2], text: m[3]})
	}
	if 2*len(blocks) != strings.Count("\n"+text, "\n```") {
		t.Fatalf("%s has fences that aren't understood", name)
	}
	for line := range strings.SplitSeq(fences.ReplaceAllString(text, ""), "\n") {
		if strings.Count(line, "`")%2 != 0 {
			t.Errorf("%s: a code span goes over the end of a line, where nobody checks it: %s", name, line)
		}
	}
	return text, blocks
}

// extract writes the files of the guide's capsules and returns their directories. What an
// operator gives a capsule is in a file beside it.
func extract(t *testing.T) []string {
	t.Helper()
	_, blocks := readGuide(t, guide)
	root := t.TempDir()
	known := map[string]bool{}
	var dirs []string
	for _, b := range blocks {
		if b.title == "" {
			continue
		}
		name, _, inside := strings.Cut(b.title, "/")
		if strings.HasSuffix(name, ".yaml") {
			writeFile(t, filepath.Join(root, name), b.text)
			continue
		}
		if !inside || !filepath.IsLocal(b.title) {
			t.Fatalf("the title %q names no file of a capsule", b.title)
		}
		if !known[name] {
			known[name] = true
			dirs = append(dirs, filepath.Join(root, name))
		}
		writeFile(t, filepath.Join(root, b.title), b.text)
	}
	if len(dirs) == 0 {
		t.Fatalf("%s shows no capsule", guide)
	}
	return dirs
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
