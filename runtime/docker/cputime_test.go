package docker_test

import (
	"testing"
	"time"

	"github.com/agent-on-demand/aod/runtime"
)

func TestWhatAContainerComputesIsTold(t *testing.T) {
	d, engine := newDurable(t, "while :; do :; done")
	s, err := runtime.Start(t.Context(), engine, d.spec, d.layout, runtime.NewLog(0, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Release)
	for deadline := time.Now().Add(time.Minute); ; {
		used, err := s.CPUTime(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if used > 200*time.Millisecond {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it has used %v only", used)
		}
	}
}
