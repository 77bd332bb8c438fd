package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/au/pipe"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/unit"
)

func (a *app) auPipeCommand() *cobra.Command {
	var flags auRunFlags
	cmd := &cobra.Command{
		Use:   `pipe "UNIT [ARGS...] | UNIT [ARGS...] | ..." | @TASKS.json`,
		Short: "Run units at the same time, each on what the one before prints",
		Long: `Run units at the same time, each in a sandbox of its own, on what the one before prints.

The first one reads stdin; stdout is the last one's. A unit's stdin ends when what the one
before has printed was found to be one whole JSON document. With the first that fails all
end, and with its exit code; --json prints the records of all.

No shell reads the line: quotes keep words together, and that is all. A file is a list of
tasks, {"id", "unit", "args", "prompt", "from", "timeout"}, where "from" is the id of an
earlier one; where they are no plain line, or the engine is elsewhere, they are run in turn.`,
		Example: `  aod au pipe "./examples/au/pdf | ./summary --words 100" --stdin report.pdf
  aod au pipe @tasks.json --stdin report.pdf --json`,
		Args: exactly(1, "one pipeline"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.pipeAUs(cmd.Context(), args[0], flags) },
	}
	cmd.Flags().StringVar(&flags.stdin, "stdin", "-", "the file that the first unit reads; - is our own stdin, unless that is a terminal")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", 0, "stop each unit after this time (default: its own limit, or 5m)")
	cmd.Flags().StringVar(&flags.maxStdin, "max-stdin", "", "the most that a unit gets on stdin, such as 200MiB (default 50MiB)")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print the records of all units that were run instead of the last result")
	return cmd
}

func (a *app) pipeAUs(ctx context.Context, text string, flags auRunFlags) error {
	tasks, err := pipe.Parse(text)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "aod-pipe-")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "results can't be kept").WithHint("is the disk of %s full?", os.TempDir())
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory of ours
	if flags.stdin, err = a.receiveOnce(flags, filepath.Join(dir, "stdin")); err != nil {
		return err
	}
	var records []api.Record
	err = a.withLocal(ctx, func(l *local) error {
		view := newView(a.stderr, "the pipeline", a.quiet)
		defer view.close()
		opts := pipe.Options{Stdin: flags.stdin, Dir: dir, Joined: !runtime.IsRemote(l.engine)}
		records, err = pipe.Run(ctx, tasks, auRunner{a: a, local: l, flags: flags, view: view}, opts)
		return err
	})
	if len(records) == 0 {
		return a.each(err)
	}
	return a.reportPipe(records, flags.json, err)
}

// reportPipe prints the result of a pipeline, or how each unit failed that did.
func (a *app) reportPipe(records []api.Record, all bool, failure error) error {
	decisive := pipe.Decisive(records)
	switch {
	case all:
		if err := a.stdout.json(records); err != nil {
			return err
		}
	case failure == nil && decisive.Outcome == api.Success:
		return a.report(decisive, "", asOutput, nil)
	default:
		failed := pipe.Failed(records)
		if len(failed) == 0 { // somebody cancelled it
			failed = []api.Record{decisive}
		}
		a.pipeErrors(failed, failure)
	}
	if failure != nil {
		return a.each(failure)
	}
	if code := exitCode(decisive); code != 0 {
		return exitError(code)
	}
	return nil
}

// pipeErrors prints how each of the records failed.
func (a *app) pipeErrors(failed []api.Record, failure error) {
	for _, r := range failed {
		told := failure != nil && r.Outcome == api.SystemError // by the failure
		if r.Error != nil && !told {
			a.stderr.runError(r.Unit, *r.Error)
		}
	}
}

// each prints the failures of several units in order. The exit code is that of the first.
func (a *app) each(failure error) error {
	var failures pipe.Failures
	if !errors.As(failure, &failures) {
		return failure
	}
	for _, err := range failures {
		a.stderr.fault(err)
	}
	return exitError(fault.ExitCode(failures[0]))
}

// auRunner runs units on this machine's engine.
type auRunner struct {
	a     *app
	local *local
	flags auRunFlags
	view  *view
}

// Prepare implements pipe.Runner: it asks the unit for its model card, which says whether the
// arguments are right.
func (r auRunner) Prepare(ctx context.Context, task pipe.Task, stdin string) (pipe.Unit, error) {
	c, err := r.a.loadAU(task.Unit)
	if err != nil {
		return nil, err
	}
	card, err := r.local.containers.Describe(ctx, unit.Of(c), r.watch(c.Name))
	if err != nil {
		return nil, err
	}
	if _, err := card.Args(au.Call{Args: task.Args, Prompt: task.Prompt}); err != nil {
		return nil, ofUnit(c.Name, err)
	}
	flags := r.flags
	flags.prompt, flags.timeout = task.Prompt, cmp.Or(task.Timeout, flags.timeout)
	req, err := flags.request(c, task.Args, r.a)
	req.Observe, req.Files = r.watch(c.Name), stdinFiles(stdin)
	return auUnit{local: r.local, req: req}, err
}

// ofUnit names the unit in an error that doesn't.
func ofUnit(name string, err error) error {
	named := *fault.Public(err)
	named.Msg = name + ": " + named.Msg
	return &named
}

// watch shows what a unit does. The pipeline goes on when one of its units is removed.
func (r auRunner) watch(name string) func(run.Event) {
	return func(e run.Event) {
		switch {
		case e.State == nil:
			r.view.event(e)
		case e.State.State == api.Starting || e.State.State == api.Running:
			r.view.waitFor("%s %s", name, e.State.State)
		}
	}
}

// auUnit is a unit with its input.
type auUnit struct {
	local *local
	req   orchestrator.Request
}

// Run implements pipe.Unit.
func (u auUnit) Run(ctx context.Context, join pipe.Join) (api.Record, error) {
	if join != (pipe.Join{}) {
		extra, _ := u.req.Extra.(container.Extra)
		extra.Stream = &container.Stream{Stdin: join.Stdin, Stdout: join.Stdout}
		u.req.Extra = extra
	}
	ended, err := u.local.Run(ctx, u.req)
	return ended.Record, err
}
