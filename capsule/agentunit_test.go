package capsule

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/agent"
)

// agentDir is a directory of a wrapped agent with an agent.yaml behind its kind, and files, each
// a name and a text.
func agentDir(t *testing.T, yaml string, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{"agent.yaml": "name: cli\nkind: agent\n" + yaml}
	for i := 0; i < len(files); i += 2 {
		all[files[i]] = files[i+1]
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAWrappedAgentIsRead(t *testing.T) {
	c, err := Load(agentDir(t, `image: registry.example.com/cli:1.2
access: read-write
agent:
  command: [cli, run, "--", "{message}", "{input.lang}"]
  flags: {model: m, verbose: true}
  input: args
  output: file
  output_file: out/{run}.json
  result: {format: json, text: /result, session: {at: /id, when: {/type: end}}}
  mode: interactive
  resume: [--resume, "{session}"]
  dir: /workspace/project
  env: {API_KEY: "{placeholder}"}
  caller_env: [LANG]
  approval: ask
  approvers: [team:legal, token:cfo]
  exit_codes: {"75": Transient}
workspace: {write: true, max: 10MiB, ignore: [node_modules]}
session: {idle: 5m}
`))
	if err != nil {
		t.Fatal(err, fault.Public(err).Findings)
	}
	want := &agent.Config{
		Command: []string{"cli", "run", "--", "{message}", "{input.lang}"}, Flags: map[string]any{"model": "m", "verbose": true},
		Input: agent.Args, Output: agent.File, OutputFile: "out/{run}.json",
		Result: agent.Result{Format: agent.JSON, Text: &agent.Pick{At: "/result"}, Session: &agent.Pick{At: "/id", When: map[string]any{"/type": "end"}}},
		Mode:   agent.Interactive, Resume: []string{"--resume", "{session}"}, Dir: "/workspace/project", Env: map[string]string{"API_KEY": "{placeholder}"},
		CallerEnv: []string{"LANG"}, Approval: agent.Ask, Approvers: []string{"team:legal", "token:cfo"}, ExitCodes: map[int]string{75: "Transient"}, Image: "registry.example.com/cli:1.2", ReadWrite: true,
		Workspace: agent.Workspace{Write: true, Max: 10 << 20, Ignore: []string{"node_modules"}}, Session: agent.Session{Idle: 5 * time.Minute},
	}
	if diff := cmp.Diff(want, c.Wrapped); diff != "" {
		t.Error(diff)
	}
	if !c.Wrapped.ReadWrite || c.OwnContract() || c.Contract == nil {
		t.Errorf("%+v", c.Agent)
	}
}

func TestWhatHoldsForAWrappedAgentThatSaysLittle(t *testing.T) {
	c, err := Load(agentDir(t, "agent: {command: [cli]}\n", "Dockerfile", "FROM scratch\n"))
	if err != nil {
		t.Fatal(err, fault.Public(err).Findings)
	}
	l := c.Agent.Limits
	if l.Timeout != 5*time.Minute || l.MemoryBytes != 2<<30 || l.CPUs != 2 || l.PIDs != 512 || c.Agent.Concurrency != 10 {
		t.Errorf("%+v, %d at once", l, c.Agent.Concurrency)
	}
	if w := c.Wrapped; w.Input != agent.Stdin || w.Output != agent.Stdout || w.Mode != agent.Task || w.Approval != agent.Deny || w.Result.Format != agent.Text || w.ReadWrite || w.Disabled {
		t.Errorf("%+v", w)
	}
}

// TestAllThatIsWrongWithAWrappedAgentIsFoundAtOnce wants each problem in its line.
func TestAllThatIsWrongWithAWrappedAgentIsFoundAtOnce(t *testing.T) {
	const yaml = `image: cli:1
access: read-write
concurrency: 2
agent:
  command:
    - cli
    - "{mesage}"
    - "{input.lng}"
    - "{message}"
    - "{output}"
  input: file
  output_file: out.txt
  result:
    format: text
    text: /result
  dir: workspace
  resume: [--resume]
  colour: red
  env:
    GH_TOKEN: "12345abc"
    OTHER: "{message}"
  caller_env: [LD_PRELOAD]
  approvers: [ada]
  protocol: acp
  exit_codes: {"300": Transient}
session: {idle: 5m}
`
	_, err := Load(agentDir(t, yaml, "Dockerfile", "FROM scratch\n", "schema.json", `{"input": {"type": "object", "properties": {"lang": {"type": "string"}}}, "output": {"type": "object"}}`))
	lines := strings.Split("name: cli\nkind: agent\n"+yaml, "\n")
	var got []string
	for _, f := range fault.Public(err).Findings {
		place := f.File
		if f.Line > 0 {
			place = strings.TrimSpace(lines[f.Line-1])
		}
		got = append(got, place+" | "+f.Message+" | "+f.Hint)
	}
	for _, want := range []string{
		"Dockerfile | agent.yaml names an image",
		"concurrency: 2 | concurrency: an agent with access: read-write has one run at a time",
		`- "{mesage}" | agent.command: the placeholder {mesage} is not known | did you mean {message}?`,
		`- "{input.lng}" | agent.command: {input.lng} isn't a field of the input | did you mean {input.lang}?`,
		`- "{message}" | agent.command: a message that begins with "-" is refused here`,
		`- "{output}" | agent.command: {output} is the file of output: file`,
		"input: file | agent.input: file needs the file's name",
		"output_file: out.txt | agent.output_file: it has no meaning without output: file",
		"text: /result | agent.result: text can't be found in a text",
		"dir: workspace | agent.dir: it isn't an absolute path",
		"resume: [--resume] | agent.resume: it has no meaning without mode: interactive",
		"colour: red | the key \"colour\" is not known",
		`GH_TOKEN: "12345abc" | agent.env: "GH_TOKEN" looks like a secret`,
		`OTHER: "{message}" | agent.env: the placeholder {message} is not known here`,
		"caller_env: [LD_PRELOAD] | agent.caller_env: LD_PRELOAD is AOD's to set",
		`approvers: [ada] | agent.approvers: "ada" is not an approver`,
		"approvers: [ada] | agent.approvers: nobody is asked | add approval: ask",
		"protocol: acp | agent.protocol: it has no meaning",
		`exit_codes: {"300": Transient} | `,
		"session: {idle: 5m} | session: it has no meaning without mode: interactive",
	} {
		if !strings.Contains("\n"+strings.Join(got, "\n"), "\n"+want) {
			t.Errorf("it is not said: %s", want)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(got, "\n"))
	}
}

func TestAWrappedAgentMayHaveFilesForItsInputAndItsOutput(t *testing.T) {
	c, err := Load(agentDir(t, "image: x\nagent: {command: [x, \"{file}\", \"{output}\"], "+
		"input: file, input_file: in.txt, output: file, output_file: \"{run}.txt\"}\n"))
	if err != nil {
		t.Fatal(err, fault.Public(err).Findings)
	}
	if w := c.Wrapped; w.InputFile != "in.txt" || w.OutputFile != "{run}.txt" {
		t.Errorf("%+v", w)
	}
}

func TestWhatElseIsWrongWithAWrappedAgent(t *testing.T) {
	for says, yaml := range map[string]string{
		"has to say how its program is called":    "image: x\n",
		"it is missing, and agent.yaml names":     "agent: {command: [x]}\n",
		"the program itself can't be":             "image: x\nagent: {command: [\"{message}\"]}\n",
		"nothing of the input comes":              "image: x\nagent: {command: [x], input: args}\n",
		"is not a file below /workspace":          "image: x\nagent: {command: [x], input: file, input_file: ../x}\n",
		"has no meaning in a file's name":         "image: x\nagent: {command: [x], input: file, input_file: \"{message}\"}\n",
		"json-rpc goes both ways":                 "image: x\nagent: {command: [x], input: json-rpc, protocol: acp}\n",
		"output: json-rpc goes both ways":         "image: x\nagent: {command: [x], output: json-rpc, protocol: acp}\n",
		"output: file needs the file's name":      "image: x\nagent: {command: [x], output: file}\n",
		"output_file: \"/x\" is not a file below": "image: x\nagent: {command: [x], output: file, output_file: /x}\n",
		"output_file: the placeholder {file}":     "image: x\nagent: {command: [x], output: file, output_file: \"{file}\"}\n",
		"what the program speaks":                 "image: x\nagent: {command: [x], mode: interactive}\nsession: {keep_alive: true}\n",
		"needs the name of a method":              "image: x\nagent: {command: [x], input: json-rpc, output: json-rpc, protocol: json-rpc}\n",
		"would be found in every document":        "image: x\nagent: {command: [x], result: {format: json, error: {}}}\n",
		"isn't a JSON pointer":                    "image: x\nagent: {command: [x], result: {format: json, text: result}}\n",
		"has to say which line":                   "image: x\nagent: {command: [x], result: {format: jsonl}}\n",
		"asks models itself":                      "image: x\ntemperature: 1\nagent: {command: [x]}\n",
		"image":                                   "image: \"x y\"\nagent: {command: [x]}\n",
		"remote is for units of the kind":         "image: x\nremote: {url: x}\nagent: {command: [x]}\n",
		"it is the input_file as well":            "image: x\nagent: {command: [x], input: file, input_file: a, output: file, output_file: a}\n",
		"workspace.max":                           "image: x\nworkspace: {max: much}\nagent: {command: [x]}\n",
	} {
		t.Run(says, func(t *testing.T) {
			_, err := Load(agentDir(t, yaml))
			var all strings.Builder
			for _, f := range fault.Public(err).Findings {
				all.WriteString(f.String() + "\n")
			}
			if !strings.Contains(all.String(), says) {
				t.Errorf("it says %s", all.String())
			}
		})
	}
	t.Run("other kinds have none of it", func(t *testing.T) {
		dir := t.TempDir()
		_ = os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte("name: x\nagent: {command: [x]}\n"), 0o600)
		_, err := Load(dir)
		if text := fault.Public(err).Findings; !strings.Contains(text[0].Message+text[len(text)-1].Message, "agent is for units of the kind agent") {
			t.Error(text)
		}
	})
}

func TestAnAnswerThatIsTheTextOfAnObject(t *testing.T) {
	const said = `{"type":"item.completed","text":"{\"n\": 7}"}`
	for schema, want := range map[string]string{
		`{"type": "object", "properties": {"n": {"type": "integer"}}}`:   `{"n":7}`,
		`{"type": "object", "properties": {"text": {"type": "string"}}}`: `{"text":"{\"n\": 7}"}`,
		"": `{"text":"{\"n\": 7}"}`,
	} {
		files := []string{"Dockerfile", "FROM scratch\n"}
		if schema != "" {
			files = append(files, "schema.json", `{"input": {"type": "object"}, "output": `+schema+`}`)
		}
		c, err := Load(agentDir(t, "agent: {command: [cli], result: {format: jsonl, text: /text}}\n", files...))
		if err != nil {
			t.Fatal(err, fault.Public(err).Findings)
		}
		read, err := c.ReadAgentOutput(strings.NewReader(said), 1<<20)
		if got, _ := json.Marshal(read.Document); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", schema, got, err)
		}
	}
}
