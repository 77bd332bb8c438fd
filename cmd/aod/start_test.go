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
	inits := regexp.MustCompile(`(?m)^init (\S+) @.*, (\d+) bytes, \d+ allocs$`).FindAllSubmatch(out, -1)
	ours := regexp.MustCompile(`^(main|github\.com/agent-on-demand/aod/.*)$`)
	seen := 0
	for _, init := range inits {
		name, bytes := string(init[1]), string(init[2])
		if !ours.MatchString(name) {
			continue
		}
		seen++
		if n, err := strconv.Atoi(bytes); err != nil || n > mostAtStart {
			t.Errorf("the package %s allocates %s bytes at the start, at most %d are well: see lazyregexp and sync.OnceValue", name, bytes, mostAtStart)
		}
	}
	if seen < 10 {
		t.Errorf("only %d packages of ours are in the trace:\n%s", seen, out)
	}
}
