package sdk_test

import (
	"io/fs"
	"os"
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
			t.Errorf("%s is no module", name)
		}
	}
	if _, err := fs.Stat(sdk.Python(), "__init__.py"); err != nil {
		t.Errorf("it is no package: %v", err)
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

// TestLibrary runs the library's own tests where they count: in the base image, on
// the library that was built into it.
func TestLibrary(t *testing.T) {
	base := basetest.Build(t, "sdk")
	tests, err := filepath.Abs("python/tests")
	if err != nil {
		t.Fatal(err)
	}
	_, report, code := base.Run(t, runtime.ContainerSpec{
		Cmd:    []string{"python3", "-m", "unittest", "discover", "--start-directory", "/tests"},
		User:   "65532:65532",
		Mounts: []runtime.Mount{{Source: tests, Target: "/tests", ReadOnly: true}},
	})
	if code != 0 {
		t.Errorf("unittest ended with %d:\n%s", code, report)
	}
	if !strings.Contains(report, "\nRan ") {
		t.Errorf("no test ran:\n%s", report)
	}
}
