package container

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const filterCard = `{
  "name": "worker", "version": "1.0.0", "description": "Counts.", "capabilities": [],
  "inputs": [{"media_type": "text/*", "description": "any"}, {"media_type": "application/json", "description": "any"}],
  "outputs": [{"media_type": "application/json", "description": "any"}],
  "config": {"n": {"type": "integer", "description": "a number", "default": 1}, "model-path": {"type": "string", "description": "a model", "default": ""}},
  "exit_codes": {"3": "no such page"}
}`

// filter is an Agentic Unit: what it prints when it is asked for its card, and what it does else.
type filter struct {
	card  func(out string) int
	does  func(f started) int
	mu    sync.Mutex
	cards int // how often it was asked
}

// started is one start of a filter.
type started struct {
	args           []string
	env            []string
	stdin, out     string // files
	stdout, stderr io.Writer
	dirs           runtime.ContainerSpec
}

func (s started) prints(text string) int {
	must(os.WriteFile(s.out, []byte(text), 0o600))
	return 0
}

func (f *filter) program(_ context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	out := filepath.Join(mounted(spec, "/run/aod"), "stdout")
	if slices.Contains(spec.Cmd, "--describe") {
		f.mu.Lock()
		f.cards++
		f.mu.Unlock()
		return f.card(out)
	}
	s := started{args: spec.Cmd[1:], env: spec.Env, out: out, stdout: stdout, stderr: stderr, dirs: spec}
	if in := spec.Entrypoint[slices.Index(spec.Entrypoint, "-stdin")+1]; in != "/dev/null" {
		s.stdin = filepath.Join(mounted(spec, "/io/input"), path.Base(in))
	}
	return f.does(s)
}

func (f *filter) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cards
}

var unitFiles = map[string]string{"agent.yaml": "name: worker\nkind: au\n", "tools.yaml": "", "schema.json": ""}

// newUnit is a bench whose unit is an Agentic Unit that does something.
func newUnit(t *testing.T, does func(started) int) (*harness, *filter) {
	t.Helper()
	b := newBench(t, unitFiles)
	f := &filter{does: does, card: func(out string) int { return started{out: out}.prints(filterCard) }}
	b.runs(f.program)
	return b, f
}

// given is a run of the unit with a stdin.
func (b *harness) given(stdin, more string) *execution {
	b.t.Helper()
	x := b.executionOf("r1", `{"stdin":"doc"`+more+`}`)
	must(os.WriteFile(filepath.Join(x.run.InputDir(), "doc"), []byte(stdin), 0o600))
	return x
}

// counts prints what the unit got.
func counts(s started) int {
	raw, err := os.ReadFile(s.stdin)
	if err != nil {
		return 99
	}
	text, _ := json.Marshal(map[string]any{"stdin": string(raw), "args": s.args})
	return s.prints(string(text))
}

func TestAUnitGetsItsCall(t *testing.T) {
	t.Parallel()
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	must(os.WriteFile(model, nil, 0o600))
	b, f := newUnit(t, counts)
	x := b.given("a b", `,"prompt":"count","args":["--n","2"]`)
	got := b.carriesOut(x)
	if want := `{"args":["--n","2","--prompt","count"],"stdin":"a b"}`; got.Outcome != api.Success || string(got.Output) != want {
		t.Errorf("%+v %+v\n%s, want\n%s", got, got.Failure, got.Output, want)
	}
	x = b.given("c", "")
	x.run.Extra = Extra{ModelPath: model}
	got = b.carriesOut(x)
	if want := `{"args":["--model-path","/models/tiny.gguf"],"stdin":"c"}`; string(got.Output) != want {
		t.Errorf("%+v\n%s, want\n%s", got.Failure, got.Output, want)
	}
	if f.asked() != 1 {
		t.Errorf("it was asked for its card %d times", f.asked())
	}
}

func TestACallThatTheUnitDoesNotTake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, stdin, more, says string }{
		{"a stdin of another type", "%PDF-1.7\n", "", "application/pdf, which worker doesn't take"},
		{"an argument that it doesn't know", "x", `,"args":["--other","2"]`, "--other"},
		{"a value of another type", "x", `,"args":["--n","two"]`, "n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, _ := newUnit(t, func(started) int { panic("it is started") })
			x := b.given(c.stdin, c.more)
			_, err := x.Attempt(t.Context())
			if !fault.Is(err, fault.Input) || !strings.Contains(said(run.Fault(t.Context(), err)), c.says) {
				t.Errorf("error %v: %s", err, said(run.Fault(t.Context(), err)))
			}
			if got := run.Fault(t.Context(), err); got.Outcome != api.InvalidInput {
				t.Errorf("it ends as %s", got.Outcome)
			}
			b.ends(x)
		})
	}
}

func TestHowAUnitEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		does     func(started) int
		outcome  api.Outcome
		exit     int
		kind     string
		says     string
		category api.Category
	}{
		{"with a document", func(s started) int { return s.prints(" [1] ") }, api.Success, 0, "", "", ""},
		{"with nothing", func(s started) int { return s.prints("") }, api.ContractViolation, 1, "contract_violation", "not one JSON document", api.CategoryAgent},
		{"with a log line before it", func(s started) int { return s.prints("loading\n{}") }, api.ContractViolation, 1, "contract_violation", "not one JSON document", api.CategoryAgent},
		{"with two documents", func(s started) int { return s.prints("{}{}") }, api.ContractViolation, 1, "contract_violation", "not one JSON document", api.CategoryAgent},
		{"with half a document", func(s started) int { return s.prints(`{"a":`) }, api.ContractViolation, 1, "contract_violation", "not one JSON document", api.CategoryAgent},
		{"with a bare string", func(s started) int { return s.prints(`"a"`) }, api.ContractViolation, 1, "contract_violation", "not one JSON document", api.CategoryAgent},
		{"with too much", func(s started) int { return s.prints(`{"a":"` + strings.Repeat("x", au.MaxOutputBytes) + `"}`) }, api.ContractViolation, 1, "contract_violation", "not one JSON document", api.CategoryAgent},
		{"with a failure", func(started) int { return 1 }, api.CapsuleError, 1, string(au.ExitMeaning(1, nil).Class), "exit code 1", api.CategoryAgent},
		{"with a complaint of its input", func(started) int { return 2 }, api.CapsuleError, 2, string(au.ExitInvalidInput), "exit code 2", api.CategoryPermanent},
		{"with a code of its own", func(started) int { return 3 }, api.CapsuleError, 3, string(au.ExitMeaning(3, nil).Class), "no such page (exit code 3)", api.CategoryAgent},
		{"with a stdout that is too large for the disk", func(started) int { return 153 }, api.LimitExceeded, 153, "output_limit", "written 64 MiB, to stdout or to a file; its result may have 10 MiB", api.CategoryAgent},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, _ := newUnit(t, c.does)
			got := b.carriesOut(b.given("x", ""))
			wants(t, got, c.outcome, c.exit, c.kind, c.says)
			if got.Failure != nil && got.Failure.Category != c.category {
				t.Errorf("its category is %s", got.Failure.Category)
			}
		})
	}
}

func TestAUnitsWarningsAreTheRuns(t *testing.T) {
	t.Parallel()
	b, _ := newUnit(t, func(s started) int { return s.prints(`{"warnings":["page 3 is blank",7,"and 4"]}`) })
	x := b.given("x", "")
	b.carriesOut(x)
	if got := strings.Join(x.run.Record.Warnings, "; "); got != "page 3 is blank; and 4" {
		t.Errorf("warnings %q", got)
	}
}

func TestAStdoutThatIsNoFileIsNotRead(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	must(os.WriteFile(secret, []byte(`{"of":"the host"}`), 0o600))
	b, _ := newUnit(t, func(s started) int {
		must(os.Remove(s.out))
		must(os.Symlink(secret, s.out))
		return 0
	})
	x := b.given("x", "")
	if got, err := x.Attempt(t.Context()); err == nil {
		t.Errorf("%+v", got)
	}
	b.ends(x)
}

func TestAStdinThatIsTooLargeStartsNothing(t *testing.T) {
	t.Parallel()
	b, _ := newUnit(t, counts)
	x := b.given("12345678901", "")
	ready := run.Input{Payload: x.run.Input.Payload, Files: []run.PlacedFile{{Source: filepath.Join(x.run.InputDir(), "doc")}}}
	b.kind.machine.opts.Units = map[string]Extra{"worker": {StdinBytes: 10}}
	for name, c := range map[string]struct {
		extra any
		kind  fault.Kind
		fits  bool
	}{
		"for the operator":         {nil, fault.Input, false},
		"for the request":          {Extra{StdinBytes: 5}, fault.Input, false},
		"but not for the request":  {Extra{StdinBytes: 11}, 0, true},
		"but not for units at all": {Extra{}, 0, true},
	} {
		err := b.kind.Check(run.Request{Unit: b.unit, Extra: c.extra}, ready)
		if (err == nil) != c.fits || err != nil && (!fault.Is(err, c.kind) || !strings.Contains(err.Error(), "11 bytes")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ready.Files[0].Source += "-gone"
	if err := b.kind.Check(run.Request{Unit: b.unit}, ready); !fault.Is(err, fault.Input) {
		t.Errorf("one that isn't there: %v", err)
	}
}
