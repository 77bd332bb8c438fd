package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// sizerScript is an Agentic Unit that counts what it reads.
const sizerScript = `#!/bin/bash
if [[ $1 == --describe ]]; then
	cat <<'END'
{"name": "sizer", "version": "1.0.0", "description": "Counts bytes.", "capabilities": [],
 "inputs": [{"media_type": "*/*", "description": "anything"}],
 "outputs": [{"media_type": "application/json", "description": "how much it was"}]}
END
	exit
fi
printf '{"bytes": %d}\n' "$(wc -c)"
`

func (s *server) addSizer() {
	s.t.Helper()
	dir := filepath.Join(s.units, "sizer")
	write(s.t, "FROM "+dockertest.Image+"\nCOPY --chmod=755 sizer /sizer\nENTRYPOINT [\"/sizer\"]\n", dir, "Dockerfile")
	write(s.t, "kind: au\nname: sizer\n", dir, "agent.yaml")
	write(s.t, sizerScript, dir, "sizer")
}

// What a unit reads goes from the connection to the disk and from there to the unit: the
// server has never more than a little of it in memory.
func TestStdinIsNeverWholeInMemory(t *testing.T) {
	const stdin, room = 49 << 20, 16 << 20
	s := newServer(t)
	s.program = shipped.Path(t)
	s.addSizer()
	s.start()
	s.size(1 << 10) // the image is built
	l := load{server: s}
	before := l.peakMemory()
	s.size(stdin)
	if grown := l.peakMemory() - before; grown > room {
		t.Errorf("the server took %d bytes more for %d bytes of stdin", grown, stdin)
	} else {
		t.Logf("%d KiB before, %d more", before>>10, grown>>10)
	}
}

// size has the sizer read n bytes.
func (s *server) size(n int64) {
	s.t.Helper()
	result, err := s.client.Units.RunAU(s.t.Context(), client.AUCall{Unit: "sizer", Stdin: io.LimitReader(zeros{}, n)})
	if err != nil {
		s.t.Fatalf("run %s: %v", client.RunOf(err), err)
	}
	if want := fmt.Sprintf(`{"bytes": %d}`, n); strings.TrimSpace(string(result.Output)) != want {
		s.t.Errorf("it printed %s, want %s", result.Output, want)
	}
	s.await(result.Run)
}

// zeros is without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
