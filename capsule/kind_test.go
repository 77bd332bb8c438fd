package capsule

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAnAgenticUnitHasTheTimeOfItsSpecification(t *testing.T) {
	for limits, want := range map[string]time.Duration{"": 300 * time.Second, "limits: {timeout: 7s}\n": 7 * time.Second} {
		dir := filepath.Join(t.TempDir(), "reader")
		put(t, dir, "agent.yaml", "name: reader\nkind: au\n"+limits)
		put(t, dir, "Dockerfile", "FROM scratch\nENTRYPOINT [\"/reader\"]\n")
		c, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if c.Agent.Limits.Timeout != want || !c.IsAU() {
			t.Errorf("%q: %v, %s", limits, c.Agent.Limits.Timeout, c.Kind)
		}
	}
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
