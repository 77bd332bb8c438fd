// Package runcmd is `aod run` and `aod rerun`: a run here or on a server, followed to its end. It must not know the
// root command.
//
// Its Go API may change with every release: see docs/stability.md.
package runcmd

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/questions"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/history"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Flags say what is run, and how its end is shown.
type Flags struct {
	Input      runflags.Input
	Out        string
	Timeout    time.Duration
	JSON       bool
	Text       bool // of a wrapped agent: its answer alone is printed
	Keep       bool
	Detach     bool
	Replace    bool // a directory may replace another upload of a server
	watch      bool
	answers    []string
	unattended bool
	Given      runflags.Given
	Sources    runflags.Sources
	Meta       runflags.Meta
	History    runlist.HistoryFlag
	Project    runflags.Project
	Start      runflags.Start
}

// Command is `aod run`.
func Command(env *cli.Env) *cobra.Command {
	var flags Flags
	cmd := &cobra.Command{
		Use:   "run DIR|NAME",
		Short: "Run a capsule once and print its result",
		Long: `Run a capsule once, in a fresh container that is gone afterwards.

stdout is the result and nothing else; stderr is progress and what the capsule logs.
Output files land in --out. With --server it runs there: NAME is a unit of the server, and
a path, such as ./NAME, is uploaded first. Without one NAME is looked for in --units, then
in the current directory. Exit codes: 0 success, the capsule's own code when it
failed (137: killed for memory), 1 when its result breaks its contract, 2 when the
input does (nothing is started), 124 timeout, 125 AOD itself failed, 130 interrupted.`,
		Example: `  aod run ./hello --set name=Ada --set times=2
  aod run ./csv-report --file table=sales.csv --out report
  aod run ./hello --input '{"name": "Ada"}' | jq .greeting
  aod run ./hello --input @input.json --json
  cat input.json | aod run ./hello --input -
  aod run ./hello --set name=Ada --watch
  aod run hello --set name=Ada --server http://127.0.0.1:7070`,
		Args: cli.Exactly(1, "one directory or name of a capsule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.watch {
				return watchRuns(cmd.Context(), env, args[0], flags)
			}
			return Run(cmd.Context(), env, args[0], flags)
		},
	}
	flags.Input.Register(cmd.Flags())
	flags.Given.Register(cmd.Flags())
	flags.Sources.Register(cmd.Flags())
	cmd.Flags().StringVarP(&flags.Out, "out", "o", "", "directory for output files (default aod-output/RUN-ID)")
	cmd.Flags().DurationVar(&flags.Timeout, "timeout", 0,
		"stop the run after this time, e.g. 30s (default: the capsule's, or 1m)")
	cmd.Flags().BoolVar(&flags.JSON, "json", false, "print the whole run record instead of the result")
	flags.Meta.Register(cmd.Flags(), "with --server: what the run is about, for aod ps --meta")
	cmd.Flags().BoolVar(&flags.Keep, "keep", false, "leave the run's directory for a look")
	flags.registerAnswers(cmd.Flags())
	cmd.Flags().BoolVar(&flags.unattended, "unattended", false,
		"with --server: nobody answers what the run asks, which is denied at once")
	cmd.Flags().BoolVar(&flags.Detach, "detach", false, "with --server: print the run's id and don't wait for it")
	flags.RegisterReplace(cmd.Flags())
	flags.History.Register(cmd.Flags())
	flags.Project.Register(cmd.Flags())
	RegisterWatch(cmd.Flags(), &flags.watch)
	return cli.TellErrors(cmd)
}

// RegisterReplace adds --replace to a command.
func (f *Flags) RegisterReplace(set *pflag.FlagSet) {
	set.BoolVar(&f.Replace, "replace", false, "with --server: a directory may replace the unit of its name")
}

func (f *Flags) registerAnswers(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.answers, "answer", nil,
		"of a run here: answer what it asks, ANSWER, or NODE=ACTION for a node of a flow; may be repeated (default: "+
			"the terminal is asked)")
}

// RefuseOnServer returns a fault if a flag is set that only means something here.
func (f *Flags) RefuseOnServer() error {
	return errors.Join(f.Given.RefuseOnServer(), f.Sources.RefuseOnServer(), f.refuseAnswers())
}

func (f *Flags) refuseAnswers() error {
	if len(f.answers) == 0 {
		return nil
	}
	return fault.New(fault.Input, "--answer is for runs here").
		WithHint("a server waits for answers: aod questions, aod answer")
}

// Run is `aod run`, here or on a server.
func Run(ctx context.Context, env *cli.Env, name string, flags Flags) error {
	if flags.Timeout < 0 {
		return fault.New(fault.Input, "--timeout must be positive, not %v", flags.Timeout)
	}
	if env.Server != "" {
		if err := flags.RefuseOnServer(); err != nil {
			return err
		}
		return runOnServer(ctx, env, name, flags)
	}
	if flags.Replace {
		return fault.New(fault.Input, "--replace is for uploads to a server").
			WithHint("name the server with --server URL")
	}
	if flags.Detach {
		return fault.New(fault.Input, "--detach needs a server that goes on with the run").
			WithHint("start one with `aod serve` and name it with --server URL")
	}
	if len(flags.Meta) > 0 {
		return fault.New(fault.Input, "--meta needs a server that remembers it").
			WithHint("start one with `aod serve` and name it with --server URL")
	}
	c, err := lookup.Load(env, name)
	if err != nil {
		return err
	}
	req, err := flags.Request(ctx, c, env)
	if err != nil {
		return err
	}
	return runHere(ctx, env, c.Dir, req, flags)
}

// runHere runs a unit of a directory on this machine.
func runHere(ctx context.Context, env *cli.Env, dir string, req orchestrator.Request, flags Flags) error {
	if err := flags.History.Check(); err != nil {
		return err
	}
	if err := remember(env, &req, dir, flags); err != nil {
		return err
	}
	return flags.Sources.WithUnit(ctx, env, req, func(ctx context.Context, l *cli.Local) error {
		return RunRequest(ctx, env, l, req, flags)
	})
}

// Request makes a request for a run on this machine of the flags.
func (f Flags) Request(ctx context.Context, c *capsule.Capsule, env *cli.Env) (orchestrator.Request, error) {
	u, err := f.Given.Unit(c, f.Sources.Upstreams)
	if err != nil {
		return orchestrator.Request{}, err
	}
	input, files, err := f.Input.Read(c.Contract.Input, env.In)
	if err != nil {
		return orchestrator.Request{}, err
	}
	id, out, err := f.place()
	if err != nil {
		return orchestrator.Request{}, err
	}
	answers := questions.ReadGiven(env, f.answers)
	project, err := f.Project.Place(ctx, env, c)
	if err != nil {
		return orchestrator.Request{}, err
	}
	variables, err := f.Start.Variables()
	if err != nil {
		return orchestrator.Request{}, err
	}
	return orchestrator.Request{
		Request: run.Request{
			Unit: u, Input: input, Files: files, Timeout: f.Timeout, Project: project,
			Start: capsule.AgentStart{Env: variables, Dir: f.Start.Dir},
		},
		ID: id, OutDir: out, Keep: f.Keep, Find: lookup.Callees(env, u, c), Answer: answers.Answer,
	}, nil
}

// place returns the id of a new run, and the directory of its output files.
func (f Flags) place() (id, out string, err error) {
	if id, err = run.NewID(); err != nil {
		return "", "", err
	}
	if out, err = filepath.Abs(cmp.Or(f.Out, filepath.Join("aod-output", id))); err != nil {
		return "", "", fault.Wrap(fault.Input, err, "--out %q can't be used", f.Out)
	}
	return id, out, nil
}

// RunRequest makes a run on this machine, and reports its end.
func RunRequest(ctx context.Context, env *cli.Env, l *cli.Local, req orchestrator.Request, flags Flags) error {
	view := progress.New(env.Err, req.Unit.Name, env.Quiet)
	req.Observe = view.Event
	if answer := req.Answer; answer != nil {
		req.Answer = func(ctx context.Context, q run.Question) (run.Answer, error) {
			defer view.Hold()()
			return answer(ctx, q)
		}
	}
	ended, err := l.Runs.Run(ctx, req)
	view.Close()
	if ended.Record.ID == "" { // it was refused
		return err
	}
	err = Report(env, ended.Record, ended.KeptAt, flags.Form(), err)
	noteRun(env, ended, flags)
	return err
}

// remember makes a run one that is kept.
func remember(env *cli.Env, req *orchestrator.Request, dir string, flags Flags) error {
	secrets, err := flags.Sources.Secrets.Files()
	if err != nil {
		return err
	}
	req.History = history.New(env.Data, int(flags.History))
	req.Source = history.Source{Dir: dir, Secrets: secrets, MayCall: flags.Given.MayCall, Start: req.Start}
	for flag, path := range map[string]struct {
		given  string
		stored *string
	}{
		"--unit-config": {flags.Given.File, &req.Source.UnitConfig},
		"--upstreams":   {flags.Sources.Upstreams, &req.Source.Upstreams},
		"--models":      {flags.Sources.Models.File, &req.Source.Models},
	} {
		if path.given == "" {
			continue
		}
		if *path.stored, err = filepath.Abs(path.given); err != nil {
			return fault.Wrap(fault.Input, err, "%s: its path can't be used", flag)
		}
	}
	return nil
}
