package orchestrator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

// unlinked writes pieces of 1 MiB to files in a directory that it has removed, and keeps them
// open until the end.
func unlinked(dir string, pieces int) string {
	rest := 2
	if pieces > 64 { // it shall not live to its end
		rest = 200
	}
	return fmt.Sprintf(`for i in $(seq %d); do
	exec {fd}> %s/x$i && rm %s/x$i && head -c 1M /dev/zero >&$fd
	sleep 0.02
done
sleep %d
echo '{}' > /io/output.json`, pieces, dir, dir, rest)
}

func TestFilesWithoutANameCount(t *testing.T) {
	t.Parallel()
	limits := "limits: {output: 8MiB, timeout: 5m}\n"
	writable := limits + "read_only: false\n"
	cases := []struct {
		name, agent, script string
		says                string // "": it succeeds
	}{
		{"below the limit", limits, unlinked("/workspace", 40), ""},
		{"in the workspace", limits, unlinked("/workspace", 200), "wrote more than 67108864 bytes to /io"},
		{"where output is collected", limits, unlinked("/io/output", 200), "wrote more than 67108864 bytes to /io"},
		{"in the image's file system", writable, unlinked("/var/tmp", 200), "wrote more than 67108864 bytes to the image"},
		{"files with a name in the image's file system", writable, `for i in $(seq 200); do head -c 1M /dev/zero > /var/tmp/x$i; sleep 0.02; done; sleep 200`, "wrote more than 67108864 bytes to the image"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProbe(t, c.agent)
			if p.remote() {
				t.Skip("the engine is elsewhere: what the program deleted isn't seen there")
			}
			record := p.run(c.script)
			if c.says == "" {
				if record.Outcome != api.Success {
					t.Errorf("%s", show(record))
				}
				return
			}
			if record.Outcome != api.LimitExceeded || record.Error.Kind != "output_limit" || !strings.Contains(said(record), c.says) {
				t.Errorf("%s\n%s", said(record), show(record))
			}
		})
	}
}
