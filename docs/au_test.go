package docs_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/au"
)

const auGuide = "agentic-units.md"

func TestTheUnitShownLoads(t *testing.T) {
	c, err := capsule.Load(filepath.Join(extractUnits(t), "count-python"))
	if err != nil {
		t.Fatal(problems(err))
	}
	if c.Kind != capsule.KindAU || len(c.Warnings) > 0 {
		t.Errorf("it is a %s with the warnings %v", c.Kind, c.Warnings)
	}
}

func TestTheProgramsShownKeepTheContract(t *testing.T) {
	root := extractUnits(t)
	golang := filepath.Join(root, "count")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", golang, filepath.Join(root, "count-go", "main.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	programs := map[string][]string{"Go": {golang}}
	if python, err := exec.LookPath("python3"); err == nil {
		programs["Python"] = []string{python, "-I", filepath.Join(root, "count-python", "main.py")}
	} else {
		t.Log("the program in Python is left out: there is no python3 here")
	}
	for language, program := range programs {
		t.Run(language, func(t *testing.T) { checkCounter(t, program) })
	}
}

// checkCounter runs a program of the guide, each of which counts lines and words.
func checkCounter(t *testing.T, program []string) {
	printed, _, _ := runProgram(t.Context(), t, append(program, "--describe"), "")
	card, err := au.ParseCard([]byte(printed))
	if err != nil || len(card.Warnings) > 0 {
		t.Fatalf("its model card: %v", problems(err))
	}
	cases := []struct {
		name, stdin string
		args        []string
		code        int
		stdout      string
	}{
		{"what the guide shows", "one two\nthree\n", []string{"--min-length", "4"}, 0, `{"lines":2,"words":1}`},
		{"a flag in one word", "one two\nthree\n", []string{"--min-length=5"}, 0, `{"lines":2,"words":1}`},
		{"nothing", "", nil, 2, ""},
		{"what isn't text", "\xff", nil, 2, ""},
		{"too much text", strings.Repeat("x", 10<<20+1), nil, 2, ""},
		{"a flag that isn't a number", "", []string{"--min-length", "hunter2"}, 2, ""},
		{"an argument that it doesn't know", "", []string{"hunter2"}, 2, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := runProgram(t.Context(), t, append(program, c.args...), c.stdin)
			if code != c.code || (code == 0) != (stderr == "") || strings.Contains(stderr, "hunter2") {
				t.Errorf("it exited with %d, want %d; its stderr: %s", code, c.code, stderr)
			}
			if diff := cmp.Diff(c.stdout, strings.NewReplacer(" ", "", "\n", "").Replace(stdout)); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
		})
	}
}

func runProgram(ctx context.Context, t *testing.T, program []string, stdin string) (stdout, stderr string, code int) {
	t.Helper()
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &complaints
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), complaints.String(), cmd.ProcessState.ExitCode()
}

// extractUnits writes the files of the guide's units and returns the directory above them.
func extractUnits(t *testing.T) string {
	t.Helper()
	_, blocks := readGuide(t, auGuide)
	root := t.TempDir()
	for _, b := range blocks {
		if b.title != "" {
			writeFile(t, filepath.Join(root, filepath.FromSlash(b.title)), b.text)
		}
	}
	return root
}
