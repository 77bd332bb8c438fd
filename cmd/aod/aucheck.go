package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/capsule/au/check"
	"github.com/agent-on-demand/aod/capsule/unit"
	agentcheck "github.com/agent-on-demand/aod/client/agenthttp/check"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// auCheckTime bounds one start of a unit.
const auCheckTime = time.Minute

type auCheckFlags struct {
	sample, model string
	json          bool
	timeout       time.Duration
}

func (a *app) auCheckCommand() *cobra.Command {
	var flags auCheckFlags
	cmd := &cobra.Command{
		Use:   "check DIR|PROGRAM|IMAGE|NAME [-- ARGS...]",
		Short: "Hold a unit against the specification's checklist",
		Long: `Start a unit about twenty times in its sandbox, with good, bad, huge and no input, wrong
arguments, a model that isn't there and little memory, and judge every item of the specification's checklist.

The good input is --sample, or a tiny one of the first media type of its model card. What
follows -- goes to the unit each time. Exit code 1 when a rule is broken.`,
		Example: `  aod au check ./agx-ocr --sample page.png
  aod au check ./agx-ocr --sample page.png --model-path ~/models/ocr.gguf --json
  aod au check ./translate -- --to de`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := beforeDash(cmd, args)
			if err != nil {
				return err
			}
			return a.checkAU(cmd.Context(), target, args[1:], flags)
		},
	}
	cmd.Flags().StringVar(&flags.sample, "sample", "", "a file that the unit should take")
	cmd.Flags().StringVar(&flags.model, "model-path", "", "a model's file or directory, which the unit gets read-only")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print the report as JSON")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", auCheckTime, "what one start may take")
	return cmd
}

func (a *app) checkAU(ctx context.Context, target string, args []string, flags auCheckFlags) error {
	if flags.timeout <= 0 {
		return fault.New(fault.Input, "--timeout has to be more than nothing").
			WithHint("write a duration with its unit, such as 30s")
	}
	c, err := a.loadAU(target)
	if err != nil {
		return err
	}
	model, err := modelFile(flags.model)
	if err != nil {
		return err
	}
	sample, err := readSample(flags.sample)
	if err != nil {
		return err
	}
	return a.withLocal(ctx, func(l *local) error {
		view := newView(a.stderr, c.Name, a.quiet)
		opts := check.Options{Name: c.Name, Args: args, Sample: sample, Timeout: flags.timeout, Source: a.sourceOf(c)}
		if model != "" {
			opts.ModelPath = container.ModelPathInside(model)
		}
		report, err := check.Unit(ctx, auStarter{containers: l.containers, unit: unit.Of(c), model: model, view: view},
			opts)
		view.close()
		if err != nil {
			return err
		}
		told := auReport{Unit: c.Name, Report: report}
		// the reader may have gone
		return a.judged(told, told.Failed(), flags.json, func() { _ = told.table().WriteTable(a.stdout) })
	})
}

// auStarter starts a unit on this machine's engine.
type auStarter struct {
	containers *container.Containers
	unit       *unit.Unit
	model      string // a path on this machine; "" is none
	view       *view
}

// Start implements check.Starter.
func (s auStarter) Start(ctx context.Context, trial check.Trial) (check.Observed, error) {
	s.view.waitFor("trying %s", trial.Scenario)
	seen, err := s.containers.Try(ctx, s.unit, container.Trial{
		Stdin: trial.Stdin, Open: trial.Open, Args: trial.Args, Env: trial.Env, ModelPath: s.model,
		MemoryBytes: trial.MemoryBytes, Timeout: trial.Timeout, Observe: s.watch,
	})
	return check.Observed{Run: seen.Run, MemoryLimit: seen.MemoryLimit}, err
}

// watch shows how the unit is built. It leaves out the unit's log: the check gives it
// inputs that aren't the user's.
func (s auStarter) watch(e run.Event) {
	if e.Build != nil {
		s.view.event(e)
	}
}

// sourceOf examines a unit's source. It is nil for a program without source, which is in a
// directory of ours.
func (a *app) sourceOf(c *capsule.Capsule) *check.Source {
	wrapped, err := filepath.Abs(filepath.Join(a.data, "au"))
	if err != nil || filepath.Dir(c.Dir) == wrapped {
		return nil
	}
	return check.SourceOf(c.Dir)
}

// readSample reads the user's own sample; "" is none.
func readSample(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "--sample: %q can't be opened", name)
	}
	defer func() { _ = file.Close() }() // read only
	raw, err := io.ReadAll(io.LimitReader(file, au.DefaultStdinBytes+1))
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.Input, err, "--sample: %q can't be read", name)
	case len(raw) == 0:
		return nil, fault.New(fault.Input, "--sample: %q is empty", name)
	case len(raw) > au.DefaultStdinBytes:
		return nil, fault.New(fault.Input, "--sample: %q has more than %d bytes", name, au.DefaultStdinBytes)
	}
	return raw, nil
}

// auReport is the printed result of a check.
type auReport struct {
	Unit string `json:"unit"`
	check.Report
}

// table is the report in the form of all conformance reports. It gives a reason only if a
// check didn't pass.
func (r auReport) table() agentcheck.Report {
	table := agentcheck.Report{Target: r.Unit}
	for _, result := range r.Results {
		row := agentcheck.Result{
			ID: result.ID, Title: result.Title, Section: result.Section,
			Verdict: agentcheck.Verdict(result.Mark),
		}
		if result.Mark != check.Pass {
			row.Why = printable(result.Why)
		}
		table.Checks = append(table.Checks, row)
	}
	return table
}
