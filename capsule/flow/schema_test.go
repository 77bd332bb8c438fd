package flow

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
	"github.com/agent-on-demand/aod/schemas"
)

// TestTheSchemaAgrees holds the schema for editors against Parse: it takes what Parse takes,
// and finds what it can say.
func TestTheSchemaAgrees(t *testing.T) {
	schema, findings := contract.Compile(schemas.Flow())
	if schema == nil {
		t.Fatal(findings)
	}
	violations := func(raw []byte) int {
		doc, findings := strictyaml.Parse(FileName, raw)
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		payload, err := contract.NewPayload(doc.Value.(map[string]any))
		if err != nil {
			t.Fatal(err)
		}
		found := schema.Validate(payload)
		for _, f := range found {
			t.Log(f)
		}
		return len(found)
	}
	files, _ := filepath.Glob("testdata/good/*.yaml")
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := violations(raw); n > 0 {
			t.Errorf("%s: %d violations", name, n)
		}
	}
	for _, text := range []string{
		nodes("a: {runs: u}"), nodes("end: {run: u}"), nodes("a: {run: u, ask: x}"), nodes("a: {map: [1]}"), nodes("a: {run: u, timeout: 5}"),
		nodes("a: {run: u, retry: {wait: 1s}}"), nodes("a: {ask: x, answers: [error]}"), nodes("a: {branches: {b: {run: u, set: {}}}}"),
		nodes("a: {map: [1], run: u, tolerate: many}"), "start: a\n", nodes("a: {run: u, max_visits: 0}"), nodes("a: {run: u, when: x}"),
	} {
		if violations([]byte(text)) == 0 {
			t.Errorf("the schema takes %s", text)
		}
	}
}
