package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/agenthttp"
	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/runtime"
)

// auCheckTime is what one start of a unit may take.
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
		Long: `Start a unit about ten times in its sandbox, with good, bad, huge and no input, a model
that isn't there and little memory, and judge every item of the specification's checklist.

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
		return fault.New(fault.Input, "--timeout has to be more than nothing").WithHint("write a duration with its unit, such as 30s")
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
	return a.withOrchestrator(ctx, func(o *orchestrator.Orchestrator, _ runtime.Engine) error {
		view := newView(a.stderr, c.Name, a.quiet)
		check := &auCheck{
			orchestrator: o, unit: c, args: args, model: model, sample: sample, timeout: flags.timeout, view: view,
			seen: map[au.Scenario]orchestrator.Observed{}, untried: map[au.Scenario]string{},
		}
		err := check.run(ctx)
		view.close()
		if err != nil {
			return err
		}
		return a.showAUReport(auReport{Unit: c.Name, Report: check.report(a.sourceOf(c))}, flags.json)
	})
}

// auReport is what is printed of a check.
type auReport struct {
	Unit string `json:"unit"`
	au.Report
}

func (a *app) showAUReport(report auReport, asJSON bool) error {
	if asJSON {
		if err := a.stdout.json(report); err != nil {
			return err
		}
	} else {
		_ = report.table().WriteTable(a.stdout) // whoever reads it may have gone
	}
	if report.Failed() {
		return exitFindings
	}
	return nil
}

// table is the report in the form of all conformance reports. It says why only where a
// check didn't pass.
func (r auReport) table() agenthttp.Report {
	table := agenthttp.Report{Target: r.Unit}
	for _, result := range r.Results {
		row := agenthttp.Result{ID: result.ID, Title: result.Title, Section: result.Section, Verdict: agenthttp.Verdict(result.Mark)}
		if result.Mark != au.Pass {
			row.Why = printable(result.Why)
		}
		table.Checks = append(table.Checks, row)
	}
	return table
}
