package testcmd

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/cases"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/orchestrator"
	kindflow "github.com/agent-on-demand/aod/orchestrator/kind/flow"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// outcome is what came of one run of a case.
type outcome struct {
	differences []string // from what was expected
	took        time.Duration
	spent       api.ModelTotal
	score       *float64       // of the unit that grades; nil: it gave none
	grading     api.ModelTotal // what that spent
	answers     runflags.Answers
}

// runCase runs one case and says what differs from its expectation. The error is for AOD's
// own failures.
func (s *suite) runCase(ctx context.Context, l *cli.Local, test capsule.Case) (o outcome, err error) {
	began, req := time.Now(), s.req
	out, err := os.MkdirTemp("", "aod-test-")
	if err != nil {
		return o, cli.NotKept(err, "what the case makes")
	}
	defer func() { _ = os.RemoveAll(out) }()                       // a temporary directory of ours
	quiet := s.env.Quiet || s.flags.repeat > 1 || s.flags.jobs > 1 // several would write over each other
	view := progress.New(s.env.Err, req.Unit.Name, quiet)
	req.Timeout, req.OutDir, req.Observe = test.Timeout, filepath.Join(out, "files"), view.Event
	var walked flow.Walked
	if capsule.GraphOf(req.Unit.Definition) != nil {
		req.Extra = kindflow.Rehearsed{Rehearsal: cmp.Or(test.Rehearsal, &flow.Rehearsal{}), Walked: &walked}
	}
	record, err := submitCase(ctx, l, req, test)
	view.Close()
	if err != nil {
		return o, err
	}
	o.took, o.spent = time.Since(began), *cmp.Or(record.Models.Total(), &api.ModelTotal{})
	o.differences = slices.Concat(cases.Compare(test.Expect, record),
		cases.ComparePath(test.Expect, walked.Path()), cases.CompareThat(ctx, test, record))
	if test.Expect.Grade == nil || record.Output == nil {
		return o, nil
	}
	return o, s.gradeCase(ctx, test, record, &o)
}

// gradeCase has the output graded.
func (s *suite) gradeCase(ctx context.Context, test capsule.Case, record api.Record, o *outcome) error {
	ctx, err := s.flags.sources.Models.OfGrader(ctx, test)
	if err != nil {
		return err
	}
	line := ""
	o.score, o.grading, line, err = s.graders[test.Expect.Grade.Unit].grade(ctx, test, record)
	if line != "" {
		o.differences = append(o.differences, line)
	}
	return err
}

// submitCase runs a case.
func submitCase(ctx context.Context, l *cli.Local, req orchestrator.Request, test capsule.Case) (api.Record, error) {
	input, err := contract.Decode(test.Input, contract.DefaultMaxBytes)
	if err != nil {
		return api.Record{}, err
	}
	req.Input = input
	for field, path := range test.Files {
		req.Files = append(req.Files, run.InputFile{Field: field, Path: path})
	}
	return ran(ctx, l, req)
}

// ran runs a unit. An input that breaks the contract is a normal result, whose record has no id: a test may expect it.
func ran(ctx context.Context, l *cli.Local, req orchestrator.Request) (api.Record, error) {
	ended, err := l.Runs.Run(ctx, req)
	switch {
	case ended.Record.ID == "" && fault.Is(err, fault.Input):
		return refused(err), nil
	case err == nil && ended.Record.Outcome == api.WasCancelled:
		err = context.Canceled
	}
	return ended.Record, err
}

func refused(err error) api.Record {
	public := fault.Public(err)
	lines := []string{public.Msg}
	for _, f := range public.Findings {
		lines = append(lines, f.String())
	}
	code := fault.ExitCode(err)
	return api.Record{
		Outcome: api.InvalidInput, ExitCode: &code,
		Error: &api.RunError{Kind: string(api.InvalidInput), Type: "ContractError", Message: strings.Join(lines, "\n")},
	}
}
