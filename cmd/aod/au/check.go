package au

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/capsule/au/check"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/checklist"
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

func checkCommand(env *cli.Env) *cobra.Command {
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
			return checkAU(cmd.Context(), env, target, args[1:], flags)
		},
	}
	cmd.Flags().StringVar(&flags.sample, "sample", "", "a file that the unit should take")
	cmd.Flags().StringVar(&flags.model, "model-path", "", "a model's file or directory, which the unit gets read-only")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print the report as JSON")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", auCheckTime, "what one start may take")
	return cmd
}

func checkAU(ctx context.Context, env *cli.Env, target string, args []string, flags auCheckFlags) error {
	if flags.timeout <= 0 {
		return fault.New(fault.Input, "--timeout must be positive").
			WithHint("write a duration with its unit, such as 30s")
	}
	c, err := loadAU(env, target)
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
	return cli.WithLocal(ctx, env, func(l *cli.Local) error {
		view := progress.New(env.Err, c.Name, env.Quiet)
		opts := check.Options{
			Name: c.Name, Args: args, Sample: sample, Timeout: flags.timeout, Source: sourceOf(env, c),
		}
		if model != "" {
			opts.ModelPath = container.ModelPathInside(model)
		}
		results, err := check.Unit(ctx, Starter{Containers: l.Containers, Unit: unit.Of(c), model: model, View: view},
			opts)
		view.Close()
		if err != nil {
			return err
		}
		told := Report{Unit: c.Name, Checks: results}
		return cli.Judge(env, told, results.Failed(), flags.json, func() {
			_ = told.printable().WriteTable(env.Out, c.Name) // the reader may have gone
		})
	})
}

// Starter starts a unit on this machine's engine.
type Starter struct {
	Containers *container.Containers
	Unit       *unit.Unit
	model      string // a path on this machine; "" is none
	View       *progress.View
}

// Start implements check.Starter.
func (s Starter) Start(ctx context.Context, trial check.Trial) (check.Observed, error) {
	s.View.WaitFor("trying %s", trial.Scenario)
	seen, err := s.Containers.Try(ctx, s.Unit, container.Trial{
		Stdin: trial.Stdin, Open: trial.Open, Args: trial.Args, Env: trial.Env, ModelPath: s.model,
		MemoryBytes: trial.MemoryBytes, Timeout: trial.Timeout, Observe: s.watch,
	})
	return check.Observed{Run: seen.Run, MemoryLimit: seen.MemoryLimit}, err
}

// watch shows how the unit is built. It leaves out the unit's log: the check gives it
// inputs that aren't the user's.
func (s Starter) watch(e run.Event) {
	if e.Build != nil {
		s.View.Event(e)
	}
}

// sourceOf examines a unit's source. It is nil for a program without source, which is in a
// directory of ours.
func sourceOf(env *cli.Env, c *capsule.Capsule) *check.Source {
	wrapped, err := filepath.Abs(filepath.Join(env.Data, "au"))
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

// Report is the printed result of a check.
type Report struct {
	Unit   string            `json:"unit"`
	Checks checklist.Results `json:"checks"`
}

// printable is the results with reasons that a terminal can show.
func (r Report) printable() checklist.Results {
	shown := slices.Clone(r.Checks)
	for i := range shown {
		shown[i].Why = ui.Printable(shown[i].Why)
	}
	return shown
}
