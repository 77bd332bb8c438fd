package capsule

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestLoadReadsEverything(t *testing.T) {
	dir := newCapsule(t, map[string]string{
		"agent.yaml": `
name: csv-report
version: "1.2"
description: A report.
model: small
models: [small, large]
temperature: 0
max_tokens: 100
loop: {max_turns: 5, parallel: 2, repairs: 0}
limits: {timeout: 1m30s, memory: 512m, cpus: 0.5, pids: 64, output: {size: 1GiB, files: 10}, log: 64KiB}
network: bridge
read_only: false
runtime: runsc
egress: [api.example.com]
budgets: {depth: 3, calls: 10, tokens: 1000}
concurrency: 2
warm: 1
a2a: {text: name, tags: [greets]}
reuse: 3
cache: 10m
recursion: 1
retries: 2
upstreams: [weather]
`,
		"tools.yaml": `
- name: read_pdf
  capsule: pdf-text
  sequential: true
  timeout: 1m30s
- name: add
  description: Adds.
  parameters: {type: object, properties: {a: {type: int}}}
`,
	})
	c := loaded(t, dir)
	zero, none, two := 0.0, 0, 2
	want := Agent{
		Model: "small", Models: []string{"small", "large"}, Temperature: &zero, MaxTokens: 100,
		Loop:    Loop{MaxTurns: 5, Parallel: 2, Repairs: &none},
		Limits:  Limits{Timeout: 90 * time.Second, MemoryBytes: 512 * quantity.MiB, CPUs: 0.5, PIDs: 64, OutputBytes: quantity.GiB, OutputFiles: 10, LogBytes: 64 * quantity.KiB},
		Network: "bridge", ReadOnly: false, Runtime: "runsc", Egress: outside.List{{Host: "api.example.com", Port: 443}},
		Budgets: Budgets{Depth: 3, Calls: 10, Tokens: 1000}, Concurrency: 2, Warm: 1, Reuse: 3, Cache: 10 * time.Minute,
		Recursion: 1, Retries: &two, Upstreams: []string{"weather"}, A2A: A2A{Text: "name", Tags: []string{"greets"}},
	}
	if diff := cmp.Diff(want, c.Agent); diff != "" {
		t.Error(diff)
	}
	if c.Dir != dir || c.Name != "csv-report" || c.Version != "1.2" || c.Description != "A report." {
		t.Errorf("%q %q %q %q", c.Dir, c.Name, c.Version, c.Description)
	}
	tools := []Tool{
		{Name: "read_pdf", Capsule: "pdf-text", Sequential: true, Timeout: 90 * time.Second},
		{Name: "add", Description: "Adds.", Parameters: map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "int"}}}},
	}
	if diff := cmp.Diff(tools, c.Tools); diff != "" {
		t.Error(diff)
	}
	if c.Contract == nil || !c.UsesBase() {
		t.Error("no contract, or no base")
	}
	var warned []string
	for _, w := range c.Warnings {
		if !w.Warning || w.Line == 0 {
			t.Errorf("%+v isn't a warning with a line", w)
		}
		warned = append(warned, strings.TrimPrefix(w.Pointer, "/"))
	}
	if diff := cmp.Diff([]string{"egress", "warm", "reuse", "cache"}, warned); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsAreNamesByVariables(t *testing.T) {
	c := loaded(t, newCapsule(t, map[string]string{"agent.yaml": "name: good\nreuse: 3\nsecrets: {API_KEY: weather-key}\n"}))
	if diff := cmp.Diff(map[string]string{"API_KEY": "weather-key"}, c.Agent.Secrets); diff != "" {
		t.Error(diff)
	}
	if w := c.Warnings; len(w) != 1 || w[0].Line != 2 || !strings.Contains(w[0].Message, "reuse has no effect here: a program gets its secrets when it starts") {
		t.Errorf("%v", w)
	}
}

func TestWarmIsInVainUnderAnIsolationRuntime(t *testing.T) {
	cases := []struct {
		name, agent string
		warns       bool
	}{
		{"with both", "name: good\nruntime: runsc\nwarm: 1\n", true},
		{"with warm alone", "name: good\nwarm: 1\n", false},
		{"with none wanted", "name: good\nruntime: runsc\nwarm: 0\n", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			warnings := loaded(t, newCapsule(t, map[string]string{"agent.yaml": c.agent})).Warnings
			if c.warns != (len(warnings) == 1) {
				t.Fatalf("warnings %+v", warnings)
			}
			if c.warns && (!warnings[0].Warning || warnings[0].Line != 3 || !strings.HasPrefix(warnings[0].Message, "warm has no effect")) {
				t.Errorf("warning %+v", warnings[0])
			}
		})
	}
}

func TestReuseThatNeverComesAboutIsAWarning(t *testing.T) {
	for name, c := range map[string]struct {
		agent  string
		warned bool
	}{
		"a capsule":                       {"reuse: 3\n", false},
		"one run, as ever":                {"reuse: 1\nruntime: runsc\n", false},
		"a capsule with isolation":        {"runtime: runsc\nreuse: 3\n", true},
		"an Agentic Unit":                 {"reuse: 3\nkind: au\n", true},
		"an Agentic Unit that serves one": {"kind: au\nreuse: 1\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			object, _ := strictyaml.Parse(agentFile, []byte("name: it\n"+c.agent))
			var read Capsule
			_, findings := fillAgent(&read, object.Value.(map[string]any))
			if warned := len(findings) == 1 && findings[0].Warning && findings[0].Pointer == "/reuse"; warned != c.warned || len(findings) > 1 {
				t.Errorf("%+v", findings)
			}
		})
	}
}

func TestLoadDefaults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my-capsule")
	must(t, os.Rename(newCapsule(t, map[string]string{"agent.yaml": "# nothing\n", "tools.yaml": missing}), dir))
	c := loaded(t, dir)
	if c.Name != "my-capsule" || c.Tools != nil || len(c.Warnings) != 0 {
		t.Errorf("%+v", c)
	}
	if diff := cmp.Diff(Agent{Network: "none", ReadOnly: true}, c.Agent); diff != "" {
		t.Error(diff)
	}
}

// The directory that aod validate has to show: every mistake at once.
func TestLoadReportsAllMistakesAtOnce(t *testing.T) {
	_, err := Load("testdata/mistakes")
	if !fault.Is(err, fault.Capsule) {
		t.Fatalf("Load: %v", err)
	}
	f := fault.Public(err)
	got := f.Msg + "\n" + f.Hint + "\n\n" + told(err)
	const golden = "testdata/mistakes.golden"
	if *update {
		must(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
	for _, finding := range f.Findings {
		if finding.Message == "" || finding.Hint == "" || finding.File == "" {
			t.Errorf("%+v doesn't say where, what and how to fix it", finding)
		}
	}
}

func TestRules(t *testing.T) {
	cases := []struct {
		name    string
		changes map[string]string
		want    string // one finding each line, from its beginning
	}{
		{"no Dockerfile", map[string]string{"Dockerfile": missing}, "Dockerfile: it is missing"},
		{"a Dockerfile of comments", map[string]string{"Dockerfile": "# x\n\n"}, "Dockerfile: it is empty"},
		{"a Dockerfile without FROM", map[string]string{"Dockerfile": "RUN x\nCMD x"}, "Dockerfile:1: it has no FROM"},
		{"no agent.yaml", map[string]string{"agent.yaml": missing}, "agent.yaml: it is missing (aod init shows one"},
		{"agent.yaml with a list", map[string]string{"agent.yaml": "- a"}, "agent.yaml:1: it must hold keys with values"},
		{"agent.yaml with broken syntax", map[string]string{"agent.yaml": "name: a\nversion: \"b\n"}, "agent.yaml:2: it isn't YAML: "},
		{"an unknown key", map[string]string{"agent.yaml": "name: good\n\ntemprature: 1\n"}, `agent.yaml:3: the key "temprature" is not known (did you mean temperature?)`},
		{"an unknown key like no other", map[string]string{"agent.yaml": "name: good\nzzz: 1\n"}, `agent.yaml:2: the key "zzz" is not known (leave it out)`},
		{"a limit at the wrong place", map[string]string{"agent.yaml": "name: good\ntimeout: 30s\n"}, `agent.yaml:2: the key "timeout" is not known (it belongs into limits)`},
		{"an unknown limit", map[string]string{"agent.yaml": "name: good\nlimits:\n  cpu: 1\n"}, `agent.yaml:3: the key "cpu" is not known (did you mean cpus?)`},
		{"a key in capitals", map[string]string{"agent.yaml": "Name: good\n"}, `agent.yaml:1: the key "Name" is not known (did you mean name?)`},
		{"a key that stands twice", map[string]string{"agent.yaml": "name: good\nmodel: a\nmodel: b\n"}, `agent.yaml:3: the key "model" stands twice, first in line 2`},
		{"a name that can't be a tag", map[string]string{"agent.yaml": "name: My Capsule\n"}, `agent.yaml:1: the name "My Capsule" can't be an image tag (use lower-case letters and digits, joined by single '.', '_' or '-', for example my-capsule)`},
		{"a name that is too long", map[string]string{"agent.yaml": "name: " + strings.Repeat("a", 64)}, `agent.yaml:1: the name "` + strings.Repeat("a", 64) + `" is longer than 63`},
		{"a name that is empty", map[string]string{"agent.yaml": "name: ''\n"}, "agent.yaml:1: the name is empty"},
		{"a version that is a number", map[string]string{"agent.yaml": "name: good\nversion: 1.0\n"}, "agent.yaml:2: version: expected string"},
		{"a timeout without a unit", map[string]string{"agent.yaml": "name: good\nlimits:\n  timeout: 30\n"}, `agent.yaml:3: limits.timeout: "30" has no unit (write a duration with its unit`},
		{"a timeout that is none", map[string]string{"agent.yaml": "name: good\nlimits:\n  timeout: soon\n"}, `agent.yaml:3: limits.timeout: "soon" isn't a duration`},
		{"a timeout out of range", map[string]string{"agent.yaml": "name: good\nlimits:\n  timeout: 1000h\n"}, "agent.yaml:3: limits.timeout: 1000h is out of range: from 1ms to 168h"},
		{"a memory limit that is too small", map[string]string{"agent.yaml": "name: good\nlimits:\n  memory: 512\n"}, `agent.yaml:3: limits.memory: "512" is out of range: from 6MiB to 16TiB`},
		{"a memory limit that is none", map[string]string{"agent.yaml": "name: good\nlimits:\n  memory: lots\n"}, `agent.yaml:3: limits.memory: "lots" isn't a size`},
		{"processors out of range", map[string]string{"agent.yaml": "name: good\nlimits:\n  cpus: 0\n"}, "agent.yaml:3: limits.cpus: must be at least 0.01"},
		{"limits that are no object", map[string]string{"agent.yaml": "name: good\nlimits: 3\n"}, "agent.yaml:2: limits: expected object"},
		{"a network that doesn't exist", map[string]string{"agent.yaml": "name: good\nnetwork: host\n"}, "agent.yaml:2: network: "},
		{"a secret that isn't a name", map[string]string{"agent.yaml": "name: good\nsecrets: {A: 'a b'}\n"}, "agent.yaml:2: secrets.A: does not match"},
		{"secrets as a list", map[string]string{"agent.yaml": "name: good\nsecrets: [a]\n"}, "agent.yaml:2: secrets: expected object"},
		{"a secret in a variable of AOD's", map[string]string{"agent.yaml": "name: good\nsecrets: {AOD_X: a}\n"}, "agent.yaml:2: secrets: AOD_X isn't a secret's variable"},
		{"a secret in no variable", map[string]string{"agent.yaml": "name: good\nsecrets: {a-b: a}\n"}, "agent.yaml:2: secrets: \"a-b\" can't be the name of a variable"},
		{"a secret under an isolation runtime", map[string]string{"agent.yaml": "name: good\nruntime: runsc\nsecrets: {A: a}\n"}, "agent.yaml:3: secrets: with an isolation runtime"},
		{"an upstream that isn't a name", map[string]string{"agent.yaml": "name: good\nupstreams: [a.b]\n"}, "agent.yaml:2: upstreams: \"a.b\" can't be the name of an upstream"},
		{"tools.yaml with keys", map[string]string{"tools.yaml": "name: a\n"}, "tools.yaml:1: it must be a list"},
		{"a tool that is a text", map[string]string{"tools.yaml": "- a\n"}, "tools.yaml:1: a tool must have keys"},
		{"a tool whose capsule is empty", map[string]string{"tools.yaml": "- name: a\n  capsule:\n"}, "tools.yaml:2: the tool has no target: capsule is empty"},
		{"a tool without anything", map[string]string{"tools.yaml": "[]\n---\n[]"}, "tools.yaml:2: it holds more than one document"},
		{"a tool that is neither", map[string]string{"tools.yaml": "- name: a\n  description: x\n"}, "tools.yaml:1: the tool has no target: it names no capsule, and for a function of your own it lacks parameters"},
		{"a tool without a name", map[string]string{"tools.yaml": "- capsule: b\n"}, "tools.yaml:1: "},
		{"a tool whose capsule can't be one", map[string]string{"tools.yaml": "- name: a\n  capsule: Other One\n"}, `tools.yaml:2: the name "Other One" can't be an image tag`},
		{"two tools of one name", map[string]string{"tools.yaml": "- {name: a, capsule: b}\n- {name: a, capsule: c}\n"}, `tools.yaml:2: the tool "a" stands twice, first in line 1`},
		{"parameters that are no object", map[string]string{"tools.yaml": "- name: a\n  description: x\n  parameters: [b]\n"}, "tools.yaml:3: parameters: expected object"},
		{"parameters that are a schema of no object", map[string]string{"tools.yaml": "- name: a\n  description: x\n  parameters: {type: string}\n"}, "tools.yaml:3: the parameters aren't a JSON Schema of an object"},
		{"parameters that are no schema", map[string]string{"tools.yaml": "- name: a\n  description: x\n  parameters:\n    type: object\n    properties:\n      b: {type: banana}\n"}, "tools.yaml:6: "},
		{"an unknown key of a tool", map[string]string{"tools.yaml": "- name: a\n  capsul: b\n  capsule: c\n"}, `tools.yaml:2: the key "capsul" is not known (did you mean capsule?)`},
		{"a tool with the name of the answer", map[string]string{"tools.yaml": "- name: final_answer\n  capsule: c\n"}, "tools.yaml:1: a tool can't be called final_answer"},
		{"a tool's name with a dot", map[string]string{"tools.yaml": "- name: a.b\n  capsule: c\n"}, "tools.yaml:1: name: does not match"},
		{"a tool's time without a unit", map[string]string{"tools.yaml": "- name: a\n  capsule: c\n  timeout: 30\n"}, `tools.yaml:3: timeout: "30" has no unit`},
		{"a tool's time that is endless", map[string]string{"tools.yaml": "- name: a\n  capsule: c\n  timeout: 1000h\n"}, "tools.yaml:3: timeout: 1000h is out of range"},
		{"a loop without a turn", map[string]string{"agent.yaml": "name: good\nloop:\n  max_turns: 0\n"}, "agent.yaml:3: loop.max_turns: must be at least 1"},
		{"a word of the loop outside of it", map[string]string{"agent.yaml": "name: good\nrepairs: 1\n"}, `agent.yaml:2: the key "repairs" is not known (it belongs into loop)`},
		{"no contract", map[string]string{"schema.json": missing}, "schema.json: it is missing"},
		{"a contract that isn't JSON", map[string]string{"schema.json": "{\n  'a'"}, "schema.json:2: "},
		{"no bridge", map[string]string{"run.py": missing}, "run.py: it is missing (add it (two lines"},
		{"no logic", map[string]string{"src/main.py": missing}, "src/main.py: it is missing"},
		{"logic without execute", map[string]string{"src/main.py": "def main():\n    pass\n\n    def execute(x): ...\n"}, "src/main.py: it defines no function execute"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { checkFindings(t, newCapsule(t, c.changes), c.want) })
	}
}

// checkFindings wants exactly the findings whose beginnings are the lines of want.
func checkFindings(t *testing.T, dir, want string) {
	t.Helper()
	_, err := Load(dir)
	if err == nil {
		t.Fatal("Load found nothing wrong")
	}
	got := strings.Split(strings.TrimSpace(told(err)), "\n")
	lines := strings.Split(want, "\n")
	if len(got) != len(lines) {
		t.Fatalf("%d findings, want %d:\n%s", len(got), len(lines), strings.Join(got, "\n"))
	}
	for i, line := range lines {
		if !strings.HasPrefix(got[i], line) {
			t.Errorf("got  %s\nwant %s", got[i], line)
		}
	}
	for _, f := range fault.Public(err).Findings {
		if f.Hint == "" {
			t.Errorf("%s: no hint", f)
		}
	}
}

func TestWhatIsNotRequired(t *testing.T) {
	cases := map[string]map[string]string{
		"a Dockerfile with its own CMD needs no Python": {"Dockerfile": "FROM debian\nCMD [\"/x\"]", "run.py": missing, "src/main.py": missing},
		"a bridge by hand needs no src/main.py":         {"run.py": "import json\n# aod.run() would do\n", "src/main.py": missing},
		"execute may be imported":                       {"src/main.py": "from logic import execute\n"},
		"execute may be async":                          {"src/main.py": "async def execute(payload):\n    return {}\n"},
		"tools.yaml may be empty":                       {"tools.yaml": ""},
		"an alias within reason":                        {"agent.yaml": "name: good\nmodel: &m small\nmodels: [*m]\n"},
	}
	for name, changes := range cases {
		t.Run(name, func(t *testing.T) { loaded(t, newCapsule(t, changes)) })
	}
}

func TestADirectorysNameThatCannotBeOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "My Capsule")
	must(t, os.Rename(newCapsule(t, map[string]string{"agent.yaml": "model: x\n"}), dir))
	checkFindings(t, dir, `agent.yaml:1: it gives no name, and that of the directory, "My Capsule", can't be an image tag (add name: my-capsule)`)
}

func TestLoadOfNoDirectory(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "nowhere"))
	if !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Public(err).Hint, "aod init") {
		t.Errorf("Load: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	if _, err := Load(file); !fault.Is(err, fault.Capsule) || fault.Public(err).Hint == "" {
		t.Errorf("Load: %v", err)
	}
}

func TestHostileFiles(t *testing.T) {
	replace := func(name string, make func(path string) error) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, name)))
			must(t, make(filepath.Join(dir, name)))
		}
	}
	link := func(to string) func(string) error { return func(path string) error { return os.Symlink(to, path) } }
	fifo := func(path string) error { return unix.Mkfifo(path, 0o644) }
	write := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o644) }
	}
	cases := []struct {
		name   string
		change func(*testing.T, string)
		want   string
	}{
		{"a pipe as agent.yaml doesn't hang", replace("agent.yaml", fifo), "agent.yaml: it is a named pipe, not a regular file"},
		{"a pipe as Dockerfile doesn't hang", replace("Dockerfile", fifo), "Dockerfile: it is a named pipe"},
		{"a link as schema.json isn't followed out", replace("schema.json", link("/etc/passwd")), "schema.json: it is a symbolic link"},
		{"a link as tools.yaml isn't followed inside either", replace("tools.yaml", link("agent.yaml")), "tools.yaml: it is a symbolic link"},
		{"a link as src isn't followed", replace("src", link("/")), "src/main.py: src/ is a symbolic link, not a directory"},
		{"a file as src", replace("src", write("")), "src/main.py: src/ is a regular file, not a directory"},
		{"a directory as run.py", replace("run.py", func(p string) error { return os.Mkdir(p, 0o755) }), "run.py: it is a directory"},
		{"agent.yaml of 10 MB", replace("agent.yaml", write(strings.Repeat("a: b\n", 2<<20))), "agent.yaml: it is larger than 256KiB"},
		{"a billion laughs", replace("agent.yaml", write(laughs())), "agent.yaml:"},
		{"an alias within itself", replace("agent.yaml", write("name: good\nmodels: &a [*a]\n")), "agent.yaml:"},
		{"a hundred levels", replace("tools.yaml", write(strings.Repeat("[", 100)+strings.Repeat("]", 100))), "tools.yaml:1: it is nested more than 32 deep"},
		{"two hundred thousand values", replace("tools.yaml", write("["+strings.Repeat("1,", 100_000)+"]")), "tools.yaml:1: it holds more than 10000 values"},
		{"not a number", replace("agent.yaml", write("name: good\ntemperature: .nan\n")), `agent.yaml:2: ".nan" is not a number that JSON can hold`},
		{"a merge key", replace("agent.yaml", write("<<: {name: good}\n")), "agent.yaml:1: merge keys"},
		{"a tag of its own", replace("agent.yaml", write("name: !python/object x\n")), "agent.yaml:1: the tag"},
		{"a number as a key", replace("agent.yaml", write("name: good\n1: 2\n")), "agent.yaml:2: a key must be a text"},
		{"control characters", replace("agent.yaml", write("name: \x01\n")), "agent.yaml:1: it isn't YAML: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := newCapsule(t, nil)
			c.change(t, dir)
			done := make(chan error, 1)
			go func() { _, err := Load(dir); done <- err }()
			select {
			case err := <-done:
				if !strings.HasPrefix(told(err), c.want) {
					t.Errorf("got  %s\nwant %s", told(err), c.want)
				}
			case <-time.After(testkit.Patience):
				t.Fatal("Load hangs")
			}
		})
	}
}

// laughs is a YAML file of nine lines that stand for a billion values.
func laughs() string {
	var b strings.Builder
	b.WriteString("name: good\na: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c <= 'i'; c++ {
		prev := string(c - 1)
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+prev+",", 9) + "]\n")
	}
	return b.String()
}

func TestFindingsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		b.WriteString("k" + strings.Repeat("x", i%100) + string(rune('a'+i%26)) + strings.Repeat("y", i/100) + ": 1\n")
	}
	_, err := Load(newCapsule(t, map[string]string{"agent.yaml": b.String()}))
	if n := len(fault.Public(err).Findings); n != maxFindings+1 {
		t.Errorf("%d findings", n)
	}
}

// Whatever the bytes, the parsers return, and what they accept has a schema's shape.
func FuzzAgentYAML(f *testing.F) {
	f.Add("name: a\nlimits: {timeout: 30s, output: {size: 1g, files: 3}}\n")
	f.Add(laughs())
	f.Add("a: &a [*a]\n---\n")
	f.Add("? [a]\n: !!binary x\n<<: *b\n")
	fuzzbound.Run(f, func(t *testing.T, text string) {
		doc, findings := strictyaml.Parse(agentFile, []byte(text))
		if doc == nil && len(findings) == 0 {
			t.Fatal("neither a document nor a finding")
		}
		if doc == nil {
			return
		}
		c := &Capsule{Dir: "/x"}
		if object, ok := doc.Value.(map[string]any); ok {
			_, findings := fillAgent(c, object)
			placed(findings, doc, "")
		}
	})
}

func FuzzToolsYAML(f *testing.F) {
	f.Add("- {name: a, capsule: b}\n- {name: a, description: c, parameters: {type: object}}\n")
	f.Add("- name:\n  capsule:\n- [x]\n-\n")
	fuzzbound.Run(f, func(t *testing.T, text string) {
		doc, _ := strictyaml.Parse(toolsFile, []byte(text))
		if doc == nil {
			return
		}
		_, findings := toolsOf(doc)
		for _, finding := range findings {
			if finding.Line < 1 || finding.Message == "" {
				t.Errorf("%+v", finding)
			}
		}
	})
}
