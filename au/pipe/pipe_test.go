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
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/fuzzbound"
)

// fakeUnits says what each unit makes of what it reads. A unit that isn't there can't be
// prepared.
type fakeUnits map[string]func(ctx context.Context, in string) (outcome api.Outcome, out string)

var errNoUnit = errors.New("there is no such unit")

func (f fakeUnits) Prepare(_ context.Context, task Task, stdin string) (Unit, error) {
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
	var pointers []string
	for _, f := range checkTasks([]Task{{ID: "a"}, {ID: "b/c", Unit: "u"}, {ID: "d", Unit: "u", From: "e"}, {ID: "d", Unit: "u"}}) {
		pointers = append(pointers, f.Pointer)
	}
	if diff := cmp.Diff([]string{"/0/unit", "/1/id", "/2/from", "/3/id"}, pointers); diff != "" {
		t.Error(diff)
	}
}

func TestEveryUnitThatCannotBePreparedSaysSoInOrder(t *testing.T) {
	for _, joined := range []bool{true, false} {
		_, err := run(t, "one | a | two", joined, fakeUnits{"a": adds("A")})
		var failures Failures
		if !errors.As(err, &failures) || len(failures) != 2 || !errors.Is(err, errNoUnit) {
			t.Errorf("joined: %t: %v", joined, err)
		}
	}
	if err := inOrder([]error{nil, io.EOF, nil, io.ErrNoProgress}); err.Error() != "EOF\n"+io.ErrNoProgress.Error() {
		t.Errorf("%q", err)
	}
}

func TestFailed(t *testing.T) {
	record := func(id string, o api.Outcome) api.Record { return api.Record{ID: id, Outcome: o} }
	got := Failed([]api.Record{record("a", api.Success), record("b", api.CapsuleError), record("c", api.WasCancelled), record("d", api.TimedOut)})
	if len(got) != 2 || got[0].ID != "b" || got[1].ID != "d" {
		t.Errorf("%v", ends(got))
	}
}

func TestTasksAreReadOrRefusedInPlainWords(t *testing.T) {
	got, err := parseTasks("f", []byte(`[{"id": "a", "unit": "u", "args": ["-n", "two words", "x"], "prompt": "p", "timeout": "1m30s"}, {"id": "b", "unit": "v", "from": "a"}]`))
	want := []Task{{ID: "a", Unit: "u", Args: []string{"-n", "two words", "x"}, Prompt: "p", Timeout: 90 * time.Second}, {ID: "b", Unit: "v", From: "a"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for raw, want := range map[string]string{
		`{"id": "a"}`:   "f is no list of tasks",
		`null`:          "f is no list of tasks",
		`"a"`:           "f is no list of tasks",
		`[]`:            "f has 0 tasks; from 1 to 64 can be run",
		`[{]`:           "f is no list of tasks: it is not valid JSON: ",
		`[3]`:           "/0: is no task",
		`[{"id": 3}]`:   "/0/id: has to be a text",
		`[{"Id": "a"}]`: "/0/Id: is no field of a task",
		`[{"id": "a", "unit": "u", "args": [3]}]`:          "/0/args: has to be a list of texts",
		`[{"id": "a", "unit": "u", "timeout": "-1s"}]`:     `/0/timeout: has to be a duration, such as "30s"`,
		`[{"id": "a", "unit": "u", "timeout": 5}]`:         `/0/timeout: has to be a duration, such as "30s"`,
		`[{"id": "a", "unit": "u"},{"id":"a","unit":"u"}]`: "/1/id: is no id, or another task's",
	} {
		_, err := parseTasks("f", []byte(raw))
		public := fault.Public(err)
		said := public.Msg
		for _, f := range public.Findings {
			said += "\n" + f.String()
		}
		if !fault.Is(err, fault.Input) || !strings.Contains(said, want) || public.Hint != tasksHint || strings.Contains(err.Error(), "unmarshal") {
			t.Errorf("%s: %s", raw, said)
		}
	}
}

func FuzzTasks(f *testing.F) {
	f.Add([]byte(`[{"id": "a", "unit": "u", "args": ["x"], "timeout": "1s"}]`))
	f.Add([]byte(`[{}, 3, {"id": null}]`))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		tasks, err := parseTasks("f", raw)
		if (err == nil) != (len(tasks) > 0) || err != nil && !fault.Is(err, fault.Input) {
			t.Errorf("%v, %v", tasks, err)
		}
	})
}
