package progress

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// screen is a stream that looks like a terminal, or like a pipe.
func screen(terminal bool) (*ui.Output, *bytes.Buffer) {
	var b bytes.Buffer
	return &ui.Output{Writer: &b, Terminal: terminal, FD: -1}, &b
}

func TestNothingOfACapsuleMovesTheCursor(t *testing.T) {
	hostile := "a\x1b[2Jb\rc\x07d\u009be\u202ef\tg"
	if got, want := ui.Printable(hostile), "a\uFFFD[2Jb\uFFFDc\uFFFDd\uFFFDe\uFFFDf\tg"; got != want {
		t.Errorf("printable = %q, want %q", got, want)
	}
	out, shown := screen(false)
	out.RunError("unit", api.RunError{Type: hostile, Message: hostile, Findings: []fault.Finding{{Pointer: hostile, Message: hostile, Hint: hostile}}})
	out.Fault(fault.Wrap(fault.Build, errors.New(hostile), "%s", hostile).WithHint("%s", hostile))
	v := New(out, "unit", false)
	v.Event(run.Event{Log: &runtime.LogLine{Text: hostile}})
	v.Event(run.Event{Warning: hostile})
	v.Event(run.Event{Build: &runtime.BuildEvent{Step: "1", State: runtime.StepLog, Log: hostile}})
	v.Close()
	if strings.ContainsAny(shown.String(), "\x1b\r\x07\u009b\u202e") {
		t.Errorf("a control character came through: %q", shown)
	}
}

func TestTheLiveLineIsTakenAwayBeforeALineThatStays(t *testing.T) {
	out, shown := screen(true)
	v := &View{Out: out, Unit: "unit", steps: map[string]step{}, calls: newCallTree("unit")}
	v.WaitFor("working")
	v.draw()
	v.Print("stays")
	if got := shown.String(); !strings.HasPrefix(got, "⠋ working") || !strings.Contains(got, "\r\x1b[Kstays\n") {
		t.Errorf("shown %q", got)
	}
}

func TestAPipeShowsWhatIsCalledIsBuiltAndAnswered(t *testing.T) {
	out, shown := screen(false)
	v := New(out, "unit", false)
	v.Event(run.Event{Run: "1", Unit: "unit", Build: &runtime.BuildEvent{Step: "1", Name: "[1/1] COPY a /a", State: runtime.StepDone}})
	for range 2 {
		v.Event(run.Event{Run: "2", Parent: "1", Unit: "sub", Build: &runtime.BuildEvent{Step: "1", Name: "[1/1] COPY b /b", State: runtime.StepDone}})
	}
	v.Event(run.Event{Run: "1", Unit: "unit", Data: api.ModelCall{N: 2, Model: "m", Status: 200, MS: 1200, Tokens: api.ModelTokens{Input: 7}}})
	v.Event(run.Event{Run: "1", Unit: "unit", Data: api.ModelCall{N: 3, Model: "m"}})
	v.Close()
	for _, want := range []string{"building unit\n", "✓ [1/1] COPY a /a", "building sub\n", "✓ [1/1] COPY b /b", "unit turn 2: m, 0 tokens, 1.2s\n"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("%q lacks %q", shown, want)
		}
	}
	if strings.Count(shown.String(), "building sub") != 1 || strings.Contains(shown.String(), "turn 3") {
		t.Errorf("%q", shown)
	}
}

func TestQuietShowsNothingButFaults(t *testing.T) {
	out, shown := screen(true)
	v := New(out, "unit", true)
	v.Event(run.Event{Log: &runtime.LogLine{Text: "log"}})
	v.Event(run.Event{Build: &runtime.BuildEvent{Step: "1", Name: "[1/1] RUN true", State: runtime.StepDone}})
	v.Close()
	if shown.Len() > 0 {
		t.Errorf("shown %q", shown)
	}
}
