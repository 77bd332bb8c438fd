package container

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// auFileBytes bounds each file that a unit writes. Its tmpfs is no larger, and its stdout may
// have less.
const auFileBytes = 64 << 20

// Extra is run.Request.Extra for the kinds of this package: what a run gets beside its input.
type Extra struct {
	// Console makes the run a shell in the unit's sandbox, within its limits but for the time;
	// nil: the unit's own program runs.
	Console *runtime.Console
	// ModelPath is the absolute path of a file or directory of this machine, which the unit
	// gets as its --model-path; "" is none.
	ModelPath string
	// StdinBytes is the most that the unit gets on stdin; 0 is au.DefaultStdinBytes.
	StdinBytes int64
}

// agenticUnit is the program of an Agentic Unit: a filter from stdin to JSON on stdout.
type agenticUnit struct{}

func (agenticUnit) noun() string { return "unit" }

// check refuses files and a stdin that no unit takes, before anything starts.
func (agenticUnit) check(m *machine, req run.Request, ready run.Input) error {
	limit := cmp.Or(m.extra(req.Extra, req.Unit.Name).StdinBytes, au.DefaultStdinBytes)
	for _, f := range ready.Files {
		size, err := sizeOf(f.Source)
		if err != nil {
			return err
		}
		if size > limit {
			return fault.New(fault.Input, "stdin has %d bytes, the limit is %d", size, limit).
				WithHint("raise it with --max-stdin if the unit can take that much")
		}
	}
	return nil
}

func (agenticUnit) limits(of runtime.Limits) runtime.Limits {
	of.ResultBytes, of.DiskBytes = au.MaxOutputBytes, auFileBytes
	return of
}

func (agenticUnit) loadsAhead() bool { return false } // its arguments come with the run

func (agenticUnit) completeWarmSpec(m *machine, u *unit.Unit, spec *runtime.Spec) (err error) {
	spec.Filter, spec.Stdio = &runtime.Filter{}, &runtime.Stdio{}
	if model := m.opts.Units[u.Name].ModelPath; model != "" {
		spec.Filter.Model, err = modelMount(m.engine, model)
	}
	return err
}

// prepare makes the sandbox a filter. It checks the arguments and the stdin against the model
// card before the container starts.
func (agenticUnit) prepare(ctx context.Context, x *execution, spec *runtime.Spec, layout runtime.Layout) error {
	extra := x.machine.extra(x.run.Extra, x.run.Unit.Name)
	card, err := x.cards.of(ctx, x.run, *spec, layout.Dir)
	if err != nil {
		return err
	}
	x.card = card
	if odd := card.OddText(); odd != "" {
		x.run.Warn("%s; `aod au check` tells all of it", odd)
	}
	call, err := auCall(x.run)
	if err != nil {
		return err
	}
	if err := accepts(card, call.Stdin, layout); err != nil {
		return err
	}
	given := au.Call{Args: call.Args, Prompt: call.Prompt, Env: call.Env}
	spec.Filter, spec.Stdio = &runtime.Filter{}, stdinFrom(call.Stdin)
	if extra.ModelPath != "" {
		if spec.Filter.Model, err = modelMount(x.machine.engine, extra.ModelPath); err != nil {
			return err
		}
		given.ModelPath = spec.Filter.Model.Target
	}
	command, err := card.Args(given)
	if err != nil {
		return err
	}
	spec.Filter.Args = command.Args
	spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], command.Env...)
	return nil
}

// adopt marks the sandbox as a filter. The rest of the filter was needed for the start only.
func (agenticUnit) adopt(_ *execution, spec *runtime.Spec) {
	spec.Filter, spec.Stdio = &runtime.Filter{}, &runtime.Stdio{}
}

// stdinFrom makes an input file the program's stdin; "" isn't an input at all.
func stdinFrom(name string) *runtime.Stdio {
	if name == "" {
		return &runtime.Stdio{}
	}
	return &runtime.Stdio{Stdin: runtime.InputFile(name)}
}

// auCall reads the input, which keeps the contract that all Agentic Units have.
func auCall(r *run.Run) (call capsule.AUCall, err error) {
	if err := json.Unmarshal(r.Input.Payload.JSON(), &call); err != nil {
		return call, fmt.Errorf("decode call: %w", err)
	}
	if refs := r.Unit.Contract.Input.FileRefs(r.Input.Payload); len(refs) > 0 {
		call.Stdin = refs[0].Name // clean
	}
	return call, nil
}

// accepts checks the first bytes of the unit's stdin against the media types of its card.
func accepts(card *au.Card, stdin string, layout runtime.Layout) error {
	if stdin == "" {
		return nil
	}
	root, err := layout.InputRoot()
	if err != nil {
		return fmt.Errorf("look at stdin: %w", err)
	}
	defer func() { _ = root.Close() }() // read only
	f, err := root.Open(filepath.FromSlash(stdin))
	if err != nil {
		return fmt.Errorf("look at stdin: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	head := make([]byte, au.SniffBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("look at stdin: %w", err)
	}
	if kind := au.Sniff(head[:n]); !card.Accepts(kind) {
		return fault.New(fault.Input, "stdin is %s, which %s doesn't take", kind, card.Name).
			WithHint("its model card says what it takes: %s", mediaTypes(card.Inputs))
	}
	return nil
}

func mediaTypes(media []au.Media) string {
	types := make([]string, 0, len(media))
	for _, m := range media {
		types = append(types, m.Type)
	}
	return run.Bounded(strings.Join(types, ", "), run.MaxType)
}

// collect decides what the end of an Agentic Unit means that wasn't stopped. The exit code
// decides, and with 0 the stdout has to keep the specification.
func (agenticUnit) collect(_ context.Context, x *execution, end runtime.End) (run.Result, error) {
	switch exit := au.ExitMeaning(end.ExitCode, x.card); exit.Class {
	case au.ExitSuccess:
	case au.ExitNotStarted:
		return programMissing(x.run.Record.Unit, end.ExitCode, "").result(), nil
	default:
		return unitFailed(exit), nil
	}
	f, err := x.attempt.layout.OpenStdout()
	if err != nil {
		return run.Result{}, fmt.Errorf("read stdout: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	output, err := au.ParseOutput(f, x.attempt.limits.ResultBytes)
	var wrong *au.OutputError
	if errors.As(err, &wrong) {
		return wrongStdout(wrong), nil
	}
	if err != nil {
		return run.Result{}, fmt.Errorf("read stdout: %w", err)
	}
	for _, warning := range output.Warnings() {
		x.run.Warn("%s", warning)
	}
	x.verdict.noteLimits(end)
	success := 0
	return run.Result{State: api.Completed, Outcome: api.Success, ExitCode: &success, Output: output.JSON()}, nil
}

// unitFailed is the result of a unit that failed by itself.
func unitFailed(exit au.Exit) run.Result {
	category := api.CategoryAgent
	if exit.Class == au.ExitInvalidInput {
		category = api.CategoryPermanent
	}
	return run.Failed(api.CapsuleError, exit.Code, &api.RunError{
		Category: category, Kind: string(exit.Class),
		Message: fmt.Sprintf("the unit failed: %s (exit code %d)", run.Bounded(exit.Name, run.MaxType), exit.Code),
		Hint:    "its log, which is its stderr, says more",
	})
}

// wrongStdout is the result of a unit that exited with 0 without a valid stdout.
func wrongStdout(wrong *au.OutputError) run.Result {
	return run.Failed(api.ContractViolation, exitContract, &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.ContractViolation), Type: string(wrong.Problem),
		Message: "the unit exited with 0, but its stdout is not one JSON document: " + wrong.Message,
		Hint:    wrong.Hint,
	})
}

// wroteTooMuch returns the limit of a unit that wrote too much, to stdout or to a file.
func (agenticUnit) wroteTooMuch(limits runtime.Limits) *runtime.LimitError {
	return &runtime.LimitError{
		Limit: "output",
		Message: fmt.Sprintf("the unit was stopped when it had written %s, to stdout or to a file; its result "+
			"may have %s", megabytes(limits.DiskBytes), megabytes(limits.ResultBytes)),
	}
}
