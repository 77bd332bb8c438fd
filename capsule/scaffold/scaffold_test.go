package scaffold

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/cases"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
)

// standard are the files that the standard lists, and those that every capsule profits
// from.
var standard = []string{
	"Dockerfile", "agent.yaml", "tools.yaml", "schema.json", "run.py",
	"src/ai/system.md", "src/ai/task.md", ".dockerignore", "README.md",
}

// withoutCode is the template whose program is its task: it has no src/main.py.
const withoutCode = "agent"

func TestScaffold(t *testing.T) {
	for _, template := range Templates() {
		if template.Beside != nil {
			continue // TestScaffoldOfAFlow
		}
		t.Run(template.Name+" is a capsule without a problem", func(t *testing.T) {
			parent := t.TempDir()
			files, err := Write(parent, "my-thing", template.Name)
			must(t, err)
			expected, wrapped := standard, template.Message != ""
			if wrapped || template.Name == "au" {
				expected = []string{"Dockerfile", "agent.yaml", ".dockerignore", "README.md"}
			}
			for _, name := range expected {
				if !slices.Contains(files, filepath.Join("my-thing", name)) {
					t.Errorf("no %s", name)
				}
			}
			if slices.Contains(files, "my-thing/src/main.py") == (template.Name == withoutCode || wrapped) {
				t.Error("it has code, or should have some")
			}
			if !slices.IsSorted(files) {
				t.Errorf("not sorted: %v", files)
			}
			for _, name := range files {
				text, err := os.ReadFile(filepath.Join(parent, name))
				must(t, err)
				if strings.Contains(string(text), "{{") {
					t.Errorf("%s has a placeholder left", name)
				}
			}
			c, err := capsule.Load(filepath.Join(parent, "my-thing"))
			must(t, err)
			if c.Name != "my-thing" || c.Description == "" || len(c.Warnings) > 0 || !c.UsesBase() {
				t.Errorf("%+v", c)
			}
			sent, err := c.Context()
			must(t, err)
			for _, name := range sent.Files() {
				if strings.HasPrefix(name, "tests") || name == "README.md" {
					t.Errorf("%s goes into the image", name)
				}
			}
			tests, err := c.Cases()
			must(t, err)
			if len(tests) < 2 {
				t.Errorf("%d test cases", len(tests))
			}
			for _, test := range tests {
				t.Run(test.Name, func(t *testing.T) { passes(t, c, test) })
			}
		})
	}
}

// TestScaffoldOfAFlow has the units beside it, whose contracts it keeps.
func TestScaffoldOfAFlow(t *testing.T) {
	parent := t.TempDir()
	files, err := Write(parent, "refund", "flow")
	must(t, err)
	for _, name := range []string{"refund/flow.yaml", "refund/README.md", "refund-sort/src/main.py", "refund-words/src/main.py"} {
		if !slices.Contains(files, filepath.FromSlash(name)) {
			t.Errorf("no %s", name)
		}
	}
	if !slices.IsSorted(files) {
		t.Errorf("not sorted: %v", files)
	}
	c, err := capsule.Load(filepath.Join(parent, "refund"))
	must(t, err)
	units := func(name string) (*contract.Contract, bool) {
		u, err := capsule.Load(filepath.Join(parent, name))
		if err != nil {
			return nil, false
		}
		return u.Contract, true
	}
	for _, finding := range c.Flow.Check(flow.Terms{Units: units, Contract: c.Contract, Timeout: c.Agent.Limits.Timeout}) {
		t.Error(finding)
	}
	if tests, err := c.Cases(); err != nil || len(tests) < 2 || len(c.Warnings) > 0 {
		t.Errorf("%d test cases, warnings %v: %v", len(tests), c.Warnings, err)
	}
}

func TestScaffoldOfAFlowIsWholeOrNothing(t *testing.T) {
	parent := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(parent, "refund-words", "mine"), 0o755))
	if files, err := Write(parent, "refund", "flow"); !fault.Is(err, fault.Input) || files != nil {
		t.Fatalf("Write = %v, %v", files, err)
	}
	for _, name := range []string{"refund", "refund-sort"} {
		if left, err := os.ReadDir(filepath.Join(parent, name)); err != nil || len(left) > 0 {
			t.Errorf("%s is left with %v: %v", name, left, err)
		}
	}
}

// harness calls execute as the bridge does, with files below the working directory.
const harness = `
import json, sys, types
root = sys.argv[1]
aod = types.ModuleType("aod")
aod.input_path = lambda name: "input/" + name
aod.output_path = lambda name: "output/" + name
aod.log = lambda message: print(message, file=sys.stderr)
sys.modules["aod"] = aod
sys.dont_write_bytecode = True
sys.path[:0] = [root, root + "/src"]
from src.main import execute
try:
    print(json.dumps({"output": execute(json.load(sys.stdin))}))
except Exception as error:
    print(json.dumps({"error": {"type": type(error).__name__, "message": str(error)}}))
`

// passes runs a template's case with the Python of this machine, in no sandbox: the
// templates are our own. Those in which models answer, and wrapped programs, need more than that (cmd/aod runs them).
func passes(t *testing.T, c *capsule.Capsule, test capsule.Case) {
	if test.Models != nil || c.Wrapped != nil {
		checkPayload(t, c.Contract.Output, test.Expect.Output)
		return
	}
	if c.Kind == "au" { // whose cases need a sandbox, too, but whose own tests don't
		out, err := exec.CommandContext(t.Context(), "python3", filepath.Join(c.Dir, "tests/test_main.py")).CombinedOutput()
		if err != nil && !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 on this machine")
	}
	work := t.TempDir()
	input := caseInput(t, test, work)
	checkPayload(t, c.Contract.Input, input)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-c", harness, c.Dir)
	cmd.Dir, cmd.Stdin, cmd.Stderr = work, strings.NewReader(string(input)), os.Stderr
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	out, err := cmd.Output()
	must(t, err)
	var result struct {
		Output json.RawMessage
		Error  *capsule.ExpectError
	}
	must(t, json.Unmarshal(out, &result))
	compare(t, c, test.Expect, result.Output, result.Error)
	for field, f := range test.Expect.Files {
		var names map[string]any
		must(t, json.Unmarshal(result.Output, &names))
		name, _ := names[field].(string)
		got, err := os.ReadFile(filepath.Join(work, "output", name))
		must(t, err)
		want, err := os.ReadFile(f.SameAs)
		must(t, err)
		if string(got) != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", field, got, want)
		}
	}
}

func caseInput(t *testing.T, test capsule.Case, work string) []byte {
	input := map[string]any{}
	must(t, json.Unmarshal(test.Input, &input))
	must(t, os.Mkdir(filepath.Join(work, "input"), 0o755))
	must(t, os.Mkdir(filepath.Join(work, "output"), 0o755))
	for field, file := range test.Files {
		raw, err := os.ReadFile(file)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(work, "input", filepath.Base(file)), raw, 0o644))
		input[field] = filepath.Base(file)
	}
	raw, err := json.Marshal(input)
	must(t, err)
	return raw
}

func compare(t *testing.T, c *capsule.Capsule, want capsule.Expect, output json.RawMessage, failure *capsule.ExpectError) {
	if want.Error != nil {
		if failure == nil || failure.Type != want.Error.Type || !strings.Contains(failure.Message, want.Error.Message) {
			t.Errorf("error %+v, want %+v", failure, want.Error)
		}
		return
	}
	if failure != nil {
		t.Fatalf("failed: %+v", failure)
	}
	checkPayload(t, c.Contract.Output, output)
	for _, line := range cases.DiffJSON(want.Output, output, want.Subset) {
		t.Error(line)
	}
}

func checkPayload(t *testing.T, schema *contract.Schema, raw []byte) {
	t.Helper()
	p, err := contract.Decode(raw, 0)
	must(t, err)
	for _, f := range schema.Validate(p) {
		t.Errorf("breaks the contract: %s", f)
	}
}

func TestScaffoldRefuses(t *testing.T) {
	parent := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(parent, "taken", "sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(parent, "file"), []byte("mine"), 0o644))
	cases := []struct {
		name, parent, dir, template string
		kind                        fault.Kind
	}{
		{"a name that can't be one", parent, "My Thing", "basic", fault.Input},
		{"a name that leads out", parent, "../x", "basic", fault.Input},
		{"a template that there isn't", parent, "a", "nope", fault.Input},
		{"a template that leads out", parent, "a", "../templates/basic", fault.Input},
		{"a directory that isn't empty", parent, "taken", "basic", fault.Input},
		{"a file of that name", parent, "file", "basic", fault.Input},
		{"a parent that isn't there", filepath.Join(parent, "no", "where"), "a", "basic", fault.NotFound},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files, err := Write(c.parent, c.dir, c.template)
			if !fault.Is(err, c.kind) || fault.Public(err).Hint == "" || files != nil {
				t.Errorf("Write = %v, %v", files, err)
			}
		})
	}
	if got, err := os.ReadFile(filepath.Join(parent, "file")); err != nil || string(got) != "mine" {
		t.Error("something was overwritten")
	}
	t.Run("but takes an empty directory", func(t *testing.T) {
		must(t, os.Mkdir(filepath.Join(parent, "empty"), 0o755))
		if _, err := Write(parent, "empty", "basic"); err != nil {
			t.Error(err)
		}
	})
}

func TestScaffoldUndoesWhatItMade(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	w := writer{root: root, name: "x"}
	must(t, w.root.Mkdir("src", 0o700)) // in the way
	if err := w.copy("basic"); err == nil {
		t.Fatal("nothing was in the way")
	}
	w.undo()
	left, err := os.ReadDir(dir)
	must(t, err)
	if len(left) != 1 || left[0].Name() != "src" {
		t.Errorf("left behind: %v", left)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
