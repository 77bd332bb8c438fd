package capsule

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/fault"
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

func TestAReaderReadsTheKindsThatItIsToldOf(t *testing.T) {
	notes := Kind{Name: "notes", Read: func(d *Directory, c *Capsule) {
		c.Contract = d.Contract()
		if raw, ok := d.ReadFile("notes.txt", "write them down"); ok {
			c.Definition = string(raw)
		}
		d.Refuse("notes have none", "remove it", "Dockerfile")
		if len(c.Agent.Models) > 0 {
			d.Report(fault.Finding{File: "agent.yaml", Pointer: "/models", Message: "notes ask nobody"})
		}
	}}
	write := func(more string) string {
		dir := filepath.Join(t.TempDir(), "memo")
		put(t, dir, "agent.yaml", "kind: notes\n"+more)
		put(t, dir, "schema.json", `{"input": {"type": "object"}, "output": {"type": "object"}}`)
		return dir
	}
	t.Run("with what the kind read", func(t *testing.T) {
		dir := write("concurrency: 2\n")
		put(t, dir, "notes.txt", "buy milk")
		c, err := NewReader(notes).Load(dir)
		if err != nil || c.Kind != "notes" || c.Definition != "buy milk" || c.Contract == nil || c.Agent.Concurrency != 2 {
			t.Errorf("%+v, %v", c, err)
		}
	})
	t.Run("and with all that is wrong", func(t *testing.T) {
		dir := write("models: [any]\nunheard_of: 1\n")
		put(t, dir, "Dockerfile", "FROM scratch\n")
		_, err := NewReader(notes).Load(dir)
		var said strings.Builder
		for _, f := range fault.Public(err).Findings {
			said.WriteString(f.String() + "\n")
		}
		for _, want := range []string{"notes.txt", "Dockerfile", "notes ask nobody", "unheard_of"} {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%q isn't said:\n%s", want, said.String())
			}
		}
	})
	t.Run("another reader says which kinds there are", func(t *testing.T) {
		_, err := Load(write(""))
		if findings := fault.Public(err).Findings; len(findings) == 0 || !strings.Contains(findings[0].String(), "kind") {
			t.Errorf("%v", err)
		}
	})
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
