package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// screen is a stream that looks like a terminal, or like a pipe.
func screen(terminal bool) (*output, *bytes.Buffer) {
	var b bytes.Buffer
	return &output{Writer: &b, terminal: terminal, fd: -1}, &b
}

func TestNothingOfACapsuleMovesTheCursor(t *testing.T) {
	hostile := "a\x1b[2Jb\rc\x07d\u009be\u202ef\tg"
	if got, want := printable(hostile), "a\uFFFD[2Jb\uFFFDc\uFFFDd\uFFFDe\uFFFDf\tg"; got != want {
		t.Errorf("printable = %q, want %q", got, want)
	}
	out, shown := screen(false)
	out.runError("unit", api.RunError{Type: hostile, Message: hostile, Findings: []fault.Finding{{Pointer: hostile, Message: hostile, Hint: hostile}}})
	out.fault(fault.Wrap(fault.Build, errors.New(hostile), "%s", hostile).WithHint("%s", hostile))
	v := newView(out, "unit", false)
	v.event(run.Event{Log: &runtime.LogLine{Text: hostile}})
	v.event(run.Event{Warning: hostile})
	v.event(run.Event{Build: &runtime.BuildEvent{Step: "1", State: runtime.StepLog, Log: hostile}})
	v.close()
	if strings.ContainsAny(shown.String(), "\x1b\r\x07\u009b\u202e") {
		t.Errorf("a control character came through: %q", shown)
	}
}

func TestAResultOnATerminalIsTheSameDocument(t *testing.T) {
	document := json.RawMessage(`{"a":"x\u007fy` + "\u009b\u202e\x7f" + `<&>é","n":1e2}`)
	var values []any
	for _, terminal := range []bool{true, false} {
		out, shown := screen(terminal)
		if err := out.json(document); err != nil {
			t.Fatal(err)
		}
		if terminal && strings.ContainsAny(shown.String(), "\x7f\u009b\u202e") {
			t.Errorf("a control character came through: %q", shown)
		}
		if lines := strings.Count(shown.String(), "\n"); (lines > 1) != terminal {
			t.Errorf("%d lines, terminal: %v", lines, terminal)
		}
		var value any
		if err := json.Unmarshal(shown.Bytes(), &value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	one, _ := json.Marshal(values[0])
	other, _ := json.Marshal(values[1])
	if !bytes.Equal(one, other) {
		t.Errorf("%s is not %s", one, other)
	}
}

func TestTheLiveLineIsTakenAwayBeforeALineThatStays(t *testing.T) {
	out, shown := screen(true)
	v := &view{out: out, unit: "unit", steps: map[string]step{}, calls: newCallTree("unit")}
	v.waitFor("working")
	v.draw()
	v.print("stays")
	if got := shown.String(); !strings.HasPrefix(got, "⠋ working") || !strings.Contains(got, "\r\x1b[Kstays\n") {
		t.Errorf("shown %q", got)
	}
}

func TestOnlyTheEndOfAProgressBarIsShown(t *testing.T) {
	for line, want := range map[string]string{"a": "a", "5%\r10%\rdone": "done", "5%\r10%\r": "10%", "\r": ""} {
		if got := settled(line); got != want {
			t.Errorf("settled(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestQuietShowsNothingButFaults(t *testing.T) {
	out, shown := screen(true)
	v := newView(out, "unit", true)
	v.event(run.Event{Log: &runtime.LogLine{Text: "log"}})
	v.event(run.Event{Build: &runtime.BuildEvent{Step: "1", Name: "[1/1] RUN true", State: runtime.StepDone}})
	v.close()
	if shown.Len() > 0 {
		t.Errorf("shown %q", shown)
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 200 << 20: "200.0 MiB", 3 << 40: "3.0 TiB", 1 << 62: "4194304.0 TiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	code := func(n int) *int { return &n }
	cases := []struct {
		outcome api.Outcome
		code    *int
		want    int
	}{
		{api.Success, code(0), 0},
		{api.CapsuleError, code(7), 7},
		{api.OutOfMemory, code(137), 137},
		{api.ContractViolation, code(1), 1},
		{api.TimedOut, code(143), 124},
		{api.WasCancelled, nil, 130},
		{api.StartFailed, code(127), 127},
		{api.SystemError, nil, 125},
	}
	for _, c := range cases {
		if got := exitCode(api.Record{Outcome: c.outcome, ExitCode: c.code}); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.outcome, got, c.want)
		}
	}
}

// Whoever reads our output may have enough of it, as in `aod units | head`.
func TestAReaderThatHasGoneIsNoFailure(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	for _, args := range []string{"units", "units --json", "units hello --json", "ps -a", "logs " + fakeID} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		reader.Close()
		defer writer.Close()
		stderr, told := screen(false)
		a := &app{stdin: strings.NewReader(""), stdout: newOutput(writer), stderr: stderr}
		if code := a.run(t.Context(), append(strings.Fields(args), "--server", s.URL)); code != 0 || told.String() != "" {
			t.Errorf("%s: code %d, %s", args, code, told)
		}
	}
}
