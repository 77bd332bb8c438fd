// Package testcmd is `aod test`: it runs the test cases of a unit, each once or many times, and says how they went.
//
//	variantsOf (variants.go)   the units or models that are compared: mostly one
//	suite.run (suite.go)       runs the cases of one, some at once
//	suite.runCase (case.go)    one run of one case; grader.grade (grade.go) has a unit grade it
//	openJournal (resume.go)    what a test that was killed has done
//	repetitionsOf (results.go) what came of a case: how often it passed, how long it took, for how much
//	report.tell (report.go)    says so: to a person (show.go), to CI (junit.go)
//
// What repetitions mean is in capsule/evals, what differs from what a case expects in capsule/cases. It must not know
// how a run is made.
//
// Its Go API may change with every release: see docs/stability.md.
package testcmd

import (
	"context"
	goruntime "runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
)

// New is `aod test`.
func New(env *cli.Env) *cobra.Command {
	var flags testFlags
	var watch bool
	cmd := &cobra.Command{
		Use:   "test DIR|NAME",
		Short: "Run a capsule's test cases in the sandbox",
		Long: `Run the cases in the capsule's tests/*.json, each in a fresh container, and print
what differs. Exit code 1 when a case fails.

A model doesn't answer the same each time: --repeat runs each case so often, and prints
how often it passed, in which interval that rate lies at 95 %, how likely one of k runs
passes (pass@k) and all of k do (pass^k), times, tokens and costs.`,
		Example: "  aod test ./my-capsule\n  aod test ./my-capsule --case empty\n  aod test ./my-capsule --watch\n" +
			"  aod test ./my-agent --repeat 20 --jobs 4 --min-pass 0.9 --junit report.xml",
		Args: cli.Exactly(1, "one directory or name of a capsule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			test := func(ctx context.Context) error { return test(ctx, env, args[0], flags) }
			if watch {
				return runcmd.Watch(cmd.Context(), env, args[0], nil, test)
			}
			return test(cmd.Context())
		},
	}
	flags.register(cmd, &watch)
	return cli.TellErrors(cmd)
}

type testFlags struct {
	only     string
	given    runflags.Given
	sources  runflags.Sources
	json     bool
	markdown bool
	junit    string
	repeat   int
	jobs     int
	minPass  float64
	models   []string
	against  string
	resume   string
	atMost   string // --max-cost
	maxCost  api.Cost
}

func (f *testFlags) register(cmd *cobra.Command, watch *bool) {
	flags := cmd.Flags()
	f.given.Register(flags)
	f.sources.Register(flags)
	runcmd.RegisterWatch(flags, watch)
	flags.StringVar(&f.only, "case", "", "run only the case of this name (its file without .json)")
	flags.IntVar(&f.repeat, "repeat", 1, "run each case so often (to 1000)")
	flags.IntVar(&f.jobs, "jobs", 1, "runs at once (to 64)")
	flags.Float64Var(&f.minPass, "min-pass", 1, "the share of a case's runs that has to pass, from 0 to 1")
	flags.StringVar(&f.atMost, "max-cost", "",
		"start no further run when models have cost so much, in the currency of their prices")
	flags.StringArrayVar(&f.models, "model", nil,
		"ask this model in the place of those that units name; may be repeated, to compare models")
	flags.StringVar(&f.against, "against", "",
		"compare with the unit as it is in this directory, or was at this commit or branch of git")
	flags.StringVar(&f.resume, "resume", "",
		"keep what is done in this directory, and go on with what an earlier call has left there")
	flags.BoolVar(&f.json, "json", false, "print the results as a JSON object")
	flags.BoolVar(&f.markdown, "markdown", false, "print the results as a table for a pull request")
	flags.StringVar(&f.junit, "junit", "", "also write the results into this file, as JUnit XML")
}

const (
	maxRepeat = 1000
	maxJobs   = 64
)

// check returns an Input fault for a number that has no meaning.
func (f *testFlags) check() error {
	var unread error
	if f.atMost != "" {
		unread = f.maxCost.UnmarshalJSON([]byte(f.atMost))
	}
	switch {
	case f.repeat < 1 || f.repeat > maxRepeat:
		return fault.New(fault.Input, "--repeat is %d: from 1 to %d is possible", f.repeat, maxRepeat)
	case f.jobs < 1 || f.jobs > maxJobs:
		return fault.New(fault.Input, "--jobs is %d: from 1 to %d is possible", f.jobs, maxJobs)
	case !(f.minPass >= 0 && f.minPass <= 1):
		return fault.New(fault.Input, "--min-pass is %g: it is a share, from 0 to 1", f.minPass)
	case unread != nil || f.maxCost <= 0 && f.atMost != "":
		return fault.New(fault.Input, "--max-cost is %s: it is an amount above 0, such as 2.50", fault.Quote(f.atMost))
	case f.against != "" && len(f.models) > 1:
		return fault.New(fault.Input, "--against and several --model compare two things at once").
			WithHint("compare one of them at a time")
	case f.resume != "" && f.sources.Models.Records():
		return fault.New(fault.Input, "--resume has a cassette of its own").WithHint("leave out --record and --replay")
	case len(f.models) > 1 && f.sources.Models.Records():
		return fault.New(fault.Input, "a cassette is of one model").
			WithHint("give one --model with --record or --replay")
	case f.json && f.markdown:
		return fault.New(fault.Input, "--json and --markdown are two forms of one output").WithHint("give one of them")
	}
	return nil
}

// asLines reports whether each case has a line when it is over.
func (f *testFlags) asLines() bool { return !f.json && !f.markdown }

func test(ctx context.Context, env *cli.Env, name string, flags testFlags) error {
	c, err := lookup.Load(env, name)
	if err != nil {
		return err
	}
	if err := flags.sources.Models.Touch(); err != nil {
		return err
	}
	cases, err := chosen(c, flags.only)
	if err != nil {
		return err
	}
	flags.sources.AtOnce = max(flags.jobs, 2*goruntime.NumCPU()) // what a run calls has a slot, too
	all, err := variantsOf(ctx, env, c, &flags)
	if err != nil {
		return err
	}
	defer all.close()
	of, err := testOf(all.list, cases, flags)
	if err != nil {
		return err
	}
	kept, err := openJournal(flags.resume, of)
	if err != nil {
		return err
	}
	defer kept.close()
	var r report
	for i, v := range all.list {
		v.number, v.kept = i, kept
		made, err := v.test(ctx, env, cases, flags)
		if err != nil {
			return err
		}
		r.add(made)
	}
	return r.tell(env, flags)
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
