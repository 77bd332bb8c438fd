package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/cases"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/orchestrator"
	kindflow "github.com/agent-on-demand/aod/orchestrator/kind/flow"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

func (a *app) testCommand() *cobra.Command {
	var only string
	var given givenFlags
	var models modelFlags
	var watch bool
	cmd := &cobra.Command{
		Use:   "test DIR|NAME",
		Short: "Run a capsule's test cases in the sandbox",
		Long: `Run the cases in the capsule's tests/*.json, each in a fresh container, and print
what differs. Exit code 1 when a case fails.`,
		Example: "  aod test ./my-capsule\n  aod test ./my-capsule --case empty\n  aod test ./my-capsule --watch",
		Args:    exactly(1, "one directory or name of a capsule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			test := func(ctx context.Context) error { return a.test(ctx, args[0], only, given, models) }
			if watch {
				return a.watch(cmd.Context(), args[0], nil, test)
			}
			return test(cmd.Context())
		},
	}
	given.register(cmd.Flags())
	models.register(cmd.Flags())
	registerWatch(cmd.Flags(), &watch)
	cmd.Flags().StringVar(&only, "case", "", "run only the case of this name (its file without .json)")
	return cmd
}

func (a *app) test(ctx context.Context, name, only string, given givenFlags, models modelFlags) error {
	c, err := a.load(name)
	if err != nil {
		return err
	}
	if err := models.touch(); err != nil {
		return err
	}
	cases, err := chosen(c, only)
	if err != nil {
		return err
	}
	u, err := given.unit(c)
	if err != nil {
		return err
	}
	find := a.callees(u, c)
	opts := localOptions{upstreams: given.upstreams, find: find}
	models.answered = slices.ContainsFunc(cases,
		func(c capsule.Case) bool { return c.Models != nil || c.Cassette != "" })
	if opts.models, err = models.open(a, u, find); err != nil {
		return err
	}
	defer opts.models.Gateway.Close()
	usual, done, err := models.source()
	if err != nil {
		return err
	}
	err = a.withUnit(ctx, u, opts, func(l *local) error {
		return a.runCases(ctx, l, cases, func(test capsule.Case) (orchestrator.Request, error) {
			source, err := models.ofCase(test, usual)
			return orchestrator.Request{Request: run.Request{Unit: u}, Find: find, Models: source}, err
		})
	})
	return errors.Join(err, done())
}

// runCases runs cases and shows what differs. What is asked for each is what request says.
func (a *app) runCases(
	ctx context.Context, l *local, cases []capsule.Case, request func(capsule.Case) (orchestrator.Request, error),
) error {
	var failed int
	for _, test := range cases {
		req, err := request(test)
		if err != nil {
			return err
		}
		differences, took, err := a.runCase(ctx, l, req, test)
		if err != nil {
			return err
		}
		a.showCase(test, differences, took)
		if len(differences) > 0 {
			failed++
		}
	}
	a.stdout.line("%d passed, %d failed", len(cases)-failed, failed)
	if failed > 0 {
		return exitFindings
	}
	return nil
}

// chosen returns the cases to run. If there are none, it returns a fault.
func chosen(c *capsule.Capsule, only string) ([]capsule.Case, error) {
	cases, err := c.Cases()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, test := range cases {
		if test.Name == only {
			return []capsule.Case{test}, nil
		}
		names = append(names, test.Name)
	}
	if only != "" {
		return nil, fault.New(fault.Input, "%s has no case %q", c.Name, only).
			WithHint("its cases are %s", strings.Join(names, ", "))
	}
	if len(cases) == 0 {
		return nil, fault.New(fault.NotFound, "%s has no test case", c.Name).
			WithHint(`write tests/first.json: {"input": {…}, "expect": {"output": {…}}}; see docs/capsules.md`)
	}
	return cases, nil
}

// runCase runs one case and says what differs from its expectation. The error is for AOD's
// own failures.
func (a *app) runCase(
	ctx context.Context, l *local, req orchestrator.Request, test capsule.Case,
) ([]string, time.Duration, error) {
	began := time.Now()
	out, err := os.MkdirTemp("", "aod-test-")
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = os.RemoveAll(out) }() // a temporary directory of ours
	view := newView(a.stderr, req.Unit.Name, a.quiet)
	req.Timeout, req.OutDir, req.Observe = test.Timeout, filepath.Join(out, "files"), view.event
	var walked flow.Walked
	if capsule.GraphOf(req.Unit.Definition) != nil {
		req.Extra = kindflow.Rehearsed{Rehearsal: cmp.Or(test.Rehearsal, &flow.Rehearsal{}), Walked: &walked}
	}
	record, err := submitCase(ctx, l, req, test)
	view.close()
	if err != nil {
		return nil, 0, err
	}
	if record.Outcome == api.WasCancelled {
		return nil, 0, context.Canceled
	}
	return append(cases.Compare(test.Expect, record), cases.ComparePath(test.Expect, walked.Path())...),
		time.Since(began), nil
}

// submitCase runs a case. An input that breaks the contract is a normal result: a test may
// expect it.
func submitCase(ctx context.Context, l *local, req orchestrator.Request, test capsule.Case) (api.Record, error) {
	input, err := contract.Decode(test.Input, contract.DefaultMaxBytes)
	if err != nil {
		return api.Record{}, err
	}
	req.Input = input
	for field, path := range test.Files {
		req.Files = append(req.Files, run.InputFile{Field: field, Path: path})
	}
	ended, err := l.Run(ctx, req)
	if ended.Record.ID == "" && fault.Is(err, fault.Input) {
		return refused(err), nil
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

func (a *app) showCase(test capsule.Case, differences []string, took time.Duration) {
	mark := a.stdout.style(green, "✓")
	if len(differences) > 0 {
		mark = a.stdout.style(red, "✗")
	}
	a.stdout.line("%s %s %s", mark, test.Name, a.stdout.style(dim, took.Round(time.Millisecond).String()))
	for _, d := range differences {
		a.stdout.line("    %s", printable(d))
	}
}
