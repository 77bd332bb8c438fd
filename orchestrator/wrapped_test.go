package orchestrator

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// newAgentProbe is a probe whose unit is a wrapped agent, in an image that is neither built nor
// pulled.
func newAgentProbe(t *testing.T) *probe {
	t.Helper()
	return agentProbeOf(newProbe(t, ""))
}

func newScriptedAgent(t *testing.T) *probe {
	t.Helper()
	return agentProbeOf(newScripted(t, "", nil))
}

func agentProbeOf(p *probe) *probe {
	t := p.t
	t.Helper()
	p.dir = t.TempDir()
	write(t, filepath.Join(p.dir, ".dockerignore"), "agent.yaml\nschema.json\n") // one image for all
	return p
}

// ask gives the agent of an agent.yaml an input.
func (p *probe) ask(yaml string, input any, files ...string) (api.Record, error) {
	p.t.Helper()
	write(p.t, filepath.Join(p.dir, "agent.yaml"), "name: probe\nkind: agent\nimage: "+dockertest.Image+"\n"+yaml)
	c, err := capsule.Load(p.dir)
	if err != nil {
		p.t.Fatal(err, fault.Public(err).Findings)
	}
	payload, err := contract.Decode(encoded(input), contract.DefaultMaxBytes)
	if err != nil {
		p.t.Fatal(err)
	}
	req := Request{Request: run.Request{Unit: unit.Of(c), Input: payload}, OutDir: p.out}
	for _, f := range files {
		req.Files = append(req.Files, run.InputFile{Field: "files", Path: f})
	}
	record, err := p.submit(trusted.Context(p.t), req)
	if err == nil {
		keepsSchema(p.t, record)
	}
	return record, err
}

// shell is a command whose program is a script; what follows are its arguments.
func shell(script string, args ...string) string {
	raw, _ := json.Marshal(append([]string{"bash", "-c", script, "agent"}, args...))
	return string(raw)
}

func message(text string) map[string]any { return map[string]any{"message": text} }

// TestAgentPatterns runs each way of input with each way of output in each format.
func TestAgentPatterns(t *testing.T) {
	t.Parallel()
	sandboxed, scripted := newAgentProbe(t), newScriptedAgent(t)
	inputs := map[string]struct{ yaml, script, arg string }{
		"stdin": {"input: stdin", `read -r m`, ""},
		"file":  {"input: file\n  input_file: in/{run}.txt", `m=$(cat "$1")`, "{file}"},
		"args":  {"input: args", `m=$1; [ "$(wc -c)" = 0 ]`, "{message}"},
	}
	outputs := map[string]struct{ yaml, script, arg string }{
		"stdout": {"output: stdout", ``, "none"},
		"file":   {"output: file\n  output_file: out/{run}.txt", `echo noise; exec > "$2"`, "{output}"},
	}
	formats := map[string]struct{ yaml, script string }{
		"text":  {"", `echo "<$m>"`},
		"json":  {"result: {format: json, text: /said, session: /id, cost_usd: /cost, usage: /usage}", `echo "{\"said\": \"<$m>\", \"id\": \"s1\", \"cost\": 0.25, \"usage\": {\"n\": 1}}"`},
		"jsonl": {"result: {format: jsonl, text: {at: /said, when: {/type: end}}, session: /id, cost_usd: /cost, usage: /usage}", `echo "{\"id\": \"s1\", \"usage\": {\"n\": 1}}"; echo "{\"type\": \"end\", \"said\": \"<$m>\", \"cost\": 0.25}"`},
	}
	for in, input := range inputs {
		for out, output := range outputs {
			for as, format := range formats {
				t.Run(in+" to "+out+" as "+as, func(t *testing.T) {
					script := strings.Join([]string{input.script, output.script, format.script}, "\n")
					yaml := fmt.Sprintf("agent:\n  command: %s\n  %s\n  %s\n  %s\n", shell(script, "--", input.arg, output.arg), input.yaml, output.yaml, format.yaml)
					yaml = strings.Replace(yaml, `"--",`, ``, 1)
					p := scripted
					if as == "json" && (in == "file" && out == "file" || in == "stdin" && out == "stdout") { // two of them show that a sandbox gives what the scripts get
						p = sandboxed
					}
					record, err := p.ask(yaml, message("hello {run} $HOME"))
					if err != nil {
						t.Fatal(err)
					}
					if want := `{"text":"<hello {run} $HOME>"}`; string(record.Output) != want {
						t.Errorf("output %s\n%s", record.Output, show(record))
					}
					if as != "text" && (record.AgentSession != "s1" || record.CostUSD != "0.25" || string(record.AgentUsage) != `{"n":1}`) {
						t.Errorf("%s", show(record))
					}
				})
			}
		}
	}
}

func TestAnAgentFromInside(t *testing.T) {
	t.Parallel()
	p := newAgentProbe(t)
	write(t, filepath.Join(p.data, "notes.txt"), "note")
	script := `
echo "user: $(whoami) in $(id -gn) $(getent passwd agent | cut -d: -f6)"
echo "home: $HOME $(touch "$HOME/x" && echo writable)"
printf '#!/bin/sh\necho runs' > "$TMPDIR/x"; chmod +x "$TMPDIR/x"; echo "tmp: $("$TMPDIR/x")"
echo "dir: $(pwd) term: $TERM colour: $NO_COLOR key: $KEY git: $GIT_CONFIG_COUNT $GIT_CONFIG_VALUE_0"
echo "files: $(cat "$@")"
echo "small: $(df -k /tmp | awk 'END {print $2}')"
echo made > /io/output/made.txt`
	record, err := p.ask("agent:\n  command: "+shell(script, "{files}")+"\n  dir: /workspace/project\n  env: {KEY: \"{placeholder}\"}\n",
		message("x"), filepath.Join(p.data, "notes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"user: agent in agent /workspace", "home: /workspace writable", "tmp: runs", "dir: /workspace/project term: dumb colour: 1 key: aod git: 3 *",
		"files: note", "small: 262144",
	} {
		if !strings.Contains(string(record.Output), want) {
			t.Errorf("%q is not in %s", want, show(record))
		}
	}
	if len(record.Files) != 1 || record.Files[0].Name != "made.txt" {
		t.Errorf("files %v", record.Files)
	}
}

func TestAgentsThatFail(t *testing.T) {
	t.Parallel()
	sandboxed, scripted := newAgentProbe(t), newScriptedAgent(t)
	for name, c := range map[string]struct {
		yaml     string
		outcome  api.Outcome
		category api.Category
		says     string
		engine   bool // it takes a real sandbox
	}{
		"by an exit code":               {"command: " + shell("exit 7"), api.CapsuleError, api.CategoryAgent, "exit code 7", false},
		"by one with a meaning":         {"command: " + shell("exit 75") + "\n  exit_codes: {\"75\": Transient}", api.CapsuleError, api.CategoryTransient, "exit code 75", false},
		"by their own word":             {"command: " + shell(`echo '{"bad": true, "why": "no credit"}'`) + "\n  result: {format: json, error: {at: /why, when: {/bad: true}}}", api.CapsuleError, api.CategoryAgent, "no credit", false},
		"without a document":            {"command: " + shell("echo hello") + "\n  result: {format: json}", api.ContractViolation, api.CategoryAgent, "not one JSON document", false},
		"without their file":            {"command: " + shell("true") + "\n  output: file\n  output_file: out.txt", api.ContractViolation, api.CategoryAgent, "was not written", false},
		"with a link for their file":    {"command: " + shell("ln -s /etc/passwd /workspace/out.txt") + "\n  output: file\n  output_file: out.txt", api.ContractViolation, api.CategoryAgent, "link", true},
		"with a link above their file":  {"command: " + shell("rm -r /workspace/out && ln -s /etc /workspace/out") + "\n  output: file\n  output_file: out/passwd", api.ContractViolation, api.CategoryAgent, "link", false},
		"with a file above their file":  {"command: " + shell("rm -r /workspace/out && touch /workspace/out") + "\n  output: file\n  output_file: out/passwd", api.ContractViolation, api.CategoryAgent, "agent.output_file", false},
		"with a pipe for their file":    {"command: " + shell("mkfifo /workspace/out.txt") + "\n  output: file\n  output_file: out.txt", api.ContractViolation, api.CategoryAgent, "agent.output_file", false},
		"with too much":                 {"command: " + shell("head -c 2M /dev/zero | tr '\\0' x"), api.ContractViolation, api.CategoryAgent, "more than 1048576 bytes", false},
		"before they began":             {"command: [nothing-of-the-kind]", api.StartFailed, api.CategoryPermanent, ": nothing-of-the-kind: not found in the PATH /", true},
		"because they wait for answers": {"command: " + shell("printf 'Go on? [y/N] '; sleep 1000") + "\nlimits: {timeout: 15s}", api.TimedOut, api.CategoryAgent, "seems to wait for an answer", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := scripted
			if c.engine {
				p = sandboxed
			}
			record, err := p.ask("agent:\n  "+c.yaml+"\n", message("x"))
			if err == nil && record.Outcome == api.TimedOut && !strings.Contains(record.Error.Hint, c.says) {
				// A busy machine may take longer to start it.
				record, err = p.ask("agent:\n  "+strings.Replace(c.yaml, "15s", "2m", 1)+"\n", message("x"))
			}
			if err != nil {
				t.Fatal(err)
			}
			if record.Outcome != c.outcome || record.Error == nil || record.Error.Category != c.category || !strings.Contains(record.Error.Message+record.Error.Hint, c.says) {
				t.Errorf("want %s, %s, %q: %s", c.outcome, c.category, c.says, show(record))
			}
		})
	}
	t.Run("refused before anything starts", func(t *testing.T) {
		for name, m := range map[string]string{"an option": "-rf /", "too long": strings.Repeat("x", 100<<10+1)} {
			if record, err := scripted.ask("agent: {command: [echo, \"{message}\"], input: args}\n", message(m)); !fault.Is(err, fault.Input) {
				t.Errorf("%s: %v %s", name, err, show(record))
			}
		}
	})
}

func TestAnAgentWithAContract(t *testing.T) {
	t.Parallel()
	p := newScriptedAgent(t)
	write(t, filepath.Join(p.dir, "schema.json"), `{
	  "input": {"type": "object", "properties": {"n": {"type": "integer"}, "lang": {"type": "string"}}, "required": ["n"]},
	  "output": {"type": "object", "properties": {"twice": {"type": "integer"}}, "required": ["twice"]}
	}`)
	const yaml = "agent:\n  command: %s\n  input: args\n  result: {format: json}\n"
	record, err := p.ask(fmt.Sprintf(yaml, shell(`echo "{\"twice\": $(($1 * 2))}"`, "{input.n}", "{input.lang}")), map[string]any{"n": 21})
	if err != nil || string(record.Output) != `{"twice":42}` {
		t.Errorf("%v %s", err, show(record))
	}
	record, err = p.ask(fmt.Sprintf(yaml, shell(`echo "{\"twice\": \"$1\"}"`, "{input.n}")), map[string]any{"n": 21})
	if err != nil || record.Outcome != api.ContractViolation {
		t.Errorf("%v %s", err, show(record))
	}
}

// newEditorFixture has the agent "editor" beside "worker", whose program does what its orders are.
func newEditorFixture(t *testing.T, access string, change ...func(*settings)) *fixture {
	return newCallFixture(t, append([]func(*settings){func(o *settings) {
		dir := filepath.Join(o.Sources[0], "editor")
		write(t, filepath.Join(dir, "Dockerfile"), "FROM "+dockertest.Image+"\n")
		write(t, filepath.Join(dir, "schema.json"), workerFiles["schema.json"])
		write(t, filepath.Join(dir, "agent.yaml"), "name: editor\nkind: agent\naccess: "+access+"\nagent: {command: [edit]}\nlimits: {memory: 64MiB}\n")
		teller := filepath.Join(o.Sources[0], "teller")
		write(t, filepath.Join(teller, "Dockerfile"), "FROM "+dockertest.Image+"\n")
		write(t, filepath.Join(teller, "agent.yaml"), "name: teller\nkind: agent\nwarm: 1\nlimits: {memory: 64MiB}\nagent:\n  command: [tell, \"{run}\", \"{files}\"]\n  env: {RUN: \"{run}\"}\n")
		flowOf(t, o, "f", "", anyContract, "start: a\nnodes:\n  a: {run: teller, with: {message: \"${{ input.m }}\"}, set: {said: \"${{ out.text }}\"}, action: done}\noutput: {said: \"${{ state.said }}\"}\n")
		o.Units["caller"] = units.Settings{Given: unit.Given{MayCall: []string{"editor"}}}
		o.Concurrency = 20
	}}, change...)...)
}

// tellerProgram is that of "teller": it prints what it was given.
func tellerProgram(spec runtime.ContainerSpec, dir map[string]string) int {
	at := slices.Index(spec.Entrypoint, "-stdin")
	stdin, err := os.ReadFile(filepath.Join(dir["/run/aod"], path.Base(spec.Entrypoint[at+1])))
	if err != nil {
		return 98
	}
	env := slices.DeleteFunc(slices.Clone(spec.Env), func(e string) bool { return !strings.HasPrefix(e, "RUN=") })
	_ = os.WriteFile(filepath.Join(dir["/run/aod"], "stdout"), fmt.Appendf(nil, "%s; %s; %s; %s\n", stdin, spec.Cmd, env, spec.WorkingDir), 0o600)
	return 0
}

func TestAWaitingAgentGetsItsMessage(t *testing.T) {
	t.Parallel()
	w := newEditorFixture(t, "read-only", func(o *settings) { o.Containers.Pool.Size = 2 })
	for _, text := range []string{"one", "two"} {
		w.awaitPoolUnit("teller", "one waits", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 })
		record := w.await(w.submitTo("teller", message(text)))
		w.wantWaited(record)
		if want := fmt.Sprintf(`{"text":"%s; [tell %s]; [RUN=%[2]s]; /workspace"}`, text, record.ID); string(record.Output) != want {
			t.Errorf("%s, want %s", record.Output, want)
		}
	}
}

func TestAnAgentIsANodeOfAFlow(t *testing.T) {
	t.Parallel()
	w := newEditorFixture(t, "read-only")
	record := w.await(w.submitTo("f", map[string]any{"m": "hello"}))
	if record.Outcome != api.Success || !strings.Contains(string(record.Output), "hello; [tell ") {
		t.Errorf("%s", show(record))
	}
}

func TestAgentsThatShareSomethingFollowOneAnother(t *testing.T) {
	t.Parallel()
	w := newEditorFixture(t, "read-write", func(o *settings) { o.Units["editor"] = units.Settings{Concurrency: 5} })
	var ids []string
	for n := range 11 { // one runs, ten wait
		ids = append(ids, w.submitTo("editor", orders{Mark: "edit", Until: fmt.Sprint("go", n)}))
	}
	w.until(ids[0], running)
	if _, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "editor", Input: encoded(orders{})}); !fault.Is(err, fault.Busy) {
		t.Errorf("the twelfth: %v", err)
	}
	info, err := w.service.Units.Show(trusted.Context(t), "editor")
	if err != nil || info.Access != "read-write" || info.Concurrency != 1 {
		t.Errorf("%v %+v", err, info)
	}
	for n, id := range ids {
		w.until(id, func(r api.Record) bool { return running(r) && w.starts("edit") > n })
		if begun := w.starts("edit"); begun != n+1 {
			t.Errorf("%d have begun, and %d have ended", begun, n)
		}
		w.open(fmt.Sprint("go", n))
		if record := w.await(id); record.Outcome != api.Success {
			t.Errorf("%s", show(record))
		}
	}
}

func TestTheOperatorsAccessCountsMore(t *testing.T) {
	t.Parallel()
	w := newEditorFixture(t, "read-write", func(o *settings) { o.Units["editor"] = units.Settings{Given: unit.Given{ReadWrite: new(false)}} })
	info, err := w.service.Units.Show(trusted.Context(t), "editor")
	if err != nil || info.Access != "read-only" || info.Concurrency != 10 {
		t.Errorf("%v %+v", err, info)
	}
	few := newEditorFixture(t, "read-only", func(o *settings) { o.Concurrency = 3 })
	if info, err := few.service.Units.Show(trusted.Context(t), "editor"); err != nil || info.Concurrency != 3 {
		t.Errorf("on a server with three slots: %v %+v", err, info)
	}
	if info, err := few.service.Units.Show(trusted.Context(t), "worker"); err != nil || info.Concurrency != 0 {
		t.Errorf("of a unit that bounds nothing: %v %+v", err, info)
	}
	one, two := w.submitTo("editor", orders{Mark: "edit", Until: "go"}), w.submitTo("editor", orders{Mark: "edit", Until: "go"})
	w.until(one, running)
	w.until(two, running)
	w.open("go")
	w.await(one)
	w.await(two)
}

func TestTheOperatorSaysHowLongRunsOfAnAgentWait(t *testing.T) {
	t.Parallel()
	w := newEditorFixture(t, "read-write")
	first := w.submitTo("editor", orders{Mark: "edit", Until: "go"})
	w.until(first, running)
	w.stop()
	w.opts.Units["editor"] = units.Settings{QueueWait: 100 * time.Millisecond} // only now: the first one needs its time for a free slot, too
	w.start()
	late := w.await(w.submitTo("editor", orders{}))
	if late.Outcome != api.SystemError || late.Error.Kind != api.KindQueueTimeout || late.Error.Category != api.CategoryTransient {
		t.Errorf("%s", show(late))
	}
	w.open("go")
	if record := w.await(first); record.Outcome != api.Success {
		t.Errorf("%s", show(record))
	}
}

func TestReadOnlyAgentsRunTenAtOnce(t *testing.T) {
	t.Parallel()
	w := newEditorFixture(t, "read-only")
	var ids []string
	for range 20 {
		ids = append(ids, w.submitTo("editor", orders{Mark: "read", Until: "go"}))
	}
	within(t, func() bool { return w.starts("read") == 10 }, func() string { return fmt.Sprint(w.starts("read")) })
	if _, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "editor", Input: encoded(orders{})}); !fault.Is(err, fault.Busy) {
		t.Errorf("the twenty-first: %v", err)
	}
	w.open("go")
	for _, id := range ids {
		w.await(id)
	}
}

func TestACapsuleCallsAnAgent(t *testing.T) {
	t.Parallel()
	w := newEditorFixture(t, "read-only")
	record := w.await(w.submitScript(script{Mark: "a", Calls: []script{{Target: "editor"}}}))
	if record.Outcome != api.Success || len(record.Calls) != 1 || record.Calls[0].Outcome != api.Success || !strings.Contains(strings.Join(w.answers["a"], ""), `"text"`) {
		t.Errorf("answers %q of %s", w.answers["a"], show(record))
	}
}

func TestAnAgentSurvivesItsServer(t *testing.T) {
	t.Parallel()
	w := newEditorFixture(t, "read-write")
	first, second := w.submitTo("editor", orders{Mark: "edit", Until: "go"}), w.submitTo("editor", orders{Mark: "edit"})
	w.until(first, running)
	w.stop()
	w.start()
	w.open("go")
	for _, id := range []string{first, second} {
		if record := w.await(id); record.Outcome != api.Success || string(record.Output) != `{"text":""}` || record.Retries != 0 {
			t.Errorf("%s", show(record))
		}
	}
	if n := w.starts("edit"); n != 2 {
		t.Errorf("its program was started %d times for two runs", n)
	}
}

// TestAnAgentsProgramIsLookedUpInItsImage needs a sandbox: it is its init that looks.
func TestAnAgentsProgramIsLookedUpInItsImage(t *testing.T) {
	t.Parallel()
	p := newAgentProbe(t)
	for yaml, says := range map[string]string{
		"command: [bash]":                            "",
		"command: [bash], env: {PATH: /opt:/srv}":    "bash: not found in the PATH /opt:/srv",
		"command: [/etc/passwd], env: {PATH: /none}": "/etc/passwd: permission denied",
	} {
		write(t, filepath.Join(p.dir, "agent.yaml"), "name: probe\nkind: agent\nimage: "+dockertest.Image+"\nagent: {"+yaml+"}\n")
		c, err := capsule.Load(p.dir)
		if err != nil {
			t.Fatal(err)
		}
		u := unit.Of(c)
		err = p.containers.FindProgram(trusted.Context(t), u, nil)
		if says == "" && err != nil || says != "" && (!fault.Is(err, fault.Capsule) || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v", yaml, err)
		}
		if known := p.containers.Program(u); known == nil || known.Found != (says == "") {
			t.Errorf("%s: it is told as %+v", yaml, known)
		}
	}
}
