package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// farAOD stands in the place of the program: each server that it starts has no sandboxes of its own, and a worker beside
// it, which ends when the server has.
const farAOD = `#!/bin/sh
set -eu
real=REAL
[ "${1:-}" = serve ] || exec "$real" "$@"
data=${AOD_DATA:-}
was=
for is; do
    [ "$was" = --data ] && data=$is
    was=$is
done
[ -z "$data" ] || set -- "$@" --data "$data"
export AOD_LOCAL_SANDBOXES=false
server=$$
at=WORK
known() { "$real" worker ls ${data:+--data "$data"} >/dev/null 2>&1; }
(
    trap '' INT
    until known; do
        kill -0 $server 2>/dev/null || exit 0
        sleep 0.1
    done
    mkdir -p "$at"
    if [ -f "$at/join" ]; then
        url=$("$real" worker add look ${data:+--data "$data"} | sed 's/.*"server":"\([^"]*\)".*/\1/')
        "$real" worker rm look ${data:+--data "$data"} 2>/dev/null
        sed -i "s|\"server\":\"[^\"]*\"|\"server\":\"$url\"|" "$at/join"
    else
        "$real" worker add far ${data:+--data "$data"} >"$at/join" 2>/dev/null
    fi
    env -u AOD_SERVER -u AOD_TOKEN "$real" work --data "$at" --join "$at/join" 2>>"$at/work.log" &
    worker=$!
    touch "$at/works"
    while kill -0 $server 2>/dev/null; do sleep 0.1; done
    kill $worker 2>/dev/null || true
    wait $worker || true
    rm "$at/works"
) >/dev/null 2>&1 </dev/null &
exec "$real" "$@"
`

// The guides' servers may have their sandboxes at a worker: what is shown below the blocks is the same. Not so for
// server-api.md and warm-starts.md, which look at the server's own pool.
func TestTheToursShownWorkAtAWorker(t *testing.T) {
	if os.Getenv("AOD_FAR") == "" {
		t.Skip("AOD_FAR isn't set: make long does")
	}
	dockertest.Require(t)
	for _, name := range []string{
		"server.md", "backup.md", "models.md", "mcp.md", "flows.md", "schedules.md", "agents.md", "chat.md",
		"a2a.md", "team.md", "webhooks.md",
	} {
		t.Run(name, func(t *testing.T) {
			bin, work := t.TempDir(), t.TempDir()
			text := strings.NewReplacer("REAL", program.Path(t), "WORK", filepath.Join(work, "far")).Replace(farAOD)
			if err := os.WriteFile(filepath.Join(bin, "aod"), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			follow(t, name, "PATH="+bin+":"+os.Getenv("PATH"))
			testkit.Eventually(t, "the worker has ended", func() bool {
				_, err := os.Stat(filepath.Join(work, "far", "works"))
				return err != nil
			})
			log, err := os.ReadFile(filepath.Join(work, "far", "work.log"))
			if !strings.Contains(string(log), "msg=connected") {
				t.Errorf("the worker wasn't there: %v\n%s", err, log)
			}
		})
	}
}
