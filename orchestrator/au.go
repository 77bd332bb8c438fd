package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	// auTime is a unit's, where nobody says more (section 8.3).
	auTime = 300 * time.Second
	// auFileBytes is where a file that a unit writes ends: in its tmpfs, which is no larger,
	// and as its stdout, which is allowed less.
	auFileBytes = 64 << 20
)

// auLimits are in force where a unit says nothing.
func auLimits(fallback runtime.Limits) runtime.Limits {
	fallback.Timeout, fallback.ResultBytes, fallback.DiskBytes = auTime, au.MaxOutputBytes, auFileBytes
	return fallback
}

// modelDir is where a unit finds the model that its user has.
const modelDir = "/models"

func (r *Run) isAU() bool { return r.req.Capsule.Kind == capsule.KindAU }

// filter makes a filter of the spec of an Agentic Unit: what it is given is checked against
// its model card, before anything of it starts.
func (o *Orchestrator) filter(ctx context.Context, run *Run, spec *runtime.Spec, layout runtime.Layout) error {
	card, err := o.card(ctx, run, *spec, layout.Dir)
	if err != nil {
		return err
	}
	run.card = card
	call, err := run.auCall()
	if err != nil {
		return err
	}
	if run.req.streamed() {
		call.Stdin, err = streamName, run.req.Stream.prepare(card, layout)
	} else {
		err = accepts(card, call.Stdin, layout)
	}
	if err != nil {
		return err
	}
	given := au.Call{Args: call.Args, Prompt: call.Prompt, Env: call.Env}
	spec.Filter = &runtime.Filter{Stdin: call.Stdin}
	if model := run.req.ModelPath; model != "" {
		if spec.Filter.Model, err = o.modelMount(model); err != nil {
			return err
		}
		given.ModelPath = spec.Filter.Model.Target
	}
	command, err := card.Args(given)
	if err != nil {
		return err
	}
	spec.Filter.Args = command.Args
	spec.Env = append(spec.Env, command.Env...)
	return nil
}

// auCall reads the input, which keeps the contract of all Agentic Units.
func (r *Run) auCall() (call capsule.AUCall, err error) {
	if err := json.Unmarshal(r.ready.input.JSON(), &call); err != nil {
		return call, fmt.Errorf("decode call: %w", err)
	}
	if refs := r.req.Capsule.Contract.Input.FileRefs(r.ready.input); len(refs) > 0 {
		call.Stdin = refs[0].Name // clean
	}
	return call, nil
}

// accepts looks at the beginning of what is to be the unit's stdin.
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
	return bounded(strings.Join(types, ", "), maxType)
}

// checkStdin refuses more than a unit takes, before anything starts.
func (r Request) checkStdin(ready prepared) error {
	if r.Capsule.Kind != capsule.KindAU {
		return nil
	}
	limit := cmp.Or(r.StdinBytes, au.DefaultStdinBytes)
	for _, f := range ready.files {
		size, err := sizeOf(f.source)
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
