package main

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// hostileMemory is how much more memory a server may take for all that hostile servers write.
// It takes 35 MiB: a message of 16 MiB twice. The rest is room for a garbage collector that
// comes late.
const hostileMemory = 128 << 20

func TestHostileServersTakeLittleOfOurMemory(t *testing.T) {
	onlyLong(t, "AOD_LOAD")
	s := newServer(t)
	s.program = shipped.Path(t)
	l := load{server: s}
	plain, timed, many, deep := uniqueUnit(), uniqueUnit(), uniqueUnit(), uniqueUnit()
	addMCP(t, s.units, plain, "")
	addMCP(t, s.units, timed, "mcp: {timeout: 3s}\n")
	addMCP(t, s.units, many, "mcp: {env: {MODE: many}}\n")
	addMCP(t, s.units, deep, "mcp: {env: {MODE: deep}}\n")
	s.start()
	s.speaks("DELETE", plain, s.session(plain), "")
	testkit.Eventually(t, "the first session is over", func() bool { return sessionContainers(t, s.engine, plain) == 0 })
	before := l.peakMemory()
	for _, c := range []struct{ name, unit, message, want string }{
		{"a line of 1 GiB", plain, toolCall(1, "bomb", "{}"), "16 MiB"},
		{"a line without an end", plain, toolCall(1, "flood", "{}"), "16 MiB"},
		{"messages without end", timed, toolCall(1, "endless", "{}"), "more than 3s"},
		{"a result that is too deep", plain, toolCall(1, "deep", "{}"), "isn't taken"},
		{"100,000 tools", many, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "more than 1000"},
		{"a schema that is 10,000 deep", deep, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "isn't taken"},
	} {
		was := l.peakMemory()
		id := s.session(c.unit)
		if _, body := s.speaks("POST", c.unit, id, c.message); !strings.Contains(body, c.want) {
			t.Errorf("%s: it is answered with %d bytes, the last are %s", c.name, len(body), body[max(0, len(body)-300):])
		}
		s.speaks("DELETE", c.unit, id, "")
		testkit.Eventually(t, c.name+": its container is gone", func() bool { return sessionContainers(t, s.engine, c.unit) == 0 })
		t.Logf("%s: %d KiB more", c.name, (l.peakMemory()-was)>>10)
	}
	for _, unit := range []string{many, deep} {
		if status, body := s.answer("/v1/units/" + unit + "/card"); status == 200 {
			t.Errorf("%s tells its tools: %.200s", unit, body)
		}
	}
	if grown := l.peakMemory() - before; grown > hostileMemory {
		t.Errorf("the server took %d bytes more", grown)
	} else {
		t.Logf("%d KiB before, %d more", before>>10, grown>>10)
	}
}
