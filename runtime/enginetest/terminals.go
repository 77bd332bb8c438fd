package enginetest

import (
	"io"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

func testTerminals(t *testing.T, s suite) {
	engine, ok := s.Engine.(runtime.Terminals)
	if !ok {
		t.Skip("the engine connects nobody with a program")
	}
	// talk starts a shell that reads its script from stdin.
	change := func(*runtime.ContainerSpec) {}
	talk := func(t *testing.T, terminal bool) (id string, streams *runtime.Streams, exits <-chan runtime.Exit) {
		t.Helper()
		ctx := s.context(t)
		spec := s.spec("exec /bin/sh")
		spec.Stdin, spec.Terminal = true, terminal
		change(&spec)
		id = s.create(t, spec)
		streams, err := engine.AttachInput(ctx, id, terminal)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = streams.Close() })
		if exits, err = s.Engine.NextExit(ctx, id); err != nil {
			t.Fatal(err)
		}
		if err := s.Engine.Start(ctx, id); err != nil {
			t.Fatal(err)
		}
		return id, streams, exits
	}
	t.Run("without a terminal the end of the input is the shell's end, and all output comes", func(t *testing.T) {
		_, streams, exits := talk(t, false)
		stdout, stderr := collect(streams.Stdout), collect(streams.Stderr)
		say(t, streams, "cat <<end\nout\nend\necho err >&2; tty; exec sh -c 'exit 7'\n")
		if err := streams.Stdin.Close(); err != nil {
			t.Error(err)
		}
		if exit := receive(t, exits); exit.Code != 7 {
			t.Errorf("exit %+v", exit)
		}
		if out := stdout.all(t); out != "out\nnot a tty\n" {
			t.Errorf("stdout %q", out)
		}
		if out := stderr.all(t); out != "err\n" {
			t.Errorf("stderr %q", out)
		}
	})
	t.Run("one that the engine is to remove is gone when whoever talked has left", func(t *testing.T) {
		change = func(spec *runtime.ContainerSpec) { spec.Ephemeral = true }
		defer func() { change = func(*runtime.ContainerSpec) {} }()
		id, streams, _ := talk(t, false)
		if err := streams.Close(); err != nil {
			t.Error(err)
		}
		testkit.Eventually(t, "it is gone", func() bool {
			_, err := s.Engine.Inspect(s.context(t), id)
			return fault.Is(err, fault.NotFound)
		})
	})
	t.Run("a terminal has the size that it is given, and its keys are signals", func(t *testing.T) {
		id, streams, exits := talk(t, true)
		stdout, stderr := collect(streams.Stdout), collect(streams.Stderr)
		saw := func(text string) {
			t.Helper()
			testkit.Eventually(t, text, func() bool { return strings.Contains(stdout.soFar(), text) })
		}
		say(t, streams, "echo $((20 + 3)); tty\n")
		saw("23")
		saw("/dev/")
		for _, size := range []runtime.TerminalSize{{Rows: 33, Columns: 101}, {Rows: 44, Columns: 99}} {
			if err := engine.Resize(s.context(t), id, size); err != nil {
				t.Fatal(err)
			}
			say(t, streams, "stty size\n")
			saw(map[uint]string{33: "33 101", 44: "44 99"}[size.Rows])
		}
		// One program says so and sleeps: between two of them the key would reach the shell alone.
		say(t, streams, "sh -c 'echo be\"\"gun; exec sleep 300'\n")
		saw("begun")
		say(t, streams, "\x03")
		say(t, streams, "echo went-$((1 + 1)); exit 5\n")
		saw("went-2")
		if exit := receive(t, exits); exit.Code != 5 {
			t.Errorf("exit %+v", exit)
		}
		stdout.all(t)
		if out := stderr.all(t); out != "" {
			t.Errorf("stderr %q", out)
		}
	})
	t.Run("a container that isn't there is NotFound", func(t *testing.T) {
		missing := strings.Repeat("0", 64)
		_, err := engine.AttachInput(s.context(t), missing, false)
		wantKind(t, err, fault.NotFound)
		wantKind(t, engine.Resize(s.context(t), missing, runtime.TerminalSize{Rows: 1, Columns: 1}), fault.NotFound)
	})
}

func say(t *testing.T, streams *runtime.Streams, text string) {
	t.Helper()
	if _, err := io.WriteString(streams.Stdin, text); err != nil {
		t.Fatal(err)
	}
}
