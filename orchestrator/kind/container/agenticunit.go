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

// extra returns the Extra of a request, or the operator's settings if it has none.
func (c *Containers) extra(given any, name string) Extra {
	if own, ok := given.(Extra); ok {
		return own
	}
	return c.opts.Units[name]
}

// modelDir is where a unit finds its model in the sandbox.
const modelDir = "/models"

// agenticUnit is the program of an Agentic Unit: a filter from stdin to JSON on stdout.
type agenticUnit struct{}

func (agenticUnit) noun() string { return "unit" }

// check refuses files and a stdin that no unit takes, before anything starts.
func (agenticUnit) check(c *Containers, req run.Request, ready run.Input) error {
	limit := cmp.Or(c.extra(req.Extra, req.Unit.Name).StdinBytes, au.DefaultStdinBytes)
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

func (agenticUnit) waiting(c *Containers, u *unit.Unit, spec *runtime.Spec) (err error) {
	spec.Filter, spec.Stdio = &runtime.Filter{}, &runtime.Stdio{}
	if model := c.opts.Units[u.Name].ModelPath; model != "" {
		spec.Filter.Model, err = c.modelMount(model)
	}
	return err
}

// prepare makes the sandbox a filter. It checks the arguments and the stdin against the model
// card before the container starts.
func (agenticUnit) prepare(ctx context.Context, x *execution, spec *runtime.Spec, layout runtime.Layout) error {
	c, extra := x.containers, x.containers.extra(x.Extra, x.Unit.Name)
	card, err := c.card(ctx, x.Run, *spec, layout.Dir)
	if err != nil {
		return err
	}
	x.card = card
	if odd := card.OddText(); odd != "" {
		x.Warn("%s; `aod au check` tells all of it", odd)
	}
	call, err := x.auCall()
	if err != nil {
		return err
	}
	if err := accepts(card, call.Stdin, layout); err != nil {
		return err
	}
	given := au.Call{Args: call.Args, Prompt: call.Prompt, Env: call.Env}
	spec.Filter, spec.Stdio = &runtime.Filter{}, stdinFrom(call.Stdin)
	if extra.ModelPath != "" {
		if spec.Filter.Model, err = c.modelMount(extra.ModelPath); err != nil {
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

// stdinFrom makes an input file the program's stdin; "" is no input at all.
func stdinFrom(name string) *runtime.Stdio {
	if name == "" {
		return &runtime.Stdio{}
	}
	return &runtime.Stdio{Stdin: runtime.InputFile(name)}
}

// auCall reads the input, which keeps the contract that all Agentic Units have.
func (x *execution) auCall() (call capsule.AUCall, err error) {
	if err := json.Unmarshal(x.Input.Payload.JSON(), &call); err != nil {
		return call, fmt.Errorf("decode call: %w", err)
	}
	if refs := x.Unit.Contract.Input.FileRefs(x.Input.Payload); len(refs) > 0 {
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
