package container

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestAUnitThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	for code, says := range map[int]string{126: "can't be executed", 127: "not in its image"} {
		b, _ := newUnit(t, func(started) int { return code })
		got := b.carriesOut(b.given("x", ""))
		if got.Outcome != api.StartFailed || *got.ExitCode != code || !strings.Contains(got.Failure.Message, says) {
			t.Errorf("at its run: %+v %+v", got, got.Failure)
		}
		var f *filter
		b, f = newUnit(t, counts)
		f.card = func(string) int { return code }
		got = b.carriesOut(b.given("x", ""))
		if got.Outcome != api.StartFailed || *got.ExitCode != code || !strings.Contains(got.Failure.Message, says) || got.Failure.Hint == "" {
			t.Errorf("at its card: %+v %+v", got, got.Failure)
		}
		if _, err := b.kind.cards.describe(t.Context(), b.unit, nil); !fault.Is(err, fault.Capsule) || !strings.Contains(err.Error(), "could not be started") {
			t.Errorf("beside a run: %v", err)
		}
	}
}

func TestCodesThatTheCardNamesAreTheUnitsOwn(t *testing.T) {
	t.Parallel()
	b, f := newUnit(t, func(started) int { return 127 })
	f.card = func(out string) int {
		return started{out: out}.prints(strings.Replace(filterCard, `"3"`, `"127"`, 1))
	}
	if got := b.carriesOut(b.given("x", "")); got.Outcome != api.CapsuleError || got.Failure.Kind != "domain_error" {
		t.Errorf("%+v %+v", got, got.Failure)
	}
}

func TestAnOddCardIsAWarningOfTheRun(t *testing.T) {
	t.Parallel()
	b, f := newUnit(t, counts)
	f.card = func(out string) int { return started{out: out}.prints(`{"name": "my worker", "version": "1"}`) }
	x := b.given("x", `,"args":["two","words"]`)
	got := b.carriesOut(x)
	if want := `{"args":["two","words"],"stdin":"x"}`; string(got.Output) != want || len(x.run.Record.Warnings) != 1 || !strings.HasPrefix(x.run.Record.Warnings[0], "its model card is odd: ") {
		t.Errorf("%s %q %+v", got.Output, x.run.Record.Warnings, got.Failure)
	}
}

func TestWhatAWatchedTrialTried(t *testing.T) {
	t.Parallel()
	seen := observedRun(runtime.End{Reported: true, Report: initreport.Report{Watched: true, WritesTried: 2, ListensTried: 1}}, runtime.Limits{})
	if seen.WritesTried == nil || *seen.WritesTried != 2 || seen.Listened == nil || *seen.Listened != 1 {
		t.Errorf("%+v", seen)
	}
	if seen := observedRun(runtime.End{Reported: true}, runtime.Limits{}); seen.WritesTried != nil || seen.Listened != nil {
		t.Errorf("of one that nobody watched: %+v", seen)
	}
}
