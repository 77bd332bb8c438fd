package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator"
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
	tasks, err := parsePipeline(text)
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
	err = a.withOrchestrator(ctx, func(o *orchestrator.Orchestrator, engine runtime.Engine) error {
		p := auPipe{a: a, o: o, flags: flags, dir: dir, view: newView(a.stderr, tasks[0].Unit, a.quiet)}
		defer p.view.close()
		way := p.inTurn
		if isLine(tasks) && !runtime.IsRemote(engine) {
			way = p.atOnce
		}
		records, err = way(ctx, tasks)
		return err
	})
	if len(records) == 0 {
		return err
	}
	return a.reportPipe(records, flags.json, err)
}

// reportPipe prints what came of a pipeline, which ended with its last record.
func (a *app) reportPipe(records []api.Record, all bool, failure error) error {
	last := decisive(records)
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

// auPipe runs a pipeline's tasks.
type auPipe struct {
	a     *app
	o     *orchestrator.Orchestrator
	flags auRunFlags
	dir   string // of the results
	view  *view
}

// inTurn runs the tasks one after the other, each on a result that is there. It returns
// the records of all that were run: the last of them failed, or all is done.
func (p *auPipe) inTurn(ctx context.Context, tasks []auTask) (records []api.Record, err error) {
	for _, task := range tasks {
		record, err := p.onFile(ctx, task)
		if record.ID != "" {
			records = append(records, record)
		}
		if err != nil || record.Outcome != api.Success {
			return records, err
		}
		if err := os.WriteFile(p.result(task.ID), record.Output, 0o600); err != nil {
			return records, fault.Wrap(fault.Unavailable, err, "a result can't be kept").WithHint("is the disk of %s full?", os.TempDir())
		}
	}
	return records, nil
}

func (p *auPipe) result(id string) string { return filepath.Join(p.dir, id+".json") }

func (p *auPipe) onFile(ctx context.Context, task auTask) (api.Record, error) {
	flags := p.flags
	if task.From != "" {
		flags.stdin = p.result(task.From)
	}
	req, err := p.request(task, flags)
	if err != nil {
		return api.Record{}, err
	}
	return p.wait(ctx, req)
}

// request asks for a task's run. What it reads is a file by now.
func (p *auPipe) request(task auTask, flags auRunFlags) (orchestrator.Request, error) {
	c, err := p.a.loadAU(task.Unit)
	if err != nil {
		return orchestrator.Request{}, err
	}
	flags.prompt = task.Prompt
	req, _, err := flags.request(c, task.Args, p.a)
	req.Observe = p.view.event
	return req, err
}

func (p *auPipe) wait(ctx context.Context, req orchestrator.Request) (api.Record, error) {
	run, err := p.o.Submit(ctx, req)
	if err != nil {
		return api.Record{}, err
	}
	return run.Wait()
}

// receiveOnce makes a file of our own stdin, which several tasks may read.
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
