package testcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// grader is a unit that grades outputs, and where it runs: no other model is asked in the place of its own, whatever
// the flags say of the unit that is tested.
type grader struct {
	unit  *unit.Unit
	local *cli.Local
	find  cli.Finder
}

// withGraders calls do with the units that cases name to grade.
func withGraders(
	ctx context.Context, env *cli.Env, of []capsule.Case, find cli.Finder, sources runflags.Sources,
	do func(map[string]grader) error,
) error {
	var names []string
	for _, test := range of {
		if g := test.Expect.Grade; g != nil && !slices.Contains(names, g.Unit) {
			names = append(names, g.Unit)
		}
	}
	sources.Models = sources.Models.WithoutCassette()
	graders := map[string]grader{}
	for _, name := range slices.Backward(names) {
		u, err := find(ctx, name)
		if err != nil {
			return err
		}
		next := do
		do = func(graders map[string]grader) error {
			req := orchestrator.Request{Request: run.Request{Unit: u}, Find: find}
			return sources.WithUnit(ctx, env, req, func(_ context.Context, l *cli.Local) error {
				graders[name] = grader{u, l, find}
				return next(graders)
			})
		}
	}
	return do(graders)
}

// grade has a unit grade the output of a run, and returns a line where it isn't good enough. The error is for AOD's own
// failures.
func (g grader) grade(
	ctx context.Context, test capsule.Case, got api.Record,
) (score *float64, spent api.ModelTotal, line string, err error) {
	want := test.Expect.Grade
	input, files, err := g.input(ctx, test, got)
	if err != nil {
		return nil, spent, graded + fault.Public(err).Msg, nil
	}
	req := orchestrator.Request{Request: run.Request{Unit: g.unit, Input: input, Files: files}, Find: g.find}
	r, err := ran(ctx, g.local, req)
	if err != nil {
		return nil, spent, "", err
	}
	spent = *cmp.Or(r.Models.Total(), &api.ModelTotal{})
	switch {
	case r.ID == "":
		return nil, spent, graded + r.Error.Message, nil
	case r.Outcome != api.Success:
		return nil, spent, fmt.Sprintf("grade: %s ended with %s: %s", want.Unit, r.Outcome, r.Error.Message), nil
	}
	score, line = judge(want, r.Output)
	return score, spent, line, nil
}

// judge reads what a grader gave, and returns a line where that isn't enough.
func judge(want *capsule.ExpectGrade, output json.RawMessage) (score *float64, line string) {
	var grade struct {
		Score  *float64
		Reason string
	}
	_ = json.Unmarshal(output, &grade) // what isn't such a thing has no score
	if grade.Score == nil || !(*grade.Score >= 0 && *grade.Score <= 1) {
		return nil, fmt.Sprintf(`grade: %s gave no {"score": 0 to 1, "reason": "…"}`, want.Unit)
	}
	least := 1.0
	if want.Min != nil {
		least = *want.Min
	}
	if *grade.Score < least {
		line = fmt.Sprintf("grade: %.2g of %.2g by %s: %s", *grade.Score, least, want.Unit, grade.Reason)
	}
	return grade.Score, line
}

// input is what a grader is asked. A name of one of the run's files stands for it.
func (g grader) input(
	ctx context.Context, test capsule.Case, got api.Record,
) (input contract.Payload, files []run.InputFile, err error) {
	with := test.Expect.Grade.With
	if with == nil {
		with = map[string]any{"input": "${{ input }}", "output": "${{ output }}"}
	}
	graded, err := capsule.NewGraded(test.Input, got.Output)
	if err != nil {
		return input, nil, err
	}
	value, err := graded.Eval(ctx, with)
	if err != nil {
		return input, nil, err
	}
	object, _ := value.(map[string]any) // the schema of test cases says so
	object = maps.Clone(object)
	for _, field := range g.unit.Contract.Input.FileFields() {
		name, _ := object[field].(string)
		at := slices.IndexFunc(got.Files, func(f api.File) bool { return f.Name == name })
		if at >= 0 {
			delete(object, field)
			files = append(files, run.InputFile{Field: field, Path: got.Files[at].Path})
		}
	}
	input, err = contract.NewPayload(object)
	return input, files, err
}
