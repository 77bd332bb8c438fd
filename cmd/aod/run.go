package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

type runFlags struct {
	input      inputFlags
	out        string
	timeout    time.Duration
	json       bool
	text       bool // of a wrapped agent: its answer alone is printed
	keep       bool
	detach     bool
	watch      bool
	secrets    []string
	answers    []string
	unattended bool
	given      givenFlags
	models     modelFlags
	meta       metaFlags
	history    historyFlag
	project    projectFlags
	start      startFlags
}

func (a *app) runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run DIR|NAME",
		Short: "Run a capsule once and print its result",
		Long: `Run a capsule once, in a fresh container that is gone afterwards.

stdout is the result and nothing else; stderr is progress and what the capsule logs.
Output files land in --out. With --server it runs there: a directory is uploaded first,
a name is one of the server's. Exit codes: 0 success, the capsule's own code when it
failed (137: killed for memory), 1 when its result breaks its contract, 2 when the
input does (nothing is started), 124 timeout, 125 AOD itself failed, 130 interrupted.`,
		Example: `  aod run ./hello --set name=Ada --set times=2
  aod run ./csv-report --file table=sales.csv --out report
  aod run ./hello --input '{"name": "Ada"}' | jq .greeting
  aod run ./hello --input @input.json --json
  cat input.json | aod run ./hello --input -
  aod run ./hello --set name=Ada --watch
  aod run hello --set name=Ada --server http://127.0.0.1:7070`,
		Args: exactly(1, "one directory or name of a capsule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.watch {
				return a.watchRuns(cmd.Context(), args[0], flags)
			}
			return a.runCapsule(cmd.Context(), args[0], flags)
		},
	}
	flags.input.register(cmd.Flags())
	flags.given.register(cmd.Flags())
	flags.models.register(cmd.Flags())
	cmd.Flags().StringVarP(&flags.out, "out", "o", "", "directory for output files (default aod-output/RUN-ID)")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", 0,
		"stop the run after this time, e.g. 30s (default: the capsule's, or 1m)")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print the whole run record instead of the result")
	flags.meta.register(cmd.Flags(), "with --server: what the run is about, for aod ps --meta")
	cmd.Flags().BoolVar(&flags.keep, "keep", false, "leave the run's directory for a look")
	cmd.Flags().StringArrayVar(&flags.secrets, "secret", nil,
		"a secret that a unit names, NAME=FILE; may be repeated (default: the files in DATA/secrets)")
	cmd.Flags().StringArrayVar(&flags.answers, "answer", nil,
		"of a run here: answer what it asks, ANSWER, or NODE=ACTION for a node of a flow; may be repeated (default: "+
			"the terminal is asked)")
	cmd.Flags().BoolVar(&flags.unattended, "unattended", false,
		"with --server: nobody answers what the run asks, which is denied at once")
	cmd.Flags().BoolVar(&flags.detach, "detach", false, "with --server: print the run's id and don't wait for it")
	flags.history.register(cmd.Flags())
	flags.project.register(cmd.Flags())
	registerWatch(cmd.Flags(), &flags.watch)
	return cmd
}

func (a *app) runCapsule(ctx context.Context, name string, flags runFlags) error {
	if flags.timeout < 0 {
		return fault.New(fault.Input, "--timeout %v is no time to run in", flags.timeout)
	}
	if a.server != "" {
		if err := errors.Join(flags.given.refuseOnServer(), flags.models.refuseOnServer()); err != nil {
			return err
		}
		if len(flags.answers) > 0 {
			return fault.New(fault.Input, "--answer is for runs here").
				WithHint("a server waits for answers: aod questions, aod answer")
		}
		return a.runOnServer(ctx, name, flags)
	}
	if flags.detach {
		return fault.New(fault.Input, "--detach needs a server that goes on with the run").
			WithHint("start one with `aod serve` and name it with --server URL")
	}
	if len(flags.meta) > 0 {
		return fault.New(fault.Input, "--meta needs a server that remembers it").
			WithHint("start one with `aod serve` and name it with --server URL")
	}
	c, err := a.load(name)
	if err != nil {
		return err
	}
	req, err := flags.request(ctx, c, a)
	if err != nil {
		return err
	}
	return a.runHere(ctx, c.Dir, req, flags)
}

// runHere runs a unit of a directory on this machine.
func (a *app) runHere(ctx context.Context, dir string, req orchestrator.Request, flags runFlags) (err error) {
	if err := flags.history.check(); err != nil {
		return err
	}
	if err := a.remember(&req, dir, flags); err != nil {
		return err
	}
	opts := localOptions{secrets: req.Source.Secrets, upstreams: flags.given.upstreams, find: req.Find}
	if opts.models, err = flags.models.open(a, req.Unit, req.Find); err != nil {
		return err
	}
	defer opts.models.Gateway.Close()
	source, done, err := flags.models.source()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	req.Models = source
	return a.withUnit(ctx, req.Unit, opts, func(l *local) error {
		return a.runRequest(ctx, l, req, flags)
	})
}

// secretFiles parses --secret NAME=FILE. The files are read when a unit needs them.
func secretFiles(flags []string) (map[string]string, error) {
	files := map[string]string{}
	for _, pair := range flags {
		name, path, ok := strings.Cut(pair, "=")
		if !ok || name == "" || path == "" {
			return nil, fault.New(fault.Input, "--secret takes NAME=FILE").
				WithHint("the value itself never stands on a command line")
		}
		if files[name] != "" {
			return nil, fault.New(fault.Input, "--secret names %q twice", name)
		}
		files[name] = path
	}
	return files, nil
}

func (f runFlags) request(ctx context.Context, c *capsule.Capsule, a *app) (orchestrator.Request, error) {
	u, err := f.given.unit(c)
	if err != nil {
		return orchestrator.Request{}, err
	}
	input, files, err := f.input.read(c.Contract.Input, a.stdin)
	if err != nil {
		return orchestrator.Request{}, err
	}
	id, out, err := f.place()
	if err != nil {
		return orchestrator.Request{}, err
	}
	answers := a.answerGiven(f.answers)
	project, err := f.project.place(ctx, a, c)
	if err != nil {
		return orchestrator.Request{}, err
	}
	env, err := f.start.variables()
	if err != nil {
		return orchestrator.Request{}, err
	}
	return orchestrator.Request{
		Request: run.Request{
			Unit: u, Input: input, Files: files, Timeout: f.timeout, Project: project,
			Start: capsule.AgentStart{Env: env, Dir: f.start.dir},
		},
		ID: id, OutDir: out, Keep: f.keep, Find: a.callees(u, c), Answer: answers.answer,
	}, nil
}

// place returns the id of a new run, and the directory of its output files.
func (f runFlags) place() (id, out string, err error) {
	if id, err = run.NewID(); err != nil {
		return "", "", err
	}
	if out, err = filepath.Abs(cmp.Or(f.out, filepath.Join("aod-output", id))); err != nil {
		return "", "", fault.Wrap(fault.Input, err, "--out %q can't be used", f.out)
	}
	return id, out, nil
}

func (a *app) runRequest(ctx context.Context, l *local, req orchestrator.Request, flags runFlags) error {
	view := newView(a.stderr, req.Unit.Name, a.quiet)
	req.Observe = view.event
	if answer := req.Answer; answer != nil {
		req.Answer = func(ctx context.Context, q run.Question) (run.Answer, error) {
			defer view.hold()()
			return answer(ctx, q)
		}
	}
	ended, err := l.Run(ctx, req)
	view.close()
	if ended.Record.ID == "" { // it was refused
		return err
	}
	err = a.report(ended.Record, ended.KeptAt, flags.form(), err)
	a.noteRun(ended, flags)
	return err
}

// form is how the end of a run is printed.
type form uint8

const (
	asOutput form = iota
	asRecord
	asText // of a wrapped agent: its answer, where it has the field text
)

func (f runFlags) form() form {
	switch {
	case f.json:
		return asRecord
	case f.text:
		return asText
	}
	return asOutput
}

// printRun prints a run's record, or its output if it has one.
func (a *app) printRun(record api.Record, as form) error {
	var answer struct{ Text *string }
	switch {
	case as == asRecord:
		return a.stdout.json(record)
	case record.Outcome != api.Success:
		return nil
	case as == asText && json.Unmarshal(record.Output, &answer) == nil && answer.Text != nil:
		text := *answer.Text
		if a.stdout.terminal {
			text = printable(text)
		}
		a.stdout.line("%s", text)
		return nil
	}
	return a.stdout.json(record.Output)
}

// report prints the result and returns the error that determines the exit code.
func (a *app) report(record api.Record, kept string, as form, failure error) error {
	if err := a.printRun(record, as); err != nil {
		return err
	}
	for _, f := range record.Files {
		a.note("%s %s", printable(relative(f.Path)), a.stderr.style(dim, bytesText(f.SizeBytes)))
	}
	if kept != "" {
		a.stderr.line("the run's directory was kept: %s", kept)
	}
	if failure != nil {
		return failure
	}
	if record.Error != nil {
		a.stderr.runError(record.Unit, *record.Error)
	}
	if code := exitCode(record); code != 0 {
		return exitError(code)
	}
	return nil
}

// runError prints how a run failed.
func (o *output) runError(unit string, e api.RunError) {
	message := printable(e.Message)
	if e.Type != "" {
		message = printable(e.Type) + ": " + message
	}
	o.line("%s %s", o.style(red, printable(unit)+":"), message)
	o.findings(unsaid(e.Findings, e.Message))
	if e.Hint != "" {
		o.line("  %s %s", o.style(dim, "hint:"), printable(e.Hint))
	}
}

// exitCode is the exit code for a run.
func exitCode(record api.Record) int {
	switch record.Outcome {
	case api.Success:
		return 0
	case api.InvalidInput:
		return fault.ExitCode(fault.New(fault.Input, ""))
	case api.TimedOut:
		return fault.ExitCode(fault.New(fault.Deadline, ""))
	case api.WasCancelled:
		return fault.ExitCode(fault.New(fault.Cancelled, ""))
	}
	if record.ExitCode == nil {
		if record.Outcome == api.RemoteError || record.Outcome == api.ContractViolation ||
			record.Outcome == api.StepFailed {
			return int(exitFindings) // remote agents and flows have no exit code
		}
		return fault.ExitCode(fault.New(fault.Internal, ""))
	}
	return *record.ExitCode
}

// relative makes a path relative if it lies below the working directory.
func relative(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}
