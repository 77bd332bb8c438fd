package flow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

const resultSchema = `{
  "input": {"type": "object"},
  "output": {"type": "object", "properties": {
    "docs": {"type": "array", "items": ` + filePath + `}, "doc": ` + filePath + `, "n": {"type": "integer"}
  }}
}`

// resultOf is what the end of a walk with an output means, where the state has the contents.
func (b *harness) resultOf(x *execution, output map[string]any, contents ...string) (run.Result, error) {
	s := &files{dir: x.StateDir()}
	for _, content := range contents {
		write(b.t, filepath.Join(s.dir, digestOf(content)), content)
	}
	return x.result(b.t.Context(), s, flow.Ended{Output: output})
}

func TestAStepFromWhichNoEdgeLeadsOn(t *testing.T) {
	b := newBenchOf(t, resultSchema, oneCall)
	b.calls.awaiting = failing(nil)
	findings := []fault.Finding{{Pointer: "/n", Message: "m"}}
	for name, c := range map[string]struct {
		failure flow.Failure
		want    api.RunError
	}{
		"of a node": {
			flow.Failure{Node: "a#2", Category: string(api.CategoryAgent), Kind: "k", Type: "ValueError", Message: "no", Hint: "h", Findings: findings},
			api.RunError{Category: api.CategoryAgent, Kind: "k", Type: "ValueError", Step: "a#2", Message: "the step a#2 failed: no", Hint: "h", Findings: findings},
		},
		"of the flow, without a category": {
			flow.Failure{Kind: flow.KindMaxSteps, Message: "too many"}, api.RunError{Category: api.CategoryPermanent, Kind: flow.KindMaxSteps, Message: "too many"},
		},
	} {
		got, err := b.resumed(0).result(t.Context(), nil, flow.Ended{Failure: &c.failure})
		if err != nil || got.State != api.Failed || got.Outcome != api.StepFailed || cmp.Diff(&c.want, got.Failure) != "" {
			t.Errorf("%s: %+v %+v, %v", name, got, got.Failure, err)
		}
	}
}

func TestAnOutputThatBreaksItsContract(t *testing.T) {
	for name, c := range map[string]struct {
		output map[string]any
		want   []string // findings: "pointer|part of the message"
	}{
		"by a wrong type":                {map[string]any{"n": "text"}, []string{"/n|expected integer, got string"}},
		"by a text for a file":           {map[string]any{"doc": "a"}, []string{"/doc|it is a text, and the contract wants a file"}},
		"by a text that leads out":       {map[string]any{"docs": []any{fileOf("a", "A"), "../b"}}, []string{"/docs/1|it is a text"}},
		"by both, at all places":         {map[string]any{"n": 1.5, "doc": "a", "docs": []any{"b"}}, []string{"/n|expected integer", "/doc|it is a text", "/docs/0|it is a text"}},
		"by a file whose name is unfit":  {map[string]any{"doc": fileOf("a\x1b[31m", "A")}, []string{"|control character"}},
		"by what isn't JSON":             {map[string]any{"x": make(chan int)}, []string{"|can't be written as JSON"}},
		"not by the name of a file only": {map[string]any{"doc": "a", "docs": []any{fileOf("a", "A")}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBenchOf(t, resultSchema, oneCall)
			got, err := b.resultOf(b.resumed(0), c.output, "A")
			if err != nil || (got.Outcome == api.Success) != (c.want == nil) {
				t.Fatalf("%+v, %v", got, err)
			}
			if c.want == nil {
				return
			}
			if got.State != api.Failed || got.Outcome != api.ContractViolation || got.Failure.Category != api.CategoryAgent || !strings.Contains(got.Failure.Hint, flow.FileName) || len(got.Failure.Findings) != len(c.want) {
				t.Fatalf("%+v %+v", got, got.Failure)
			}
			for i, f := range got.Failure.Findings {
				pointer, message, _ := strings.Cut(c.want[i], "|")
				if f.Pointer != pointer || !strings.Contains(f.Message, message) {
					t.Errorf("finding %v, want %s", f, c.want[i])
				}
			}
			if _, err := os.Stat(filepath.Join(b.dir, "output")); !os.IsNotExist(err) {
				t.Errorf("something was delivered: %v", err)
			}
		})
	}
}

func TestTheFilesOfAnOutputAreBounded(t *testing.T) {
	output := map[string]any{"docs": []any{fileOf("a", "1234"), fileOf("b", "5678")}}
	for name, c := range map[string]struct {
		bytes int64
		files int
		says  string // "": it is within its limits
	}{
		"at both limits":      {8, 2, ""},
		"without limits":      {0, 0, ""},
		"a byte too much":     {7, 2, "have 8B, and the limit is 7B"},
		"a file too much":     {8, 1, "has 2 files, and the limit is 1"},
		"both, told by bytes": {1, 1, "have 8B"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBenchOf(t, resultSchema, oneCall)
			x := b.resumed(0)
			x.Limits.OutputBytes, x.Limits.OutputFiles = c.bytes, c.files
			got, err := b.resultOf(x, output, "1234", "5678")
			if err != nil || (got.Outcome == api.Success) != (c.says == "") {
				t.Fatalf("%+v %+v, %v", got, got.Failure, err)
			}
			if c.says == "" {
				return
			}
			if got.Outcome != api.LimitExceeded || got.Failure.Kind != "output_limit" || !strings.Contains(got.Failure.Message, c.says) || !strings.Contains(got.Failure.Hint, "limits.output") {
				t.Errorf("%+v %+v", got, got.Failure)
			}
			if _, err := os.Stat(filepath.Join(b.dir, "output")); !os.IsNotExist(err) {
				t.Errorf("something was delivered: %v", err)
			}
		})
	}
}

func TestTheFilesOfAnOutputAreDelivered(t *testing.T) {
	output := map[string]any{
		"n": int64(1), "doc": fileOf("d/a.txt", "A"), "docs": []any{fileOf("d/a.txt", "B"), fileOf("d/a.txt", "A")}, "more": fileOf("c.txt", "C"),
	}
	pointers := map[string]string{"d/a.txt": "/doc", "2/d/a.txt": "/docs/0"}
	contents := map[string]string{"d/a.txt": "A", "2/d/a.txt": "B", "c.txt": "C"}
	for name, elsewhere := range map[string]bool{"in the run's directory": false, "in the user's": true} {
		t.Run(name, func(t *testing.T) {
			b := newBenchOf(t, resultSchema, oneCall)
			x, dir := b.resumed(0), filepath.Join(b.dir, "output")
			if elsewhere {
				dir = filepath.Join(t.TempDir(), "out")
				x.OutDir = dir
				write(t, filepath.Join(dir, "c.txt"), "of an earlier run, and longer")
			}
			for range 2 { // an earlier process may have done so
				got, err := b.resultOf(x, output, "A", "B", "C")
				if err != nil || string(got.Output) != `{"doc":"d/a.txt","docs":["2/d/a.txt","d/a.txt"],"more":"c.txt","n":1}` {
					t.Fatalf("%s %+v, %v", got.Output, got.Failure, err)
				}
				for _, f := range got.Files {
					if want, there := pointers[f.Name]; there != (f.Pointer != nil) || there && *f.Pointer != want && f.Name != "d/a.txt" {
						t.Errorf("file %+v", f)
					}
					if content := contents[f.Name]; f.SHA256 != digestOf(content) || f.SizeBytes != int64(len(content)) || (f.Path != "") != elsewhere {
						t.Errorf("file %+v", f)
					}
				}
			}
			kept, err := os.Stat(filepath.Join(x.StateDir(), digestOf("C")))
			given, errGiven := os.Stat(filepath.Join(dir, "c.txt"))
			if err != nil || errGiven != nil || os.SameFile(kept, given) == elsewhere {
				t.Errorf("%v, %v: ours takes no room, the user's is theirs", err, errGiven)
			}
			if diff := cmp.Diff(contents, entries(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADeliveryLeavesTheUsersDirectoryByNoLink(t *testing.T) {
	b := newBenchOf(t, resultSchema, oneCall)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "a.txt"), "theirs")
	for name, link := range map[string]struct{ at, to, want string }{
		"of the file itself":  {"a.txt", filepath.Join(outside, "a.txt"), ""},
		"of a directory":      {"d", outside, "can't be written"},
		"of a directory, up ": {"d", "..", "can't be written"},
	} {
		t.Run(name, func(t *testing.T) {
			x := b.resumed(0)
			x.OutDir = t.TempDir()
			if err := os.Symlink(link.to, filepath.Join(x.OutDir, link.at)); err != nil {
				t.Fatal(err)
			}
			doc := fileOf("a.txt", "A")
			if link.at == "d" {
				doc.Name = "d/a.txt"
			}
			got, err := b.resultOf(x, map[string]any{"doc": doc}, "A")
			if (err != nil) != (link.want != "") || err != nil && (!fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), link.want) || fault.Public(err).Hint == "") {
				t.Errorf("%+v, %v", got, err)
			}
			if got := entries(t, outside); len(got) != 1 || got["a.txt"] != "theirs" {
				t.Errorf("outside there is %v", got)
			}
		})
	}
}

func TestAFileOfTheStateThatIsLostIsNotDelivered(t *testing.T) {
	for name, dir := range map[string]string{"in the run's directory": "", "in the user's": t.TempDir()} {
		b := newBenchOf(t, resultSchema, oneCall)
		x := b.resumed(0)
		x.OutDir = dir
		if got, err := b.resultOf(x, map[string]any{"doc": fileOf("a.txt", "A")}); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), `"a.txt"`) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
