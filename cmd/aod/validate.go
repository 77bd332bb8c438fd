package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/flow"
)

// exitFindings ends a command that succeeded and found something wrong.
const exitFindings = exitError(1)

func (a *app) validateCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate DIR...",
		Short: "Report every problem of a capsule at once",
		Long: `Check capsule directories: every problem with its file, line or JSON pointer, what is
wrong and how to mend it. An engine is needed for
the tools of an MCP server alone. Exit code 1 when something is wrong.
Python files are compiled, where this machine has python3, and nothing of them is run.`,
		Example: "  aod validate ./my-capsule\n  aod validate examples/capsules/*",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.New(fault.Input, "aod validate takes one directory or more").
					WithHint("see aod validate --help")
			}
			return a.validate(cmd.Context(), args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
}

// verdict is the result for one directory.
type verdict struct {
	Dir      string          `json:"dir"`
	Valid    bool            `json:"valid"`
	Tools    []string        `json:"tools,omitempty"` // of an MCP server
	Flow     *flow.Bounds    `json:"flow,omitempty"`  // what a run of a flow takes
	Findings []fault.Finding `json:"findings"`
}

func (a *app) validate(ctx context.Context, dirs []string, asJSON bool) error {
	verdicts := make([]verdict, 0, len(dirs))
	var failed bool
	for _, dir := range dirs {
		v, err := a.validated(ctx, dir)
		if err != nil {
			return err
		}
		failed = failed || !v.Valid
		verdicts = append(verdicts, v)
	}
	return a.judged(verdicts, failed, asJSON, func() { a.showVerdicts(verdicts) })
}

// validated loads a directory as a run would, with its test cases, and looks for what a run
// would meet later.
func (a *app) validated(ctx context.Context, dir string) (verdict, error) {
	c, err := capsule.Load(dir)
	if fault.Is(err, fault.Capsule) {
		return verdict{Dir: dir, Findings: findingsOf(err)}, nil
	}
	if err != nil {
		return verdict{}, err
	}
	findings := append([]fault.Finding{}, c.Warnings...)
	if _, err := c.Cases(); err != nil {
		findings = append(findings, findingsOf(err)...)
	}
	findings = append(findings, a.missingGrants(c)...)
	findings = append(findings, a.flowFindings(c)...)
	broken, err := pythonSyntax(ctx, c)
	switch {
	case ctx.Err() != nil:
		return verdict{}, ctx.Err()
	case fault.Is(err, fault.Capsule):
		findings = append(findings, findingsOf(err)...)
	case err != nil:
		a.note("%s %s: its Python files were not compiled: %s", a.stderr.style(yellow, "note:"), printable(dir),
			printable(err.Error()))
	}
	tools, missing, err := a.toolsOf(ctx, c)
	if err != nil {
		return verdict{}, err
	}
	findings = append(append(findings, broken...), missing...)
	v := verdict{Dir: dir, Valid: len(fault.Errors(findings)) == 0, Tools: tools, Findings: findings}
	if c.Flow != nil {
		bounds := c.Flow.Bounds()
		v.Flow = &bounds
	}
	return v, nil
}

// findingsOf returns the findings of an error, at least one.
func findingsOf(err error) []fault.Finding {
	var f *fault.Error
	if errors.As(err, &f) && len(f.Findings) > 0 {
		return f.Findings
	}
	return []fault.Finding{{Message: err.Error()}}
}

func (a *app) showVerdicts(verdicts []verdict) {
	for _, v := range verdicts {
		problems := len(fault.Errors(v.Findings))
		if v.Valid {
			a.stdout.line("%s %s", a.stdout.style(green, "✓"), v.Dir)
			if len(v.Tools) > 0 {
				a.stdout.line("  tools: %s", printable(strings.Join(v.Tools, ", ")))
			}
			if v.Flow != nil {
				a.stdout.line("  %s", boundsText(*v.Flow))
			}
		} else {
			a.stdout.line("%s %s: %s", a.stdout.style(red, "✗"), v.Dir, plural(problems, "problem"))
		}
		a.stdout.findings(v.Findings)
	}
}
