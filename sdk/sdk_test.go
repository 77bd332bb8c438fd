package sdk_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/testing/basetest"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/sdk"
)

func TestPythonHoldsTheModulesAlone(t *testing.T) {
	names, err := fs.Glob(sdk.Python(), "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".py") {
			t.Errorf("%s isn't a module", name)
		}
	}
	if _, err := fs.Stat(sdk.Python(), "__init__.py"); err != nil {
		t.Errorf("it isn't a package: %v", err)
	}
}

// The library's own tests hold the file against what to_yaml writes.
func TestWhatPythonWritesIsAFlow(t *testing.T) {
	raw, err := os.ReadFile("python/tests/written.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, findings := flow.Parse(raw)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if len(f.Nodes) != 5 || f.Nodes["csv-report"].Retry.Tries != 3 || f.Nodes["scope"].Scoping != flow.Isolated {
		t.Errorf("it is another flow: %+v", f)
	}
}

// Whoever tests a capsule's logic on a machine of their own installs the library, with no network.
func TestPipInstallsTheLibraryWithoutANetwork(t *testing.T) {
	t.Parallel()
	python := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "python3", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PYTHONPATH="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("python3 %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if err := exec.CommandContext(t.Context(), "python3", "-c", "import pip, tomllib").Run(); err != nil {
		t.Skip("this machine has no python3 from 3.11 on with pip")
	}
	to := t.TempDir()
	source, err := filepath.Abs("python")
	if err != nil {
		t.Fatal(err)
	}
	python(to, "-m", "pip", "install", "--quiet", "--no-index", "--target", to, source)
	said := python(to, "-c", "import aod, os; print(aod.__file__, os.path.exists(os.path.dirname(aod.__file__) + '/py.typed'))")
	if want := filepath.Join(to, "aod", "__init__.py") + " True\n"; said != want {
		t.Errorf("%s, want %s", said, want)
	}
}

// TestLibrary runs the library's own tests where they count: in the base image, on
// the library that was built into it.
func TestLibrary(t *testing.T) {
	base := basetest.Build(t, "sdk")
	tests, err := filepath.Abs("python/tests")
	if err != nil {
		t.Fatal(err)
	}
	_, report, code := base.Run(t, runtime.ContainerSpec{
		Cmd:  []string{"python3", "-m", "unittest", "discover", "--start-directory", "/tests"},
		User: "65532:65532",
		Mounts: []runtime.Mount{
			{Source: tests, Target: "/tests", ReadOnly: true}, {Source: rowsFor(t), Target: "/rows", ReadOnly: true},
		},
	})
	if code != 0 {
		t.Errorf("unittest ended with %d:\n%s", code, report)
	}
	if !strings.Contains(report, "\nRan ") {
		t.Errorf("no test ran:\n%s", report)
	}
}
