package validate

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/images"
)

// snake makes a capsule whose Python would leave a file if any of it ran.
func snake(t *testing.T, from string) (dir, trace string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "snake")
	trace = filepath.Join(t.TempDir(), "ran")
	leave := "open(" + `"` + trace + `"` + ", 'w')\n"
	for name, text := range map[string]string{
		"Dockerfile": "FROM " + from + "\nCOPY . /capsule\nCMD [\"x\"]\n", "agent.yaml": "name: snake\n", ".dockerignore": "tests\n",
		"schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
		"run.py":      leave + "import aod\n", "src/main.py": leave + "\ndef execute(payload)\n    return {}\n",
		"src/zero.py": "x = '\x00'\n", "src/fine.py": leave + "x = 1\n", "src/data.txt": "no Python\n", "tests/data.py": "no Python\n",
	} {
		write(t, text, dir, name)
	}
	return dir, trace
}

func write(t *testing.T, content string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// toldOf runs the command on a directory.
func toldOf(t *testing.T, dir string) (stdout, stderr string, err error) {
	t.Helper()
	var out, notes bytes.Buffer
	cmd := Command(&cli.Env{Out: &ui.Output{Writer: &out}, Err: &ui.Output{Writer: &notes}})
	cmd.SetArgs([]string{dir})
	err = cmd.ExecuteContext(t.Context())
	return out.String(), notes.String(), err
}

func TestPythonIsCompiledAndNotRun(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("this machine has no python3")
	}
	dir, trace := snake(t, "aod/base")
	c, err := capsule.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	findings, err := pythonSyntax(t.Context(), c)
	if err != nil || len(findings) != 2 {
		t.Fatalf("%v, %+v", err, findings)
	}
	if f := findings[0]; f.File != "src/main.py" || f.Line != 3 || f.Message == "" {
		t.Errorf("%+v", f)
	}
	if f := findings[1]; f.File != "src/zero.py" || f.Message == "" {
		t.Errorf("%+v", f)
	}
	if left, _ := filepath.Glob(trace); len(left) > 0 {
		t.Error("it was run")
	}
	if stdout, _, _ := toldOf(t, dir); !strings.Contains(stdout, "src/main.py:3: ") {
		t.Errorf("it tells %q", stdout)
	}
}

func TestAnOlderPythonOnlyWarns(t *testing.T) {
	base, _ := snake(t, "aod/base")
	other, _ := snake(t, "debian")
	for name, tt := range map[string]struct {
		dir   string
		minor int
		warns bool
	}{
		"that of the base": {base, images.BasePython[1], false},
		"a newer one":      {base, images.BasePython[1] + 1, false},
		"an older one":     {base, images.BasePython[1] - 1, true},
		"another image":    {other, images.BasePython[1], true},
	} {
		c, err := capsule.Load(tt.dir)
		if err != nil {
			t.Fatal(err)
		}
		told := compiled{Version: [2]int{images.BasePython[0], tt.minor}, Found: []uncompiled{{"src/main.py", 3, "expected ':'"}}}
		if got := told.findings(c)[0]; got.Warning != tt.warns || strings.Contains(got.Hint, "of this machine") != tt.warns {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWithoutPythonTheRestIsChecked(t *testing.T) {
	dir, _ := snake(t, "aod/base")
	t.Setenv("PATH", t.TempDir())
	c, err := capsule.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pythonSyntax(t.Context(), c); !errors.Is(err, errNoPython) {
		t.Errorf("%v", err)
	}
	stdout, stderr, err := toldOf(t, dir)
	if err != nil || !strings.Contains(stdout, "✓") || !strings.Contains(stderr, "were not compiled: there is no python3") {
		t.Errorf("%v: it tells %q, %q", err, stdout, stderr)
	}
}
