package flow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func parsed(t *testing.T, text string) *Flow {
	t.Helper()
	f, findings := Parse([]byte(text))
	if len(findings) > 0 {
		t.Fatalf("%v in:\n%s", findings, text)
	}
	return f
}

func TestTheExamples(t *testing.T) {
	files, _ := filepath.Glob("testdata/good/*.yaml")
	if len(files) < 4 {
		t.Fatalf("%d examples", len(files))
	}
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			parsed(t, string(raw))
		})
	}
}

func TestShorthandsAndDefaults(t *testing.T) {
	f := parsed(t, `
nodes:
  a: {run: u, retry: 3, next: b}
  b: {ask: "really?", next: {approve: c, reject: end}}
  c: {map: [1], run: u, tolerate: 5%, next: d}
  d: {map: [1], run: u, tolerate: 2}
`)
	switch {
	case f.Start != "a" || f.MaxSteps != DefaultSteps:
		t.Errorf("%+v", f.Scope)
	case f.Nodes["a"].Retry.Tries != 3 || f.Nodes["a"].Next.Always != "b" || f.Nodes["a"].Line != 3:
		t.Errorf("%+v", f.Nodes["a"])
	case strings.Join(f.Nodes["b"].Ask.Answers, " ") != "approve reject" || f.Nodes["b"].Next.ByAction["reject"] != End:
		t.Errorf("%+v", f.Nodes["b"])
	case f.Nodes["c"].Map.Tolerate.Percent != 5 || f.Nodes["c"].Map.As != "item" || f.Nodes["c"].Map.Parallel != 8 || f.Nodes["c"].Map.Max != 1000:
		t.Errorf("%+v", f.Nodes["c"].Map)
	case f.Nodes["d"].Map.Tolerate.Items != 2:
		t.Errorf("%+v", f.Nodes["d"].Map)
	}
}

func TestJSONIsRead(t *testing.T) {
	f := parsed(t, `{"nodes": {"a": {"run": "u", "with": {"x": "${{ input.x }}"}}}, "output": {"y": 1}}`)
	if f.Start != "a" || f.Output["y"] == nil {
		t.Errorf("%+v", f)
	}
}

func TestANumberThatAFlowWouldChangeIsRefused(t *testing.T) {
	for _, number := range []string{"9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775809"} {
		text := "{\"nodes\": {\"a\": {\"run\": \"u\",\n\"with\": {\"x\": [1, " + number + "]}}}}"
		_, findings := Parse([]byte(text))
		if len(findings) != 1 || findings[0].Line != 2 || !strings.Contains(findings[0].Message, number) || findings[0].Hint != "put it in quotes" {
			t.Errorf("%s: %v", number, findings)
		}
	}
	for _, number := range []string{"9223372036854775807", "-9223372036854775808", "1e20", `"18446744073709551616"`} {
		parsed(t, "{\"nodes\": {\"a\": {\"run\": \"u\", \"with\": {\"x\": "+number+"}}}}")
	}
}

// nodes makes a flow of one line for each node.
func nodes(lines ...string) string { return "nodes:\n  " + strings.Join(lines, "\n  ") + "\n" }

func TestWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no nodes":                 {"start: a\n", "flow.yaml:1: it has no nodes"},
		"a list":                   {"- a\n", "flow.yaml:1: it must hold nodes"},
		"nothing":                  {"", "flow.yaml:1: it must hold nodes"},
		"too large":                {strings.Repeat("#\n", MaxBytes), "the limit is 262144"},
		"an unknown key":           {"node: {}\nnodes: {a: {run: u}}", `flow.yaml:1: the key "node" is unknown (did you mean nodes?)`},
		"an unknown key of nodes":  {nodes("a:", "  runs: u"), `flow.yaml:3: the key "runs" is unknown (did you mean run?)`},
		"a bad name":               {nodes("A: {run: u}"), `flow.yaml:2: "A" is not a valid node name`},
		"a node named end":         {nodes("end: {run: u}"), "a node can't be named end"},
		"two things":               {nodes("a:", "  run: u", "  ask: x"), "flow.yaml:4: a node does one thing, and this one has run and ask"},
		"a map of nothing":         {nodes("a: {map: [1]}"), "map has no meaning without run or flow"},
		"a part without its key":   {nodes("a: {run: u, collect: 1}"), "collect has no meaning without map"},
		"an edge to nowhere":       {nodes("alpha: {run: u, next: beto}", "beta: {run: u}"), `flow.yaml:2: there is no node "beto" in this scope (did you mean beta?)`},
		"an action to nowhere":     {nodes("a:", "  run: u", "  next:", "    x: b"), `flow.yaml:5: there is no node "b"`},
		"a start that isn't":       {"start: b\n" + nodes("a: {run: u}"), `flow.yaml:1: there is no node "b"`},
		"two starts":               {nodes("a: {run: u}", "b: {run: u}"), "it isn't clear where it starts: no edge leads to a, b"},
		"no start":                 {nodes("a: {run: u, next: b}", "b: {run: u, next: a}"), "an edge leads to every node"},
		"a bad duration":           {nodes("a: {run: u, timeout: 5}"), "timeout must be a duration from 1ms to 720h"},
		"a bad number":             {nodes("a: {run: u, max_visits: 0}"), "max_visits must be a whole number from 1 to 10000"},
		"a bad retry":              {nodes("a: {run: u, retry: {wait: 1s}}"), "retry doesn't say how many tries"},
		"an unknown key of retry":  {nodes("a: {run: u, retry: {tries: 1, wiat: 1s}}"), "did you mean wait?"},
		"a bad tolerance":          {nodes("a: {map: [1], run: u, tolerate: many}"), "write 3 or 5%"},
		"a bad unit":               {nodes("a: {run: A b}"), "flow.yaml:2:"},
		"an unclosed expression":   {nodes("a: {run: u}") + "output:\n  x: ${{ filter(input.x, # != nil) }}\n", "flow.yaml:4: column 1: a ${{ isn't closed by }} (quote the whole value"},
		"an expression for two":    {nodes("a: {run: u, when: '${{ input.a }} == 1'}"), "when must be true or false, and a value with text around ${{ }} is a text (put the whole of it"},
		"a map over a text":        {nodes("a: {map: x, run: u}"), "map must be a list, not a text"},
		"with as a text":           {nodes("a: {run: u, with: x}"), "with must be an object, not a text"},
		"an unknown variable":      {nodes("a: {run: u, with: {x: '${{ inptu.x }}'}}"), `flow.yaml:2: column 5: there is no variable "inptu" here (did you mean input?`},
		"out before the run":       {nodes("a: {run: u, with: {x: '${{ out.x }}'}}"), "out is there after the run"},
		"an item outside a map":    {nodes("a: {run: u, with: {x: '${{ item.x }}'}}"), "inside a map"},
		"the item in set":          {nodes("a: {map: [1], run: u, set: {x: '${{ item.x }}'}}"), "inside a map"},
		"a name of an item":        {nodes("a: {map: [1], run: u, as: state}"), "it has a meaning in expressions"},
		"run without units":        {nodes("a: {run: '${{ state.u }}'}"), "nothing says which units"},
		"units without need":       {nodes("a: {run: u, units: [u]}"), "units has no meaning where run isn't an expression"},
		"a scope that isn't":       {nodes("a: {flow: {nodes: {b: {run: u}}}, scope: sharde}"), "did you mean shared?"},
		"shared items":             {nodes("a: {map: [1], flow: {nodes: {b: {run: u}}}, scope: shared}"), "can't share the state"},
		"set in a branch":          {nodes("a: {branches: {b: {run: u, set: {}}}}"), "set has no meaning in a branch"},
		"an approver of no kind":   {nodes("a: {ask: x, approvers: [ada]}"), `"ada" is not an approver`},
		"an approver without name": {nodes("a: {ask: x, approvers: ['token:']}"), `"token:" is not an approver`},
		"a team that can't be":     {nodes("a: {ask: x, approvers: ['team:A.b']}"), `"team:A.b" is not an approver`},
		"approvers without ask":    {nodes("a: {run: u, approvers: ['team:a']}"), "approvers"},
		"a reserved answer":        {nodes("a: {ask: x, answers: [error]}"), `"error" can't be an answer`},
		"a bad form":               {nodes("a: {ask: x, form: {type: strange}}"), "flow.yaml:2:"},
		"a bad wait":               {nodes("a: {wait: tomorrow}"), `"tomorrow" is not a duration`},
		"a type of the state":      {"state: {x: {type: strange}}\n" + nodes("a: {run: u}"), "flow.yaml:1:"},
		"an empty run":             {nodes("a: {run: ''}"), "run is empty"},
		"too deep":                 {nested(9), "scopes are nested more than 8 deep"},
		"too many nodes":           {many(501), "the flow has more than 500 nodes"},
		"a key twice":              {nodes("a: {run: u}", "a: {run: u}"), "stands twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := Parse([]byte(c.text))
			for _, f := range findings {
				if f.Line < 1 || f.File != FileName {
					t.Errorf("without a line: %+v", f)
				}
			}
			if len(findings) != 1 || !strings.Contains(findings[0].String(), c.want) {
				t.Errorf("%v, want %s", findings, c.want)
			}
		})
	}
}

func nested(depth int) string {
	text := "{run: u}"
	for range depth - 1 {
		text = "{flow: {nodes: {a: " + text + "}}}"
	}
	return "nodes: {a: " + text + "}"
}

func many(n int) string {
	lines := []string{"a: {branches: {"}
	for i := range n - 1 {
		lines = append(lines, "  b"+strings.Repeat("x", i%30)+string(rune('a'+i/30%26))+": {run: u},")
	}
	return nodes(append(lines, "}}")...)
}

// FuzzParse holds that every text gives a flow or findings with lines, and that a flow without
// findings can be walked: each edge leads to a node.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/good/*.yaml")
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Add(`{"nodes": {"a": {"run": "u"}}}`)
	fuzzbound.Run(f, func(t *testing.T, text string) {
		flow, findings := Parse([]byte(text))
		for _, finding := range findings {
			if finding.File != FileName || finding.Line < 1 || finding.Message == "" {
				t.Errorf("%+v", finding)
			}
		}
		if len(findings) == 0 {
			walkable(t, &flow.Scope)
			comesBack(t, flow)
			flow.Check(Terms{})
			flow.Bounds()
		}
	})
}

func walkable(t *testing.T, s *Scope) {
	if s.Nodes[s.Start] == nil {
		t.Errorf("it starts at %q", s.Start)
	}
	for name, n := range s.Nodes {
		for _, target := range n.Next.Targets() {
			if s.Nodes[target] == nil {
				t.Errorf("%s leads to %q", name, target)
			}
		}
		if n.Flow != nil {
			walkable(t, n.Flow)
		}
	}
}
