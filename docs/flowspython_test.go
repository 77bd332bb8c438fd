package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The programs of the page are run as they stand, with the library of the tree and without AOD: below each stands what
// it prints.
func TestTheFlowsInPythonShownWork(t *testing.T) {
	t.Parallel()
	requirePrograms(t, "python3", "bash")
	library, err := filepath.Abs("../sdk/python")
	if err != nil {
		t.Fatal(err)
	}
	_, blocks := readGuide(t, "flows-python.md")
	dir := t.TempDir()
	for name, text := range titledFiles(blocks) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	scripts, shown := stops(blocks)
	if len(scripts) < 4 {
		t.Fatalf("%d things to run", len(scripts))
	}
	for i, script := range scripts {
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PYTHONPATH="+library, "PYTHONDONTWRITEBYTECODE=1")
		said, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, said)
		}
		if len(shown[i]) != 1 {
			t.Fatalf("below %s stand %d things", script, len(shown[i]))
		}
		for line := range strings.SplitSeq(strings.TrimSpace(shown[i][0].text), "\n") {
			if !strings.Contains("\n"+string(said), "\n"+line+"\n") {
				t.Errorf("%s doesn't print %q but:\n%s", script, line, said)
			}
		}
	}
}
