package check

import (
	"os"
	"strings"
	"testing"
)

func TestTheGuideHasEveryRule(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/agent-http-contract.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks() {
		if !strings.Contains(string(raw), "\n| `"+c.ID+"` | ") {
			t.Errorf("it has no row for %s", c.ID)
		}
	}
}
