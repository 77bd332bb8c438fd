package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/au/pipe"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/runtime"
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
tasks, {"id", "unit", "args", "prompt", "from"}, where "from" is the id of an earlier one;
where they are no plain line, or the engine is elsewhere, they are run in turn.`,
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
		view := newView(a.stderr, tasks[0].Unit, a.quiet)
		defer view.close()
		opts := pipe.Options{Stdin: flags.stdin, Dir: dir, Joined: !runtime.IsRemote(l.engine)}
		records, err = pipe.Run(ctx, tasks, auRunner{a: a, local: l, flags: flags, view: view}, opts)
		return err
	})
	if len(records) == 0 {
		return err
	}
	return a.reportPipe(records, flags.json, err)
}

// reportPipe prints the result of a pipeline, which is decided by its last record.
func (a *app) reportPipe(records []api.Record, all bool, failure error) error {
	last := pipe.Decisive(records)
	if !all {
		return a.report(last, "", false, failure)
	}
	if err := a.stdout.json(records); err != nil {
		return err
	}
	if code := exitCode(last); code != 0 && failure == nil {
		return exitError(code)
	}
	return failure
}

// auRunner runs units on this machine's engine.
type auRunner struct {
	a     *app
	local *local
	flags auRunFlags
	view  *view
}

// Prepare implements pipe.Runner. The unit's input is a file by now.
func (r auRunner) Prepare(task pipe.Task, stdin string) (pipe.Unit, error) {
	c, err := r.a.loadAU(task.Unit)
	if err != nil {
		return nil, err
	}
	flags := r.flags
	flags.prompt, flags.stdin = task.Prompt, stdin
	req, _, err := flags.request(c, task.Args, r.a)
	req.Observe = r.view.event
	return auUnit{local: r.local, req: req}, err
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

// receiveOnce stores our own stdin in a file, which several tasks may read.
func (a *app) receiveOnce(flags auRunFlags, name string) (string, error) {
	if flags.stdin != "-" {
		return flags.stdin, nil
	}
	if a.stdinIsTerminal() {
		return "", nil
	}
	limit, err := flags.stdinBytes()
	if err != nil {
		return "", err
	}
	return name, receive(name, a.stdin, limit)
}
