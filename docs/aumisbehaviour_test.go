package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// misbehaviours are, by the guide's words for each, what a unit in bash does.
var misbehaviours = map[string]string{
	"prints text, then JSON":             `echo loading...; echo '{"a":1}'`,
	"prints JSON, then text":             `echo '{"a":1}'; echo done`,
	"prints two documents":               `echo '{"a":1}'; echo '{"a":2}'`,
	"prints bytes that aren't UTF-8":     `printf '{"a":"\xff"}'`,
	"prints more than 10 MiB":            `printf '{"a":"'; head -c 11000000 /dev/zero | tr '\0' x; printf '"}'`,
	"prints nothing, and exits with 0":   `exit 0`,
	"prints `\"text\"`, a bare value":    `echo '"text"'`,
	"breaks off":                         `printf '{"a": '`,
	"prints no JSON":                     `echo hello`,
	"hangs, with `--timeout 2s`":         `sleep 1000`,
	"crashes":                            `kill -SEGV $$`,
	"exits with 1":                       `exit 1`,
	"exits with 2":                       `exit 2`,
	"exits with 3, which its card names": `exit 3`,
	"exits with 4, which it doesn't":     `exit 4`,
	"ends with 127, as a shell does that doesn't find a program": `nosuchprogram`,
	"wants more memory than it may":                              `x=x; while :; do x=$x$x; done`,
}

const misbehaving = `#!/bin/bash
if [ "$1" = --describe ]; then
    echo '{"name": "bad", "version": "1.0.0", "description": "Breaks rules.", "capabilities": [],
        "inputs": [{"media_type": "*/*", "description": "Any"}], "outputs": [{"media_type": "application/json", "description": "None"}],
        "config": {"do": {"type": "string", "description": "What to do", "default": null}}, "exit_codes": {"3": "encrypted"}}'
    exit
fi
eval "$2"
`

var misbehaviourRow = regexp.MustCompile("(?m)^\\| (.+?) \\| (\\d+) \\| `(.+)` \\|$")

func TestWhatIsSaidOfMisbehaviours(t *testing.T) {
	dockertest.Require(t)
	aod := program.Path(t)
	unit := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(unit, []byte(misbehaving), 0o700); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	text, _ := readGuide(t, auGuide)
	rows := misbehaviourRow.FindAllStringSubmatch(text, -1)
	if len(rows) != len(misbehaviours) {
		t.Errorf("the guide has %d misbehaviours, this test %d", len(rows), len(misbehaviours))
	}
	for _, row := range rows {
		does, code, said := row[1], row[2], row[3]
		t.Run(does, func(t *testing.T) {
			timeout := "10m"
			if strings.Contains(does, "--timeout 2s") {
				timeout = "2s"
			}
			_, stderr, exit := runProgram(t.Context(), t,
				[]string{aod, "au", "run", unit, "--data", data, "--quiet", "--timeout", timeout, "--", "--do", misbehaviours[does]}, "")
			if strconv.Itoa(exit) != code {
				t.Errorf("it exits with %d, the guide says %s", exit, code)
			}
			for part := range strings.SplitSeq(said, " … ") {
				if !strings.Contains(stderr, part) {
					t.Errorf("the guide says %q, it says:\n%s", part, stderr)
				}
			}
		})
	}
}
