package capsule

import (
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestNearest(t *testing.T) {
	known := []string{"name", "network", "temperature", "timeout", "memory", "max_tokens"}
	for word, want := range map[string]string{
		"Name": "name", "nme": "name", "temprature": "temperature", "time-out": "timeout",
		"maxTokens": "max_tokens", "netwrok": "network", "xyz": "", "": "",
	} {
		if got := fault.Nearest(word, known); got != want {
			t.Errorf("fault.Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
