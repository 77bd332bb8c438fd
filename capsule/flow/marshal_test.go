package flow

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const everything = `
start: first
max_steps: 7
state: {n: {type: integer}}
nodes:
  first:
    description: "the first: one"
    run: '${{ input.u }}'
    units: [a, b]
    with: {x: 1.0, y: "1", z: "2026-01-01", long: "a\nb # c", "no": [yes, null, 1.5, {}]}
    set: "${{ out }}"
    action: '${{ out.ok ? "x" : "y" }}'
    when: ${{ visits.first < 3 }}
    timeout: 1500ms
    retry: {tries: 3, wait: 1s, factor: 1.5, max_wait: 1m, on: [Transient, timeout]}
    fallback: null
    cache: 24h
    max_visits: 3
    next: {x: second, y: end, exhausted: end, default: end}
  second: {ask: "really $${{ }}?", show: {a: 1}, form: {type: object}, answers: [yes-all, no-all], approvers: ["team:a", "token:ada"], timeout: 48h, next: third}
  third: {map: [1, 2], as: it, parallel: 2, max: 5, tolerate: 2.5%, collect: "${{ out }}", flow: {nodes: {a: {set: {x: "${{ it }}"}}}}, next: fourth}
  fourth: {branches: {one: {run: u}, two: {wait: 5m}}, next: fifth}
  fifth: {scope: shared, flow: {start: b, nodes: {b: {}}}, next: end}
output: {x: "${{ state.x }}", y: [1]}
`

func TestAFlowComesBack(t *testing.T) {
	texts := map[string]string{"everything": everything}
	files, _ := filepath.Glob("testdata/good/*.yaml")
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(raw)
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) { comesBack(t, parsed(t, text)) })
	}
}

// comesBack writes a flow as YAML and as JSON: each is read as the same flow, and says the same.
func comesBack(t *testing.T, f *Flow) {
	t.Helper()
	inYAML, err := f.YAML()
	if err != nil {
		t.Fatal(err)
	}
	inJSON, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range [][]byte{inYAML, inJSON} {
		again, findings := Parse(raw)
		if len(findings) > 0 {
			t.Fatalf("%v in\n%s", findings, raw)
		}
		if diff := cmp.Diff(f.object(), again.object()); diff != "" {
			t.Errorf("%s\nin %s", diff, raw)
		}
		yamlAgain, err := again.YAML()
		if diff := cmp.Diff(string(inYAML), string(yamlAgain)); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
}

func TestAllOfANodeIsWritten(t *testing.T) {
	f := parsed(t, everything)
	raw, err := f.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range append(sortedKeys(nodeKeys), "tries", "factor", "max_wait", "on", "max_steps", "state", "output") {
		if !strings.Contains(string(raw), key+":") {
			t.Errorf("%s is lost:\n%s", key, raw)
		}
	}
}

func TestWhatIsntSaidIsLeftOut(t *testing.T) {
	raw, err := parsed(t, nodes("a: {map: [1], as: item, parallel: 8, max: 1000, tolerate: 0, run: u}")).YAML()
	if diff := cmp.Diff("start: a\nnodes:\n  a:\n    run: u\n    map:\n      - 1\n", string(raw)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
