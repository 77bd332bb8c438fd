package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/runtime"
)

func (a *app) auPipeCommand() *cobra.Command {
	var flags auRunFlags
	cmd := &cobra.Command{
		Use:   `pipe "UNIT [ARGS...] | UNIT [ARGS...] | ..." | @TASKS.json`,
		Short: "Run units one after the other, each on the result of the one before",
		Long: `Run units one after the other, each in a sandbox of its own.

The first one reads stdin; each later one gets the JSON of the one before, when that has
been found to be whole. stdout is the last one's. It ends with the first that fails, and
with its exit code; --json prints the records of all that were run by then.

No shell reads the line: quotes keep words together, and that is all. A file is a list of
tasks, {"id", "unit", "args", "prompt", "from"}, where "from" is the id of an earlier one.`,
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
	var records []orchestrator.Record
	err = a.withOrchestrator(ctx, func(o *orchestrator.Orchestrator, _ runtime.Engine) error {
		p := auPipe{a: a, o: o, flags: flags, dir: dir}
		records, err = p.run(ctx, tasks)
		return err
	})
	if len(records) == 0 {
		return err
	}
	return a.reportPipe(records, flags.json, err)
}

// reportPipe prints what came of a pipeline, which ended with its last record.
func (a *app) reportPipe(records []orchestrator.Record, all bool, failure error) error {
	last := records[len(records)-1]
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
}

// run returns the records of all that were run: the last of them failed, or all is done.
func (p *auPipe) run(ctx context.Context, tasks []auTask) (records []orchestrator.Record, err error) {
	for _, task := range tasks {
		record, err := p.task(ctx, task)
		if record.ID != "" {
			records = append(records, record)
		}
		if err != nil || record.Outcome != orchestrator.Success {
			return records, err
		}
		if err := os.WriteFile(p.result(task.ID), record.Output, 0o600); err != nil {
			return records, fault.Wrap(fault.Unavailable, err, "a result can't be kept").WithHint("is the disk of %s full?", os.TempDir())
		}
	}
	return records, nil
}

func (p *auPipe) result(id string) string { return filepath.Join(p.dir, id+".json") }

func (p *auPipe) task(ctx context.Context, task auTask) (orchestrator.Record, error) {
	c, err := p.a.loadAU(task.Unit)
	if err != nil {
		return orchestrator.Record{}, err
	}
	flags := p.flags
	flags.prompt = task.Prompt
	if task.From != "" {
		flags.stdin = p.result(task.From)
	}
	req, done, err := flags.request(c, task.Args, p.a)
	if err != nil {
		return orchestrator.Record{}, err
	}
	defer done()
	view := newView(p.a.stderr, c.Name, p.a.quiet)
	defer view.close()
	req.Observe = view.event
	run, err := p.o.Submit(ctx, req)
	if err != nil {
		return orchestrator.Record{}, err
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
