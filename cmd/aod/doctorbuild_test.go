package main

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestWindowsIsAClient(t *testing.T) {
	if err := leadsRuns("windows"); !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.Public(err).Hint, "--server") {
		t.Errorf("got %v", err)
	}
	for _, system := range []string{"linux", "darwin"} {
		if err := leadsRuns(system); err != nil {
			t.Errorf("%s: %v", system, err)
		}
	}
}
