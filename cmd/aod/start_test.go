package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// mostAtStart bounds what a package of ours may allocate, in bytes, each time the program starts.
const mostAtStart = 32 << 10

// A call of aod takes as long to begin as its packages take to prepare themselves.
func TestNoPackagePreparesAtTheStartWhatACallMayNeverUse(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), shipped.Path(t), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ours := regexp.MustCompile(`(?m)^init (main|github\.com/agent-on-demand/aod/\S+) @.*, (\d+) bytes, \d+ allocs$`).FindAllStringSubmatch(string(out), -1)
	for _, init := range ours {
		if n, err := strconv.Atoi(init[2]); err != nil || n > mostAtStart {
			t.Errorf("the package %s allocates %s bytes at the start, at most %d are well: see lazyregexp and sync.OnceValue", init[1], init[2], mostAtStart)
		}
	}
	if len(ours) < 10 {
		t.Errorf("only %d packages of ours are in the trace:\n%s", len(ours), out)
	}
}
