package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/au/check"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/runtime/initreport"
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
	context.Context
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

func (f *filter) program(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	out := filepath.Join(mounted(spec, "/run/aod"), "stdout")
	if slices.Contains(spec.Cmd, "--describe") {
		f.mu.Lock()
		f.cards++
		f.mu.Unlock()
		return f.card(out)
	}
	s := started{Context: ctx, args: spec.Cmd[1:], env: spec.Env, out: out, stdout: stdout, stderr: stderr, dirs: spec}
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
func newUnit(t *testing.T, does func(started) int) (*bench, *filter) {
	t.Helper()
	b := newBench(t, unitFiles)
	f := &filter{does: does, card: func(out string) int { return started{out: out}.prints(filterCard) }}
	b.runs(f.program)
	return b, f
}

// given is a run of the unit with a stdin.
func (b *bench) given(stdin, more string) *execution {
	b.t.Helper()
	x := b.executionOf("r1", `{"stdin":"doc"`+more+`}`)
	must(os.WriteFile(filepath.Join(x.InputDir(), "doc"), []byte(stdin), 0o600))
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
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	must(os.WriteFile(model, nil, 0o600))
	b, f := newUnit(t, counts)
	x := b.given("a b", `,"prompt":"count","args":["--n","2"]`)
	got := b.carriesOut(x)
	if want := `{"args":["--n","2","--prompt","count"],"stdin":"a b"}`; got.Outcome != api.Success || string(got.Output) != want {
		t.Errorf("%+v %+v\n%s, want\n%s", got, got.Failure, got.Output, want)
	}
	x = b.given("c", "")
	x.Extra = Extra{ModelPath: model}
	got = b.carriesOut(x)
	if want := `{"args":["--model-path","/models/tiny.gguf"],"stdin":"c"}`; string(got.Output) != want {
		t.Errorf("%+v\n%s, want\n%s", got.Failure, got.Output, want)
	}
	if f.asked() != 1 {
		t.Errorf("it was asked for its card %d times", f.asked())
	}
}

func TestACallThatTheUnitDoesNotTake(t *testing.T) {
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
	b, _ := newUnit(t, func(s started) int { return s.prints(`{"warnings":["page 3 is blank",7,"and 4"]}`) })
	x := b.given("x", "")
	b.carriesOut(x)
	if got := strings.Join(x.Record.Warnings, "; "); got != "page 3 is blank; and 4" {
		t.Errorf("warnings %q", got)
	}
}

func TestAStdoutThatIsNoFileIsNotRead(t *testing.T) {
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

func TestAUnitWithoutACard(t *testing.T) {
	for _, c := range []struct {
		name string
		card func(out string) int
		says string
	}{
		{"it exits with another code", func(string) int { return 2 }, "it exited with 2"},
		{"it prints nothing", func(string) int { return 0 }, "gives no model card"},
		{"it prints no JSON", func(out string) int { return started{out: out}.prints("usage: worker") }, "gives no model card"},
		{"it prints another document", func(out string) int { return started{out: out}.prints(`{"name":"worker"}`) }, "gives no model card"},
		{"it prints too much", func(out string) int {
			return started{out: out}.prints(`{"a":"` + strings.Repeat("x", au.MaxCardBytes) + `"}`)
		}, "gives no model card"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, f := newUnit(t, nil)
			f.card = c.card
			x := b.given("x", "")
			_, err := x.Attempt(t.Context())
			if !fault.Is(err, fault.Capsule) || !strings.Contains(err.Error(), c.says) || fault.Public(err).Hint == "" && len(fault.Public(err).Findings) == 0 {
				t.Errorf("error %v", err)
			}
			if entries, _ := os.ReadDir(b.home.Cards); len(entries) > 0 {
				t.Errorf("remembered are %v", entries)
			}
			b.ends(x)
			if _, err := b.kind.Card(t.Context(), b.unit); !fault.Is(err, fault.Capsule) {
				t.Errorf("asked beside a run: %v", err)
			}
			b.nothingLeft()
		})
	}
	if _, err := describedBy("worker", Observed{Run: check.Run{TimedOut: true}}); !fault.Is(err, fault.Capsule) || !strings.Contains(err.Error(), "more than 10s") {
		t.Errorf("one that takes too long: %v", err)
	}
}

func TestACardIsRememberedForItsImage(t *testing.T) {
	b, f := newUnit(t, counts)
	for range 2 {
		raw, err := b.kind.Card(t.Context(), b.unit)
		if err != nil || !strings.Contains(string(raw), `"no such page"`) {
			t.Fatalf("%s, %v", raw, err)
		}
		b.restart()
	}
	b.carriesOut(b.given("x", ""))
	if f.asked() != 1 {
		t.Errorf("it was asked %d times", f.asked())
	}
	entries, err := os.ReadDir(b.home.Cards)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, damaged := range []string{"", "{", `{"name":"of another version"}`} {
		must(os.WriteFile(filepath.Join(b.home.Cards, entries[0].Name()), []byte(damaged), 0o600))
		before := f.asked()
		if raw, err := b.kind.Card(t.Context(), b.unit); err != nil || !strings.Contains(string(raw), "Counts.") || f.asked() != before+1 {
			t.Errorf("with %q: %s, %v", damaged, raw, err)
		}
	}
	b.nothingLeft()
	if left := below(t, b.home.Runs); strings.Contains(left, "card") {
		t.Errorf("left are %s", left)
	}
}

func TestOnlyUnitsHaveCards(t *testing.T) {
	b := newBench(t)
	_, card := b.kind.Card(t.Context(), b.unit)
	_, described := b.kind.Describe(t.Context(), b.unit, nil)
	_, stdin := b.kind.StdinBytes(b.unit)
	_, tried := b.kind.Try(t.Context(), b.unit, Trial{})
	for _, err := range []error{card, described, stdin, tried} {
		if !fault.Is(err, fault.Input) || strings.Contains(strings.Join(b.engine.Calls(), " "), "Create") {
			t.Errorf("error %v", err)
		}
	}
}

func TestACardOfAnImageThatSomebodyRemoved(t *testing.T) {
	b, f := newUnit(t, counts)
	b.unit.Version = "1"
	x := b.given("x", "")
	b.carriesOut(x)
	must(b.engine.RemoveImage(t.Context(), x.Record.Image.ID))
	must(os.RemoveAll(b.home.Cards))
	if _, err := b.kind.Card(t.Context(), b.unit); err != nil || f.asked() != 2 {
		t.Errorf("%v, asked %d times", err, f.asked())
	}
}

func TestAStdinThatIsTooLargeStartsNothing(t *testing.T) {
	b, _ := newUnit(t, counts)
	x := b.given("12345678901", "")
	ready := run.Input{Payload: x.Input.Payload, Files: []run.PlacedFile{{Source: filepath.Join(x.InputDir(), "doc")}}}
	b.kind.opts.Units = map[string]UnitOptions{"worker": {Extra: Extra{StdinBytes: 10}}}
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

func TestUnitsRunOnEachOthersStreams(t *testing.T) {
	reads := func(s started) int {
		raw, err := os.ReadFile(s.stdin) // a pipe
		if err != nil {
			return 99
		}
		return s.prints(fmt.Sprintf(`{"got":%q}`, raw))
	}
	t.Run("from one to the next", func(t *testing.T) {
		b, _ := newUnit(t, reads)
		x := b.executionOf("r1", `{}`)
		var out bytes.Buffer
		in := &closer{Reader: strings.NewReader(`{"a":1}`)}
		x.Extra = Extra{Stream: &Stream{Stdin: in, Stdout: &out}}
		got := b.carriesOut(x)
		if want := `{"got":"{\"a\":1}"}`; string(got.Output) != want || out.String() != want || !in.closed {
			t.Errorf("%+v %+v, streamed %q, closed %v", got, got.Failure, out.String(), in.closed)
		}
	})
	t.Run("though it doesn't read", func(t *testing.T) {
		b, _ := newUnit(t, func(s started) int { return s.prints(`{}`) })
		x := b.executionOf("r1", `{}`)
		never, writer := io.Pipe()
		defer writer.Close()
		x.Extra = Extra{Stream: &Stream{Stdin: never}}
		if got := b.carriesOut(x); got.Outcome != api.Success {
			t.Errorf("%+v %+v", got, got.Failure)
		}
	})
	t.Run("until nobody reads what it prints", func(t *testing.T) {
		b, _ := newUnit(t, func(s started) int { return s.prints(`{}`) })
		x := b.executionOf("r1", `{}`)
		x.Extra = Extra{Stream: &Stream{Stdout: broken{}}}
		if got := b.carriesOut(x); got.Outcome != api.Success {
			t.Errorf("%+v %+v", got, got.Failure)
		}
	})
	t.Run("but not if it takes no JSON", func(t *testing.T) {
		b, f := newUnit(t, reads)
		f.card = func(out string) int {
			return started{out: out}.prints(strings.Replace(filterCard, `{"media_type": "text/*", "description": "any"}, {"media_type": "application/json", "description": "any"}`, `{"media_type": "image/png", "description": "any"}`, 1))
		}
		x := b.executionOf("r1", `{}`)
		x.Extra = Extra{Stream: &Stream{Stdin: io.NopCloser(strings.NewReader("{}"))}}
		_, err := x.Attempt(t.Context())
		if text := said(run.Fault(t.Context(), err)); err == nil || !strings.Contains(text, "application/json, which worker doesn't take") {
			t.Errorf("error %v: %s", err, text)
		}
		b.ends(x)
	})
}

// closer knows whether it is closed.
type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error {
	c.closed = true
	return nil
}

// broken can be neither read nor written.
type broken struct{}

var errBroken = errors.New("broken")

func (broken) Read([]byte) (int, error)  { return 0, errBroken }
func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestATrialShowsWhatAUnitDoes(t *testing.T) {
	b, f := newUnit(t, func(s started) int {
		raw, err := os.ReadFile(s.stdin)
		if err != nil {
			return 99
		}
		fmt.Fprintln(s.stderr, "of stderr")
		fmt.Fprintln(s.stdout, "of nobody")
		s.prints(fmt.Sprintf("%s %v %v", raw, s.args, slices.Contains(s.env, "A=b")))
		return 5
	})
	var seenLines lines
	seen, err := b.kind.Try(t.Context(), b.unit, Trial{Stdin: strings.NewReader("x\x00y"), Args: []string{"--unknown"}, Env: []string{"A=b"}, MemoryBytes: 9 << 20, Observe: seenLines.observe})
	if err != nil {
		t.Fatal(err)
	}
	if seen.ExitCode != 5 || string(seen.Stdout) != "x\x00y [--unknown] true" || string(seen.StderrTail) != "of stderr\n" || seen.StderrBytes != 10 || seen.StdinBytes != 3 || seen.MemoryLimit != 9<<20 || seen.TimedOut {
		t.Errorf("%+v: %q", seen, seen.Stdout)
	}
	if len(seenLines.all()) != 2 || f.asked() != 0 {
		t.Errorf("lines %q, asked %d times", seenLines.all(), f.asked())
	}
	b.nothingLeft()
	if left := below(t, b.home.Runs); left != "" {
		t.Errorf("left are %s", left)
	}
}

func TestATrialIsStarted(t *testing.T) {
	at := filepath.Join(t.TempDir(), "tiny.gguf")
	must(os.WriteFile(at, []byte("weights"), 0o600))
	var spec runtime.ContainerSpec
	b, _ := newUnit(t, func(s started) int {
		spec = s.dirs
		if s.stdin != "" {
			if info, err := os.Stat(s.stdin); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
				return 77
			}
			return 78
		}
		return 0
	})
	for _, c := range []struct {
		name  string
		trial Trial
		exit  int
	}{
		{"without a stdin", Trial{}, 0},
		{"with one that stays open", Trial{Open: true}, 77},
		{"with one that is given, rather", Trial{Open: true, Stdin: strings.NewReader("x")}, 78},
		{"with a model", Trial{ModelPath: at}, 0},
	} {
		seen, err := b.kind.Try(t.Context(), b.unit, c.trial)
		if err != nil || seen.ExitCode != c.exit || spec.Network != "none" {
			t.Errorf("%s: %+v, %v", c.name, seen, err)
		}
		if (mounted(spec, ModelPathInside(at)) != "") != (c.trial.ModelPath != "") {
			t.Errorf("%s: mounts %+v", c.name, spec.Mounts)
		}
	}
}

func TestATrialThatEndsBadly(t *testing.T) {
	ends := func(code int, change func(*initreport.Report)) enginetest.Program {
		return func(_ context.Context, spec runtime.ContainerSpec, _, _ io.Writer) int {
			if change != nil {
				must(os.WriteFile(mounted(spec, initreport.Path), report(code, change), 0o600))
			}
			return code
		}
	}
	t.Run("out of memory", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		b.engine.Program = ends(137, func(r *initreport.Report) { r.Signal, r.OOMKills = 9, 1 })
		if seen, err := b.kind.Try(t.Context(), b.unit, Trial{}); err != nil || !seen.OutOfMemory || seen.Signal != 9 || *seen.PeakMemory != 5<<20 {
			t.Errorf("%+v, %v", seen, err)
		}
	})
	t.Run("before it begins", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		b.engine.Program = ends(127, func(r *initreport.Report) { r.StartError = "no such file" })
		if seen, err := b.kind.Try(t.Context(), b.unit, Trial{}); err != nil || seen.StartError != "no such file" {
			t.Errorf("%+v, %v", seen, err)
		}
	})
	t.Run("after its time", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		b.runs(waits)
		seen, err := b.kind.Try(t.Context(), b.unit, Trial{Timeout: 20 * time.Millisecond})
		if err != nil || !seen.TimedOut || seen.ExitCode != 143 {
			t.Errorf("%+v, %v", seen, err)
		}
	})
	t.Run("by somebody else's hand, which shows nothing of the unit", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		b.engine.Program = ends(137, nil)
		if _, err := b.kind.Try(t.Context(), b.unit, Trial{}); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "from outside") {
			t.Errorf("error %v", err)
		}
		b.nothingLeft()
	})
	t.Run("with its caller", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		b.runs(func(ctx context.Context, spec runtime.ContainerSpec, out, err io.Writer) int {
			cancel(errBroken)
			return waits(ctx, spec, out, err)
		})
		if _, err := b.kind.Try(ctx, b.unit, Trial{}); !errors.Is(err, errBroken) {
			t.Errorf("error %v", err)
		}
		b.nothingLeft()
		if left := below(t, b.home.Runs); left != "" {
			t.Errorf("left are %s", left)
		}
	})
	t.Run("when its input can't be read", func(t *testing.T) {
		b, _ := newUnit(t, nil)
		if _, err := b.kind.Try(t.Context(), b.unit, Trial{Stdin: io.MultiReader(strings.NewReader("x"), broken{})}); !fault.Is(err, fault.Input) {
			t.Errorf("error %v", err)
		}
		if left := below(t, b.home.Runs); left != "" || b.calls() != "" {
			t.Errorf("left are %q, asked for %s", left, b.calls())
		}
	})
	t.Run("with a container that stays: the next sweep finds it by its directory", func(t *testing.T) {
		b, _ := newUnit(t, func(s started) int { return s.prints("{}") })
		b.breaks("Remove", errAway)
		if _, err := b.kind.Try(t.Context(), b.unit, Trial{}); !errors.Is(err, runtime.ErrLeftBehind) {
			t.Errorf("error %v", err)
		}
		b.breaks("Remove", nil)
		entries, err := os.ReadDir(b.home.Runs)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%v, %v", entries, err)
		}
		if err := b.kind.SweepRun(t.Context(), entries[0].Name()); err != nil {
			t.Error(err)
		}
		b.nothingLeft()
	})
}

func TestALogThatWasCutHasMoreBytesThanItsLimit(t *testing.T) {
	text := &stderrText{limit: 10}
	text.add(runtime.LogLine{Stream: "stdout", Text: "none of it"})
	text.add(runtime.LogLine{Stream: "stderr", Text: "abc"})
	for cut, want := range map[bool]int64{false: 4, true: 11} {
		if got, size := text.bytes(cut); string(got) != "abc\n" || size != want {
			t.Errorf("cut %v: %q, %d bytes", cut, got, size)
		}
	}
}

func TestModelsAreLookedForAtTheStart(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tiny.gguf")
	must(os.WriteFile(file, nil, 0o600))
	units := func(paths ...string) Options {
		o := Options{Units: map[string]UnitOptions{}}
		for i, path := range paths {
			o.Units[fmt.Sprintf("u%d", i)] = UnitOptions{Extra: Extra{ModelPath: path}}
		}
		return o
	}
	open := func(o Options) error {
		kind := New(enginetest.NewFake(nil), o)
		defer kind.Close()
		return kind.Open(run.Home{Dir: t.TempDir()})
	}
	if err := open(units(file, dir, "")); err != nil {
		t.Error(err)
	}
	err := open(units(file, file+"-gone", "/dev/null", file+"/x"))
	if !fault.Is(err, fault.Input) || len(fault.Public(err).Findings) != 3 {
		t.Fatalf("error %v", err)
	}
	for i, want := range []string{"/unit/u1/model_path it isn't there", "/unit/u2/model_path it is neither", "/unit/u3/model_path it can't be read"} {
		if f := fault.Public(err).Findings[i]; !strings.HasPrefix(f.Pointer+" "+f.Message, want) || f.Hint == "" {
			t.Errorf("finding %+v, want %q", f, want)
		}
	}
}
