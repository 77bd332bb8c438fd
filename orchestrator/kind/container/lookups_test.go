package container

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// newWrapped is a bench for an agent that calls "cli".
func newWrapped(t *testing.T, more string) *harness {
	t.Helper()
	return newBench(t, map[string]string{
		"Dockerfile": "FROM debian\n", "tools.yaml": "", "schema.json": "",
		"agent.yaml": "name: worker\nkind: agent\nagent: {command: [cli]" + more + "}\n",
	})
}

// unfound is an init that doesn't find its program.
func unfound(why string) enginetest.Program {
	return reports(127, report(127, func(r *initreport.Report) { r.StartError = why }))
}

const noCLI = "cli: not found in the PATH /usr/bin:/bin"

func TestAnAgentWhoseProgramIsNotInItsImage(t *testing.T) {
	t.Parallel()
	b := newWrapped(t, "")
	if known := b.kind.Program(b.unit); known != nil {
		t.Fatalf("before anybody looked: %+v", known)
	}
	image := b.kind.Image(b.unit)
	for why, want := range map[string]string{
		noCLI: "install it in the Dockerfile", "npx: not found in the PATH /bin": noProgram.hint,
		"cli: permission denied (it, or its interpreter, is not executable)": "what the Dockerfile makes of it",
	} {
		b.engine.Program = unfound(why)
		got := b.carriesOut(b.executionOf("r1", `{"message":"x"}`))
		wants(t, got, api.StartFailed, 127, "start_failed", image+": "+why)
		if f := got.Failure; f.Category != api.CategoryPermanent || !strings.Contains(f.Hint, want) {
			t.Errorf("%+v", f)
		}
		if known := b.kind.Program(b.unit); known == nil || known.Found || known.Problem != got.Failure.Message || known.Hint != got.Failure.Hint {
			t.Errorf("of the unit is told %+v", known)
		}
	}
	if err := b.kind.FindProgram(t.Context(), b.unit, nil); !fault.Is(err, fault.Capsule) || !strings.Contains(err.Error(), image) {
		t.Errorf("a check says %v", err)
	}
	b.restart()
	if known := b.kind.Program(b.unit); known == nil || known.Found {
		t.Errorf("the next process tells %+v", known)
	}
}

func TestAnUploadIsToldWhetherItsProgramIsThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		program enginetest.Program
		found   bool
	}{{"it is", reports(0, report(0, nil)), true}, {"it isn't", unfound(noCLI), false}} {
		t.Run(c.name, func(t *testing.T) {
			b := newWrapped(t, ", env: {PATH: /opt/bin}")
			var spec runtime.ContainerSpec
			b.engine.Program = func(ctx context.Context, s runtime.ContainerSpec, stdout, stderr io.Writer) int {
				spec = s
				return c.program(ctx, s, stdout, stderr)
			}
			if err := b.kind.Accept(t.Context(), b.unit); err != nil {
				t.Fatalf("it is refused: %v", err)
			}
			if known := b.kind.Program(b.unit); known == nil || known.Found != c.found || (known.Problem == "") != c.found {
				t.Errorf("%+v", known)
			}
			if !slices.Contains(spec.Entrypoint, "-find") || !slices.Contains(spec.Env, "PATH=/opt/bin") {
				t.Errorf("it is looked up as %q with %q", spec.Entrypoint, spec.Env)
			}
			b.nothingLeft()
		})
	}
}

func TestAnEngineThatCannotLookAProgramUpRefusesNoUpload(t *testing.T) {
	t.Parallel()
	b := newWrapped(t, "")
	b.breaks("Create", fault.New(fault.Unavailable, "no"))
	if err := b.kind.Accept(t.Context(), b.unit); err != nil || b.kind.Program(b.unit) != nil {
		t.Errorf("%v, %+v", err, b.kind.Program(b.unit))
	}
}

func TestWhatIsOneRunsAloneIsNotToldOfTheUnit(t *testing.T) {
	t.Parallel()
	b := newWrapped(t, "")
	b.engine.Program = unfound("cli: argument list too long")
	b.carriesOut(b.executionOf("r1", `{"message":"x"}`))
	b.engine.Program = unfound(noCLI)
	x := b.executionOf("r2", `{"message":"x"}`)
	x.run.Start = capsule.AgentStart{Env: map[string]string{"PATH": "/nowhere"}}
	b.carriesOut(x)
	if known := b.kind.Program(b.unit); known != nil {
		t.Errorf("%+v", known)
	}
	x = b.executionOf("r4", `{"message":"x"}`)
	x.program = shell{own: x.program, console: &runtime.Console{}}
	x.noteProgram(runtime.End{Reported: true})
	if known := b.kind.Program(b.unit); known != nil {
		t.Errorf("by a shell: %+v", known)
	}
	b.engine.Program = reports(1, report(1, nil)) // it fails, but it began
	b.carriesOut(b.executionOf("r3", `{"message":"x"}`))
	if known := b.kind.Program(b.unit); known == nil || !known.Found {
		t.Errorf("%+v", known)
	}
	files, err := filepath.Glob(filepath.Join(b.home.Cards, "*.program.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b.restart(); b.kind.Program(b.unit) != nil {
		t.Error("a damaged file is believed")
	}
}
