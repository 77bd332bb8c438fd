package orchestrator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// auFiles are a unit that does what its prompt says, a line of bash.
var auFiles = map[string]string{
	"Dockerfile": "FROM " + dockertest.Image + "\nCOPY unit /unit\nENTRYPOINT [\"bash\", \"/unit\"]\n",
	"agent.yaml": "name: au-probe\nkind: au\nlimits: {memory: 64MiB}\n",
	"unit": `if [ "$1" = --describe ]; then cat <<- 'CARD'
	{"name": "au-probe", "version": "1.0.0", "description": "does what it is told", "capabilities": ["any"],
	 "inputs": [{"media_type": "text/*", "description": "any"}, {"media_type": "application/x-probe", "description": "any"}],
	 "outputs": [{"media_type": "application/json", "description": "any"}],
	 "config": {"n": {"type": "integer", "description": "a number", "default": 1}, "model-path": {"type": "string", "description": "a model", "default": ""}},
	 "exit_codes": {"3": "no such page"}}
	CARD
	exit; fi
	while [ "$1" != --prompt ]; do shift; done
	eval "$2"
`,
}

type auProbe struct{ *probe }

func newAUProbe(t *testing.T) auProbe {
	t.Helper()
	return auProbeOf(newProbe(t, ""))
}

func newScriptedAU(t *testing.T) auProbe {
	t.Helper()
	return auProbeOf(newScripted(t, "", map[string]string{"/unit": auFiles["unit"]}, "bash", "/unit"))
}

func auProbeOf(p *probe) auProbe {
	t := p.t
	t.Helper()
	p.dir = t.TempDir()
	for name, content := range auFiles {
		write(t, filepath.Join(p.dir, name), content)
	}
	return auProbe{p}
}

// call asks for a run with a prompt and something on stdin.
func (p auProbe) call(prompt, stdin string, args ...any) Request {
	p.t.Helper()
	c, err := capsule.Load(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	input, err := contract.NewPayload(map[string]any{"prompt": prompt, "args": append([]any{}, args...)})
	if err != nil {
		p.t.Fatal(err)
	}
	req := Request{Request: run.Request{Unit: unit.Of(c), Input: input, Timeout: 5 * time.Minute}}
	if stdin != "" {
		file := filepath.Join(p.t.TempDir(), "stdin")
		write(p.t, file, stdin)
		req.Files = []run.InputFile{{Field: "stdin", Path: file}}
	}
	return req
}

func TestHowAUnitMayEnd(t *testing.T) {
	t.Parallel()
	sandboxed, scripted := newAUProbe(t), newScriptedAU(t)
	for _, c := range []struct {
		name, prompt string
		outcome      api.Outcome
		exit         int
		kind, says   string
		engine       bool // it takes a real sandbox
	}{
		{"a result", `echo '{"a": 1}'`, api.Success, 0, "", "", true},
		{"a list", `echo '[1, 2]'`, api.Success, 0, "", "", false},
		{"its general error", `echo no >&2; exit 1`, api.CapsuleError, 1, "general_error", "general error (exit code 1)", false},
		{"invalid input", `exit 2`, api.CapsuleError, 2, "invalid_input", "invalid input", false},
		{"an error of its own", `exit 3`, api.CapsuleError, 3, "domain_error", "no such page (exit code 3)", false},
		{"another", `exit 77`, api.CapsuleError, 77, "domain_error", "domain error 77", false},
		{"a crash", `kill -SEGV $$`, api.CapsuleError, 139, "signal", "SIGSEGV", true},
		{"silence", `true`, api.ContractViolation, 1, "contract_violation", "empty", false},
		{"text before", `echo hello; echo '{}'`, api.ContractViolation, 1, "contract_violation", "text_before", false},
		{"text after", `echo '{} done'`, api.ContractViolation, 1, "contract_violation", "text_after", false},
		{"two documents", `echo '{}{}'`, api.ContractViolation, 1, "contract_violation", "two_documents", false},
		{"invalid UTF-8", `printf '{"a": "\xff"}'`, api.ContractViolation, 1, "contract_violation", "not_utf8", false},
		{"half a document", `printf '{"a":'`, api.ContractViolation, 1, "contract_violation", "truncated", false},
		{"a bare number", `echo 7`, api.ContractViolation, 1, "contract_violation", "not_structured", false},
		{"11 MB", `printf '{"a":"'; head -c 11M /dev/zero | tr '\0' x; printf '"}'`, api.ContractViolation, 1, "contract_violation", "too_large", false},
		{"no end of it", `yes`, api.LimitExceeded, 153, "output_limit", "64 MiB", true},
		{"too much memory", `x=$(head -c 200M /dev/zero | tr '\0' x)`, api.OutOfMemory, 137, "memory_limit", "64 MiB", true},
		{"a socket for stdout", `rm -f /run/aod/stdout; echo '{}'`, api.Success, 0, "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := scripted
			if c.engine {
				p = sandboxed
			}
			record, err := p.submit(trusted.Context(t), p.call(c.prompt, ""))
			if err != nil {
				t.Fatal(err)
			}
			keepsSchema(t, record)
			if record.Outcome != c.outcome || record.ExitCode == nil || *record.ExitCode != c.exit {
				t.Fatalf("want %s, exit %d:\n%s", c.outcome, c.exit, show(record))
			}
			if c.outcome != api.Success && (record.Error.Kind != c.kind || !strings.Contains(record.Error.Type+" "+record.Error.Message, c.says)) {
				t.Errorf("want %s, %q:\n%+v", c.kind, c.says, record.Error)
			}
		})
	}
	t.Run("a hang", func(t *testing.T) {
		req := sandboxed.call(`sleep 100`, "")
		req.Timeout = 300 * time.Millisecond
		if record, err := sandboxed.submit(trusted.Context(t), req); err != nil || record.Outcome != api.TimedOut {
			t.Errorf("%v\n%s", err, show(record))
		}
	})
}

func TestWhatAUnitGets(t *testing.T) {
	t.Parallel()
	p, scripted := newAUProbe(t), newScriptedAU(t)
	model := filepath.Join(t.TempDir(), "model.gguf")
	write(t, model, "weights")
	if err := os.Chmod(model, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Run("its stdin, its arguments and its model", func(t *testing.T) {
		if p.remote() {
			t.Skip("a model can't be mounted on an engine elsewhere")
		}
		req := p.call(`read line; echo "{\"line\": \"$line\", \"model\": \"$(cat $MODEL_PATH)\", \"ours\": \"$(touch $MODEL_PATH 2>&1 | grep -c Read-only)\"}"`, "hello\n", "--n", "7")
		req.Extra = container.Extra{ModelPath: model}
		record, err := p.submit(trusted.Context(t), req)
		if err != nil || string(record.Output) != `{"line": "hello", "model": "weights", "ours": "1"}` {
			t.Errorf("%v\n%s", err, show(record))
		}
	})
	t.Run("bytes as they are", func(t *testing.T) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		record, err := scripted.submit(trusted.Context(t), scripted.call(`echo "{\"sum\": \"$(sha256sum | cut -c1-8)\"}"`, string(all)))
		if err != nil || string(record.Output) != `{"sum": "40aff2e9"}` {
			t.Errorf("%v\n%s", err, show(record))
		}
	})
	t.Run("nothing that it could write to but its tmpfs", func(t *testing.T) {
		record, err := p.submit(trusted.Context(t), p.call(`found=$(for d in / /io /io/input /etc /run/aod /workspace /tmp /dev/shm; do touch $d/x 2> /dev/null && printf '%s ' $d; done)
echo "{\"writable\": \"$found\", \"home\": \"$HOME\", \"net\": \"$(ls /sys/class/net | xargs)\", \"env\": \"$(env | grep -c AOD_TEST)\"}"`, ""))
		if want := `{"writable": "/tmp /dev/shm ", "home": "/tmp", "net": "lo", "env": "0"}`; err != nil || string(record.Output) != want {
			t.Errorf("%v\n%s", err, show(record))
		}
	})
	t.Run("its warnings are shown", func(t *testing.T) {
		record, err := scripted.submit(trusted.Context(t), scripted.call(`echo '{"warnings": ["half of it"]}'`, ""))
		if err != nil || len(record.Warnings) != 1 || record.Warnings[0] != "half of it" {
			t.Errorf("%v\n%s", err, show(record))
		}
	})
}

func TestWhatAUnitIsSparedOf(t *testing.T) {
	t.Parallel()
	p := newScriptedAU(t)
	large := p.call("true", "")
	large.Extra = container.Extra{StdinBytes: 10}
	big := filepath.Join(t.TempDir(), "big")
	if err := errors.Join(os.WriteFile(big, nil, 0o600), os.Truncate(big, 11)); err != nil {
		t.Fatal(err)
	}
	large.Files = []run.InputFile{{Field: "stdin", Path: big}}
	for name, c := range map[string]struct {
		req  Request
		says string
	}{
		"arguments of the wrong type":     {p.call("true", "", "--n", "seven"), "/args"},
		"arguments that it doesn't know":  {p.call("true", "", "--m", "7"), "no flag"},
		"what its card doesn't take":      {p.call("true", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), "application/pdf, which au-probe doesn't take"},
		"more than it takes":              {large, "11 bytes, the limit is 10"},
		"its own flag for the model card": {p.call("true", "", "--describe"), "describe"},
	} {
		t.Run(name, func(t *testing.T) {
			record, err := p.submit(trusted.Context(t), c.req)
			told := said(record)
			if fault.Is(err, fault.Input) { // before there was a run
				told = err.Error()
			} else if err != nil || record.Outcome != api.InvalidInput || record.Error.Category != api.CategoryPermanent {
				t.Errorf("%v\n%s", err, show(record))
			}
			if !strings.Contains(told, c.says) {
				t.Errorf("not told %q, but: %s", c.says, told)
			}
			if record.StartedAt != nil {
				t.Error("it was started")
			}
		})
	}
}

func TestAModelCardIsAskedForOnce(t *testing.T) {
	t.Parallel()
	p := newScriptedAU(t)
	c, err := capsule.Load(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	card, err := p.containers.Describe(trusted.Context(t), unit.Of(c), nil)
	if err != nil || card.Name != "au-probe" {
		t.Fatalf("%+v, %v", card, err)
	}
	cards, err := filepath.Glob(filepath.Join(p.data, "cards", "*"))
	if err != nil || len(cards) != 1 {
		t.Fatalf("remembered are %v, %v", cards, err)
	}
	raw, err := os.ReadFile(cards[0])
	if err != nil {
		t.Fatal(err)
	}
	write(t, cards[0], strings.Replace(string(raw), card.Description, "as it is remembered", 1))
	if card, err = p.containers.Describe(trusted.Context(t), unit.Of(c), nil); err != nil || card.Description != "as it is remembered" {
		t.Errorf("it was asked again: %+v, %v", card, err)
	}
}
