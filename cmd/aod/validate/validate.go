// Package validate is `aod validate`: what is wrong with the directory of a unit. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package validate

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// Command is `aod validate`.
func Command(env *cli.Env) *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "validate DIR...",
		Short: "Report every problem of a capsule at once",
		Long: `Check capsule directories: every problem with its file, line or JSON pointer, what is
wrong and how to fix it. An engine is needed for
the tools of an MCP server alone. Exit code 1 when something is wrong.
Python files are compiled, where this machine has python3, and nothing of them is run.`,
		Example: "  aod validate ./my-capsule\n  aod validate examples/capsules/*",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.New(fault.Input, "aod validate takes one directory or more").
					WithHint("see aod validate --help")
			}
			return validate(cmd.Context(), env, args, strict, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	cmd.Flags().BoolVar(&strict, "strict", false, "take a warning for a problem")
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

func validate(ctx context.Context, env *cli.Env, dirs []string, strict, asJSON bool) error {
	verdicts := make([]verdict, 0, len(dirs))
	var failed bool
	for _, dir := range dirs {
		v, err := validated(ctx, env, dir)
		if err != nil {
			return err
		}
		if strict {
			for i := range v.Findings {
				v.Findings[i].Warning = false
			}
			v.Valid = len(v.Findings) == 0
		}
		failed = failed || !v.Valid
		verdicts = append(verdicts, v)
	}
	return cli.Judge(env, verdicts, failed, asJSON, func() { showVerdicts(env, verdicts) })
}

// validated loads a directory as a run would, with its test cases, and looks for what a run
// would meet later.
func validated(ctx context.Context, env *cli.Env, dir string) (verdict, error) {
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
	findings = append(findings, missingGrants(env, c)...)
	findings = append(findings, flowFindings(env, c)...)
	broken, err := pythonSyntax(ctx, c)
	switch {
	case ctx.Err() != nil:
		return verdict{}, ctx.Err()
	case fault.Is(err, fault.Capsule):
		findings = append(findings, findingsOf(err)...)
	case err != nil:
		env.Note("%s %s: its Python files were not compiled: %s", env.Err.Style(ui.Yellow, "note:"), ui.Printable(dir),
			ui.Printable(err.Error()))
	}
	tools, missing, err := toolsOf(ctx, env, c)
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

func showVerdicts(env *cli.Env, verdicts []verdict) {
	for _, v := range verdicts {
		problems := len(fault.Errors(v.Findings))
		if v.Valid {
			env.Out.Line("%s %s", env.Out.Style(ui.Green, "✓"), v.Dir)
			if len(v.Tools) > 0 {
				env.Out.Line("  tools: %s", ui.Printable(strings.Join(v.Tools, ", ")))
			}
			if v.Flow != nil {
				env.Out.Line("  %s", boundsText(*v.Flow))
			}
		} else {
			env.Out.Line("%s %s: %s", env.Out.Style(ui.Red, "✗"), v.Dir, ui.Plural(problems, "problem"))
		}
		env.Out.Findings(v.Findings)
	}
}
