package pipe

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
)

// fakeUnits says what each unit makes of what it reads. A unit that isn't there can't be
// prepared.
type fakeUnits map[string]func(ctx context.Context, in string) (outcome api.Outcome, out string)

var errNoUnit = errors.New("there is no such unit")

func (f fakeUnits) Prepare(task Task, stdin string) (Unit, error) {
	if f[task.Unit] == nil {
		return nil, errNoUnit
	}
	return fakeUnit{task: task, stdin: stdin, do: f[task.Unit]}, nil
}

type fakeUnit struct {
	task  Task
	stdin string
	do    func(context.Context, string) (api.Outcome, string)
}

func (u fakeUnit) Run(ctx context.Context, join Join) (api.Record, error) {
	var in []byte
	var err error
	switch {
	case u.task.Unit == "bad": // it doesn't read
		return api.Record{ID: u.task.ID, Outcome: api.CapsuleError}, nil
	case join.Stdin != nil:
		in, err = io.ReadAll(join.Stdin)
	case u.stdin != "":
		in, err = os.ReadFile(u.stdin)
	}
	if err != nil {
		return api.Record{ID: u.task.ID, Outcome: api.WasCancelled}, context.Cause(ctx)
	}
	outcome, out := u.do(ctx, string(in))
	if join.Stdout != nil {
		_, _ = io.WriteString(join.Stdout, out)
	}
	return api.Record{ID: u.task.ID, Outcome: outcome, Output: json.RawMessage(out)}, nil
}

// adds is a unit that adds a word to what it reads.
func adds(word string) func(context.Context, string) (api.Outcome, string) {
	return func(_ context.Context, in string) (api.Outcome, string) { return api.Success, in + word }
}

func fails(context.Context, string) (api.Outcome, string) { panic("it doesn't get that far") }

func waits(ctx context.Context, _ string) (api.Outcome, string) {
	<-ctx.Done()
	return api.WasCancelled, ""
}

func run(t *testing.T, text string, joined bool, units fakeUnits) ([]api.Record, error) {
	t.Helper()
	tasks, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	stdin := filepath.Join(t.TempDir(), "stdin")
	if err := os.WriteFile(stdin, []byte("in"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Run(t.Context(), tasks, units, Options{Stdin: stdin, Dir: t.TempDir(), Joined: joined})
}

func ends(records []api.Record) (all []string) {
	for _, r := range records {
		all = append(all, r.ID+" "+string(r.Outcome)+" "+string(r.Output))
	}
	return all
}

func TestAUnitReadsWhatTheOneBeforePrints(t *testing.T) {
	for _, joined := range []bool{true, false} {
		records, err := run(t, "a | b | a", joined, fakeUnits{"a": adds("A"), "b": adds("B")})
		want := []string{"1 success inA", "2 success inAB", "3 success inABA"}
		if diff := cmp.Diff(want, ends(records)); diff != "" || err != nil {
			t.Errorf("joined: %t: %v %s", joined, err, diff)
		}
	}
}

func TestATaskTakesTheResultThatItNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tasks.json")
	if err := os.WriteFile(file, []byte(`[{"id":"x","unit":"a"},{"id":"y","unit":"b"},{"id":"z","unit":"b","from":"x"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	records, err := run(t, "@"+file, true, fakeUnits{"a": adds("A"), "b": adds("B")})
	want := []string{"x success inA", "y success inB", "z success inAB"}
	if diff := cmp.Diff(want, ends(records)); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestWithTheFirstThatFailsAllEnd(t *testing.T) {
	t.Run("in turn, the next is never started", func(t *testing.T) {
		records, err := run(t, "a | bad | a", false, fakeUnits{"a": adds("A"), "bad": fails})
		if diff := cmp.Diff([]string{"1 success inA", "2 capsule_error "}, ends(records)); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	})
	t.Run("at once, the others are cancelled", func(t *testing.T) {
		records, err := run(t, "slow | bad | a", true, fakeUnits{"slow": waits, "a": adds("A"), "bad": fails})
		if err != nil || len(records) != 3 || Decisive(records).ID != "2" {
			t.Errorf("%v %v", err, ends(records))
		}
	})
	t.Run("one that can't be prepared keeps all from starting", func(t *testing.T) {
		records, err := run(t, "a | nowhere", true, fakeUnits{"a": adds("A")})
		if !errors.Is(err, errNoUnit) || len(records) != 0 {
			t.Errorf("%v %v", err, ends(records))
		}
	})
}

func TestDecisive(t *testing.T) {
	record := func(id string, o api.Outcome) api.Record { return api.Record{ID: id, Outcome: o} }
	for want, records := range map[string][]api.Record{
		"the last":               {record("a", api.Success), record("the last", api.Success)},
		"the first that failed":  {record("a", api.WasCancelled), record("the first that failed", api.TimedOut), record("c", api.CapsuleError)},
		"the first to be killed": {record("a", api.Success), record("the first to be killed", api.WasCancelled), record("c", api.WasCancelled)},
	} {
		if got := Decisive(records); got.ID != want {
			t.Errorf("%s, not %s", got.ID, want)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := Parse(`./a --n 1 "two words" | b`)
	want := []Task{{ID: "1", Unit: "./a", Args: []string{"--n", "1", "two words"}}, {ID: "2", Unit: "b", Args: []string{}, From: "1"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for text, kind := range map[string]fault.Kind{
		"": fault.Input, "a |": fault.Input, "a || b": fault.Input, "a; b": fault.Input, `a "`: fault.Input, "a > b": fault.Input,
		"@/nowhere.json": fault.Input, "a" + strings.Repeat("|a", maxTasks): fault.TooLarge,
	} {
		if _, err := Parse(text); !fault.Is(err, kind) {
			t.Errorf("%.20s: %v", text, err)
		}
	}
}

func TestTasksThatCannotBeRun(t *testing.T) {
	err := checkTasks([]Task{{ID: "a"}, {ID: "b/c", Unit: "u"}, {ID: "d", Unit: "u", From: "e"}, {ID: "d", Unit: "u"}})
	var pointers []string
	for _, f := range fault.Public(err).Findings {
		pointers = append(pointers, f.Pointer)
	}
	if diff := cmp.Diff([]string{"/0/unit", "/1/id", "/2/from", "/3/id"}, pointers); diff != "" {
		t.Error(diff)
	}
}
