package capsules

import (
	"cmp"
	"context"
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
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator"
	kindflow "github.com/agent-on-demand/aod/orchestrator/kind/flow"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// TestCommand is `aod test`.
func TestCommand(env *cli.Env) *cobra.Command {
	var flags testFlags
	var watch bool
	cmd := &cobra.Command{
		Use:   "test DIR|NAME",
		Short: "Run a capsule's test cases in the sandbox",
		Long: `Run the cases in the capsule's tests/*.json, each in a fresh container, and print
what differs. Exit code 1 when a case fails.`,
		Example: "  aod test ./my-capsule\n  aod test ./my-capsule --case empty\n  aod test ./my-capsule --watch\n" +
			"  aod test ./my-capsule --junit report.xml",
		Args: cli.Exactly(1, "one directory or name of a capsule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			test := func(ctx context.Context) error { return test(ctx, env, args[0], flags) }
			if watch {
				return runcmd.Watch(cmd.Context(), env, args[0], nil, test)
			}
			return test(cmd.Context())
		},
	}
	flags.given.Register(cmd.Flags())
	flags.sources.Register(cmd.Flags())
	runcmd.RegisterWatch(cmd.Flags(), &watch)
	cmd.Flags().StringVar(&flags.only, "case", "", "run only the case of this name (its file without .json)")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print the results as a JSON object")
	cmd.Flags().StringVar(&flags.junit, "junit", "", "also write the results into this file, as JUnit XML")
	return cli.TellErrors(cmd)
}

type testFlags struct {
	only    string
	given   runflags.Given
	sources runflags.Sources
	json    bool
	junit   string
}

func test(ctx context.Context, env *cli.Env, name string, flags testFlags) error {
	answers := &flags.sources.Models
	c, err := lookup.Load(env, name)
	if err != nil {
		return err
	}
	if err := answers.Touch(); err != nil {
		return err
	}
	cases, err := chosen(c, flags.only)
	if err != nil {
		return err
	}
	u, err := flags.given.Unit(c, flags.sources.Upstreams)
	if err != nil {
		return err
	}
	find := lookup.Callees(env, u, c)
	answers.Answered = slices.ContainsFunc(cases,
		func(c capsule.Case) bool { return c.Models != nil || c.Cassette != "" })
	results := testResults{Unit: u.Name, Cases: []caseResult{}}
	req := orchestrator.Request{Request: run.Request{Unit: u}, Find: find}
	err = flags.sources.WithUnit(ctx, env, req, func(ctx context.Context, l *cli.Local) error {
		return results.run(env, l, req, cases, flags.json, func(test capsule.Case) (context.Context, error) {
			return answers.OfCase(ctx, test)
		})
	})
	if err != nil {
		return err
	}
	return results.tell(env, flags)
}

// run runs cases, and shows what differs unless quiet is set. Each is asked for with a context of its own.
func (r *testResults) run(env *cli.Env, l *cli.Local, req orchestrator.Request, cases []capsule.Case, quiet bool,
	contextOf func(capsule.Case) (context.Context, error),
) error {
	for _, test := range cases {
		ctx, err := contextOf(test)
		if err != nil {
			return err
		}
		differences, took, err := runCase(ctx, env, l, req, test)
		if err != nil {
			return err
		}
		if !quiet {
			showCase(env, test, differences, took)
		}
		r.add(test.Name, differences, took)
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
func runCase(
	ctx context.Context, env *cli.Env, l *cli.Local, req orchestrator.Request, test capsule.Case,
) ([]string, time.Duration, error) {
	began := time.Now()
	out, err := os.MkdirTemp("", "aod-test-")
	if err != nil {
		return nil, 0, cli.NotKept(err, "what the case makes")
	}
	defer func() { _ = os.RemoveAll(out) }() // a temporary directory of ours
	view := progress.New(env.Err, req.Unit.Name, env.Quiet)
	req.Timeout, req.OutDir, req.Observe = test.Timeout, filepath.Join(out, "files"), view.Event
	var walked flow.Walked
	if capsule.GraphOf(req.Unit.Definition) != nil {
		req.Extra = kindflow.Rehearsed{Rehearsal: cmp.Or(test.Rehearsal, &flow.Rehearsal{}), Walked: &walked}
	}
	record, err := submitCase(ctx, l, req, test)
	view.Close()
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
func submitCase(ctx context.Context, l *cli.Local, req orchestrator.Request, test capsule.Case) (api.Record, error) {
	input, err := contract.Decode(test.Input, contract.DefaultMaxBytes)
	if err != nil {
		return api.Record{}, err
	}
	req.Input = input
	for field, path := range test.Files {
		req.Files = append(req.Files, run.InputFile{Field: field, Path: path})
	}
	ended, err := l.Runs.Run(ctx, req)
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

func showCase(env *cli.Env, test capsule.Case, differences []string, took time.Duration) {
	mark := env.Out.Style(ui.Green, "✓")
	if len(differences) > 0 {
		mark = env.Out.Style(ui.Red, "✗")
	}
	env.Out.Line("%s %s %s", mark, test.Name, env.Out.Style(ui.Dim, took.Round(time.Millisecond).String()))
	for _, d := range differences {
		env.Out.Line("    %s", ui.Printable(d))
	}
}
