package flow

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/capsule/contract"
)

// contractOf makes a contract of short forms: "text: string, chart?: file" for each side. An
// "!" before it closes the side.
func contractOf(t *testing.T, input, output string) *contract.Contract {
	t.Helper()
	c, findings := contract.Parse([]byte(`{"input": ` + side(input) + `, "output": ` + side(output) + `}`))
	if c == nil {
		t.Fatal(findings)
	}
	return c
}

func side(short string) string {
	short, closed := strings.CutPrefix(short, "!")
	var properties, required []string
	for _, field := range strings.Split(short, ", ") {
		name, kind, ok := strings.Cut(field, ": ")
		if !ok {
			continue
		}
		name, optional := strings.CutSuffix(name, "?")
		if !optional {
			required = append(required, `"`+name+`"`)
		}
		properties = append(properties, `"`+name+`": `+schemaOf(kind))
	}
	text := `{"type": "object", "properties": {` + strings.Join(properties, ", ") + `}`
	if len(required) > 0 {
		text += `, "required": [` + strings.Join(required, ", ") + `]`
	}
	if closed {
		text += `, "additionalProperties": false`
	}
	return text + "}"
}

func schemaOf(kind string) string {
	if inner, list := strings.CutPrefix(kind, "list of "); list {
		return `{"type": "list", "items": ` + schemaOf(inner) + `}`
	}
	switch kind {
	case "any":
		return `{}`
	case "file":
		return `{"type": "string", "format": "file_path"}`
	case "unit":
		return `{"enum": ["cm", "inch"]}`
	}
	return `{"type": "` + kind + `"}`
}

func someUnits(t *testing.T) Units {
	known := map[string]*contract.Contract{
		"pdf-text":       contractOf(t, "!document: file", "!pages: list of string, text: file"),
		"csv-report":     contractOf(t, "!table: file, group_by?: string", "!chart: file"),
		"writer":         contractOf(t, "topic?: string, remarks?: list of string, task?: string, pages?: any", "text: string, report?: string, sure?: bool"),
		"critic":         contractOf(t, "!text: string", "!score: number, remarks: list of string"),
		"publisher":      contractOf(t, "!text: string", "!url: string"),
		"au-ocr":         contractOf(t, "stdin?: file, args?: list of string", "text: file"),
		"bind":           contractOf(t, "!texts: list of file, charts: list of file", "!brief: file"),
		"model":          contractOf(t, "!prompt: string", "!json: dict"),
		"fetch-page":     contractOf(t, "!url: string", "!page: file"),
		"research-agent": contractOf(t, "!task: string, pages: any", "!report: string, sure: bool"),
		"measure":        contractOf(t, "!in: unit", "!n: int"),
		"nameless":       nil,
	}
	return func(name string) (*contract.Contract, bool) {
		c, ok := known[name]
		return c, ok
	}
}

func TestTheExamplesHaveNoFindings(t *testing.T) {
	own := map[string]*contract.Contract{
		"linear.yaml":   contractOf(t, "!report: file, sales: file", "!pages: int, text: file, chart: file"),
		"review.yaml":   contractOf(t, "!topic: string", "!url: string"),
		"batch.yaml":    contractOf(t, "!scans: list of file, tables: list of file, language: string", "!brief: file"),
		"research.yaml": contractOf(t, "!question: string", "!report: string"),
	}
	files, _ := filepath.Glob("testdata/good/*.yaml")
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f := parsed(t, string(raw))
		terms := Terms{Units: someUnits(t), Contract: own[filepath.Base(name)], Timeout: 72 * time.Hour, Calls: 100}
		for _, finding := range f.Check(terms) {
			t.Errorf("%s: %s", name, finding)
		}
		for _, finding := range f.Check(Terms{}) {
			t.Errorf("%s with nothing known: %s", name, finding)
		}
	}
}

func TestWhatChecksFind(t *testing.T) {
	units := someUnits(t)
	own := contractOf(t, "!topic: string, doc: file, list: list of int", "!url: string")
	const out = "output: {url: x}\n"
	for name, c := range map[string]struct{ text, want string }{
		"an unknown unit":            {nodes("a: {run: wirter}"), `flow.yaml:2: there is no unit "wirter"`},
		"an unreachable node":        {"start: a\n" + nodes("a: {run: nameless}", "b: {run: nameless}"), "flow.yaml:4: no edge from a, where it starts, leads to b"},
		"no way to an end":           {"start: a\n" + nodes("a: {next: b}", "b: {next: c}", "c: {next: b, max_visits: 2}"), "flow.yaml:3: no way leads from a to an end"},
		"a trap":                     {"start: a\n" + nodes("a: {action: '${{ input.topic }}', next: {x: end, y: b}}", "b: {next: b}"), "flow.yaml:4: no way leads from b to an end"},
		"an action without edge":     {nodes("a:", `  action: '${{ input.topic == "" ? "later" : input.topic }}'`, "  next: {now: end}"), `flow.yaml:4: no edge takes the action "later"`},
		"one side without edge":      {nodes("a:", `  action: '${{ input.topic == "" ? "no" : "yes" }}'`, "  next: {yes: end}"), `flow.yaml:4: no edge takes the action "no"`},
		"an edge without action":     {nodes("a:", `  action: '${{ input.topic == "" ? "no" : "yes" }}'`, "  next:", "    yes: end", "    no: end", "    yess: end"), `flow.yaml:7: nothing takes the edge "yess" (did you mean yes?)`},
		"an edge of no action":       {nodes("a: {next: {good: end, default: end}}"), `nothing takes the edge "good": the node has no action`},
		"an edge of no answer":       {nodes("a: {ask: x, next: {approve: end, reject: end, aprove: end}}"), "did you mean approve?"},
		"an answer without edge":     {nodes("a: {ask: x, next: {approve: end}}"), `no edge takes the action "reject"`},
		"an edge of a sub-flow":      {nodes("a:", `  flow: {nodes: {b: {action: '${{ input.topic == "" ? "x" : "y" }}'}}}`, "  next: {y: end}"), `no edge takes the action "x"`},
		"exhausted without visits":   {nodes("a: {run: nameless, next: {default: end, exhausted: end}}"), "the node has no max_visits"},
		"timeout without one":        {nodes("a: {ask: x, next: {approve: end, reject: end, timeout: end}}"), "nothing takes the edge timeout"},
		"a reserved action":          {nodes("a: {action: error}"), `"error" is an action that a node can't choose itself`},
		"a loop without bound":       {nodes("a: {next: b}", "b: {action: '${{ input.topic }}', next: {x: b, y: end}}"), "flow.yaml:3: nothing bounds the loop of b but max_steps"},
		"state that nothing sets":    {nodes("a: {run: publisher, with: {text: '${{ state.text }}'}}"), "flow.yaml:2: column 5: no way to here sets state.text"},
		"an action of the old state": {nodes("a: {set: {list: x}, action: '${{ len(state.list) > 1 ? state.list[0] : nil }}'}"), "list"},
		"state that is set later":    {nodes("a: {run: publisher, with: {text: '${{ state.text }}'}, next: b}", "b: {set: {text: x}}"), "flow.yaml:2: column 5: no way to here sets state.text"},
		"an input that isn't":        {nodes("a: {run: publisher, with: {text: '${{ input.text }}'}}"), `column 5: input has no "text"`},
		"a missing field":            {nodes("a: {run: publisher}"), `flow.yaml:2: the input contract of publisher wants "text", which isn't there`},
		"an unknown field":           {nodes("a: {run: publisher, with: {text: x, titel: y}}"), `the input contract of publisher has no "titel"`},
		"a field of another name":    {nodes("a: {run: writer, with: {topics: x}}"), `doesn't name "topics" (did you mean topic?)`},
		"a number for a text":        {nodes("a: {run: publisher, with: {text: 1}}"), "wants a text, and gets a number for text"},
		"a text for a file":          {nodes("a: {run: pdf-text, with: {document: a.pdf}}"), "wants a file, and gets a text for document"},
		"a file for a text":          {nodes("a: {run: publisher, with: {text: '${{ input.doc }}'}}"), "wants a text, and gets a file for text"},
		"a list of other items":      {nodes("a: {run: writer, with: {remarks: '${{ input.list }}'}}"), "a list with a text, and gets a number"},
		"a value that isn't one":     {nodes("a: {run: measure, with: {in: meter}}"), `has no "meter" for in`},
		"a mapping by state":         {nodes("a: {run: critic, with: {text: x}, set: {score: '${{ out.score }}'}, next: b}", "b: {run: publisher, with: {text: '${{ state.score }}'}}"), "flow.yaml:3: the input contract of publisher wants a text, and gets a number for text"},
		"out that isn't":             {nodes("a: {run: publisher, with: {text: x}, set: {u: '${{ out.uri }}'}}"), `flow.yaml:2: column 5: out has no "uri" (did you mean url?)`},
		"out that isn't named":       {nodes("a: {run: writer, set: {u: '${{ out.txt }}'}}"), `out has no "txt" by its contract (did you mean text?)`},
		"a member of a text":         {nodes("a: {run: publisher, with: {text: x}, set: {u: '${{ out.url.host }}'}}"), "out.url is a text, which has no host"},
		"a member of a map's list":   {nodes("a: {map: [1], run: publisher, with: {text: x}, set: {u: '${{ out.url }}'}}"), "out is a list, which has no url"},
		"a branch that isn't":        {nodes("a: {branches: {x: {run: nameless}}, set: {u: '${{ out.y }}'}}"), `out has no "y"`},
		"items of the wrong type":    {nodes("a: {map: '${{ input.list }}', run: publisher, with: {text: '${{ item }}'}}"), "wants a text, and gets a number for text"},
		"a map over a text":          {nodes("a: {map: '${{ input.topic }}', run: nameless}"), "map must be a list, and this gives a text"},
		"when as a text":             {nodes("a: {run: nameless, when: '${{ input.topic }}'}"), "when must be true or false, and this gives a text"},
		"an action that is none":     {nodes("a: {action: '${{ len(input.list) }}'}"), "action must be nothing or a text, and this gives a number"},
		"isolated from the state":    {nodes("a: {scope: isolated, flow: {nodes: {b: {set: {x: '${{ state.topic }}'}}}}}"), "no way to here sets state.topic"},
		"a unit that isn't allowed":  {nodes("a: {run: '${{ input.topic == \"\" ? \"nameless\" : \"writer\" }}', units: [nameless]}"), `run may give "writer", which isn't among units`},
		"an ask that is too long":    {nodes("a: {ask: x, timeout: 48h}"), "the question is open for up to 48h, and a run of the flow lasts 24h"},
		"a wait that is too long":    {nodes("a: {wait: 48h}"), "it waits for 48h"},
		"too few calls":              {nodes("a: {run: nameless, next: b}", "b: {run: nameless, next: c}", "c: {run: nameless}"), "3 calls at least are on every way to the end, and budgets.calls allows 2 calls"},
		"a declared type":            {"state: {n: {type: int}}\n" + nodes("a: {set: {n: x}}"), "state.n is declared as a number, and gets a text"},
	} {
		t.Run(name, func(t *testing.T) {
			f := parsed(t, c.text+out)
			findings := f.Check(Terms{Units: units, Contract: own, Timeout: 24 * time.Hour, Calls: 2})
			if len(findings) != 1 || !strings.Contains(findings[0].String(), c.want) || findings[0].Line < 1 {
				t.Errorf("%v, want %s", findings, c.want)
			}
		})
	}
	for name, c := range map[string]struct{ text, want string }{
		"an output that is missing": {"output: {}\n", `wants "url", which isn't there`},
		"an unknown output":         {"output: {url: x, uri: y}\n", `its own output contract has no "uri"`},
		"an output of other type":   {"output: {url: '${{ state.list }}'}\n", "its own output contract wants a text, and gets a list for url"},
		"an output that isn't set":  {"output: {url: '${{ state.url }}'}\n", "no way to here sets state.url"},
	} {
		t.Run(name, func(t *testing.T) {
			findings := parsed(t, nodes("a: {run: nameless}")+c.text).Check(Terms{Units: units, Contract: own})
			if len(findings) != 1 || !strings.Contains(findings[0].String(), c.want) || findings[0].Line < 1 {
				t.Errorf("%v, want %s", findings, c.want)
			}
		})
	}
}

// TestWhatChecksLeaveAlone has flows about which nothing is surely wrong.
func TestWhatChecksLeaveAlone(t *testing.T) {
	units := someUnits(t)
	own := contractOf(t, "!topic: string, n?: int, doc: file", "any?: any")
	for name, text := range map[string]string{
		"state that one way sets":      "start: a\n" + nodes("a: {action: '${{ input.topic }}', next: {x: b, y: c}}", "b: {set: {t: x}, next: c}", "c: {run: publisher, with: {text: '${{ state.t ?? \"\" }}'}}"),
		"state of one way, unguarded":  "start: a\n" + nodes("a: {action: '${{ input.topic }}', next: {x: b, y: c}}", "b: {set: {t: x}, next: c}", "c: {run: publisher, with: {text: '${{ state.t }}'}}"),
		"the error after an edge":      nodes("a: {run: nameless, next: {default: end, error: b}}", "b: {ask: '${{ state.error.message }}'}"),
		"state of a loop":              nodes("a: {max_visits: 3, set: {n: '${{ (state.n ?? 0) + 1 }}'}, action: '${{ state.n > 2 ? nil : \"x\" }}', next: {x: a, default: end, exhausted: end}}"),
		"an action of what is set":     nodes("a: {run: publisher, with: {text: x}, set: {u: '${{ out.url }}'}, action: '${{ state.u }}', next: {x: end, y: end}}"),
		"an action of a new type":      nodes("a: {set: {topic: {x: 1}}, action: '${{ state.topic.x == 1 ? \"b\" : \"c\" }}', next: {b: end, c: end}}"),
		"a loop of two types":          "start: a\n" + nodes("a: {set: {v: '${{ state.v ?? 1 }}'}, next: b}", "b: {max_visits: 3, set: {v: x}, action: '${{ input.topic }}', next: {x: a, y: end, exhausted: end}}"),
		"what is written goes through": nodes("a: {scope: shared, flow: {nodes: {b: {set: {t: x}}}}, next: c}", "c: {run: publisher, with: {text: '${{ state.t }}'}}"),
		"what a sub-flow gives":        nodes("a: {flow: {nodes: {b: {set: {t: x}}}}, set: {t: '${{ out.t }}'}, next: c}", "c: {run: publisher, with: {text: '${{ state.t }}'}}"),
		"an item inside a flow":        nodes("a: {map: ['x'], as: it, flow: {nodes: {b: {run: publisher, with: {text: '${{ it }}'}}}}}"),
		"an item handed in":            nodes("a: {map: ['x'], as: it, scope: isolated, with: {t: '${{ it }}'}, flow: {nodes: {b: {run: publisher, with: {text: '${{ state.t }}'}}}}}"),
		"a unit without a contract":    nodes("a: {run: nameless, with: {x: 1}, set: {y: '${{ out.what.ever }}'}}"),
		"units by name":                nodes("a: {run: '${{ input.topic }}', units: [nameless, publisher], with: {text: x}}"),
		"an object by expression":      nodes("a: {run: publisher, with: '${{ {text: input.topic} }}', set: '${{ out }}', next: b}", "b: {ask: '${{ state.url }}'}"),
		"a form":                       nodes("a: {ask: x, form: {type: object, properties: {n: {type: int}}}, set: {n: '${{ out.n }}', by: '${{ out.by }}'}}"),
		"a fallback":                   nodes("a: {run: publisher, with: {text: x}, fallback: {url: ''}, set: {u: '${{ out.url }}'}}"),
		"a file's name":                nodes("a: {run: publisher, with: {text: '${{ input.doc.name }}'}}"),
		"a skipped question":           nodes("a: {ask: x, when: '${{ input.n == 1 }}', next: {approve: end, reject: end, default: end}}"),
		"timeout inside":               nodes("a: {flow: {nodes: {b: {run: nameless}}}, next: {default: end, timeout: end}}"),
		"the ends of a sub-flow":       nodes("a: {flow: {nodes: {b: {ask: x}}}, next: {approve: end, reject: end}}"),
		"an edge for what may come":    nodes("a: {run: nameless, action: '${{ out.action }}', next: {x: end, y: end}}"),
		"more than a contract names":   nodes("a: {run: writer, with: {colour: red}}"),
		"branches within a map":        nodes("a: {map: [1], flow: {nodes: {b: {branches: {c: {run: publisher, with: {text: '${{ string(item) }}'}}}, set: {u: '${{ out.c.url }}'}}}}, collect: '${{ out.u }}'}"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, finding := range parsed(t, text).Check(Terms{Units: units, Contract: own, Timeout: time.Hour, Calls: 10}) {
				t.Error(finding)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	for text, want := range map[string]Bounds{
		nodes("a: {run: u}"):                                                                                 {1, 1, 1},
		nodes("a: {run: u, retry: 3}"):                                                                       {1, 3, 1},
		nodes("a: {map: [1], max: 20, run: u}"):                                                              {0, 20, 1},
		nodes("a: {run: u, next: b}", "b: {run: u}"):                                                         {2, 2, 1},
		nodes("a: {run: u, when: true}"):                                                                     {0, 1, 1},
		nodes("a: {branches: {x: {run: u}, y: {run: u}}}"):                                                   {2, 2, 2},
		nodes("a: {flow: {nodes: {b: {run: u}}}}"):                                                           {1, 1, 2},
		nodes("a: {run: u, max_visits: 3, action: x, next: {x: a, y: end, exhausted: end}}"):                 {1, 3, 1},
		"start: a\n" + nodes("a: {run: u, next: b}", "b: {run: u, action: x, next: {x: a, y: end}}"):         {2, 100, 1},
		nodes("a: {map: [1], max: 100000, flow: {nodes: {b: {map: [1], max: 100000, retry: 100, run: u}}}}"): {0, manyCalls, 2},
	} {
		if diff := cmp.Diff(want, parsed(t, text).Bounds()); diff != "" {
			t.Errorf("%s%s", text, diff)
		}
	}
}

func TestUnitNames(t *testing.T) {
	f := parsed(t, nodes("a: {run: z, next: b}", "b: {branches: {x: {run: y}, w: {flow: {nodes: {c: {run: z}}}}}, next: d}", "d: {run: '${{ input.u }}', units: [q, p]}"))
	if got := f.UnitNames(); !slices.Equal(got, []string{"p", "q", "y", "z"}) {
		t.Error(got)
	}
}

// TestChecksAreBounded has a flow whose states go round and round in scopes within each other.
func TestChecksAreBounded(t *testing.T) {
	text := "{run: u}"
	for range 7 {
		text = "{flow: {start: a, nodes: {a: " + text + ", b: {set: {x: '${{ [state.x] }}'}, next: c}, c: {set: {y: '${{ {x: state.y} }}'}, action: '${{ state.y }}', next: {a: b, b: a, c: end}}}}}"
	}
	f, findings := Parse([]byte("nodes: {a: " + text + "}"))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	f.Check(Terms{})
}

func TestTheOrderOfNamesMeansNothing(t *testing.T) {
	raw, err := os.ReadFile("testdata/good/review.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := parsed(t, strings.ReplaceAll(string(raw), "out.text", "out.txet"))
	first := f.Check(Terms{Units: someUnits(t)})
	for range 20 {
		if diff := cmp.Diff(first, f.Check(Terms{Units: someUnits(t)})); diff != "" {
			t.Fatal(diff)
		}
	}
	if len(first) == 0 || len(slices.Collect(maps.Keys(f.Nodes))) != 4 {
		t.Error(first)
	}
}

func TestCallsThatComeBackToTheFlow(t *testing.T) {
	calls := map[string][]string{"f": {"sub"}, "sub": {"other", "deep"}, "deep": {"sub", "back"}, "back": {"f"}, "leaf": {"leaf"}}
	terms := Terms{Name: "f", Callees: func(unit string) []string { return calls[unit] }}
	for name, c := range map[string]struct{ text, want string }{
		"by itself":            {nodes("a: {run: leaf, next: b}", "b: {run: f}"), "flow.yaml:3: it calls the flow that it is in, whose recursion is 0"},
		"in a branch":          {nodes("a:", "  branches:", "    x: {run: f}"), "flow.yaml:4: it calls the flow"},
		"in a sub-flow":        {nodes("a:", "  map: [1]", "  flow: {nodes: {b: {run: f}}}"), "flow.yaml:4: it calls the flow"},
		"perhaps":              {nodes("a: {run: '${{ input.x }}', units: [leaf, f]}"), "warning: flow.yaml:2: it calls the flow"},
		"by others":            {nodes("a: {run: sub}"), "warning: flow.yaml:2: the calls of sub, then deep, then back may come back to this flow"},
		"not":                  {nodes("a: {run: leaf}"), ""},
		"not by names unknown": {nodes("a: {run: stranger}"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := parsed(t, c.text)
			var got []string
			for _, finding := range f.Check(terms) {
				text := finding.String()
				if finding.Warning {
					text = "warning: " + strings.TrimPrefix(text, "warning: ")
				}
				got = append(got, text)
			}
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
			free := terms
			free.Recursion = 1
			if found := f.Check(free); len(found) > 0 {
				t.Errorf("with recursion: %v", found)
			}
		})
	}
}
