package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/safefs"
)

// describeTime is what a unit has to print its model card.
const describeTime = 10 * time.Second

// Describe returns the model card of an Agentic Unit, which its image is asked for once. The
// error is a Capsule fault for a unit that gives none.
func (o *Orchestrator) Describe(ctx context.Context, c *capsule.Capsule, observe func(Event)) (*au.Card, error) {
	if c.Kind != capsule.KindAU {
		return nil, fault.New(fault.Input, "%q is a capsule, which has no model card", c.Name).WithHint("`aod units` shows its contract")
	}
	id, err := newRunID("")
	if err != nil {
		return nil, err
	}
	run := newRun(id, prepared{}, Request{Capsule: c, Observe: observe})
	image, err := o.ensureImage(ctx, run)
	if err != nil {
		return nil, err
	}
	dir, err := o.data.open(id)
	if err != nil {
		return nil, err
	}
	card, err := o.card(ctx, run, o.spec(run, image), dir.path)
	return card, errors.Join(err, dir.remove(), dir.release())
}

// card returns the model card of a run's unit. It is remembered with the image.
func (o *Orchestrator) card(ctx context.Context, run *Run, spec runtime.Spec, dir string) (*au.Card, error) {
	known := filepath.Join(o.cards, strings.TrimPrefix(spec.Image.ID, "sha256:")+".json")
	if raw, err := os.ReadFile(known); err == nil {
		if card, err := au.ParseCard(raw); err == nil {
			return card, nil
		} // of another version of AOD: asked again
	}
	raw, err := o.askForCard(ctx, run, spec, filepath.Join(dir, "card"))
	if err != nil {
		return nil, err
	}
	card, err := au.ParseCard(raw)
	if err != nil {
		public := fault.Public(err)
		return nil, fault.Wrap(fault.Capsule, err, "%q gives no model card: %s", run.record.Unit, public.Msg).
			WithHint("%s", public.Hint).WithFindings(public.Findings)
	}
	return card, o.remember(known, raw)
}

// remember keeps a card. Another process may do the same at the same time.
func (o *Orchestrator) remember(name string, raw []byte) error {
	if err := os.MkdirAll(o.cards, 0o700); err != nil {
		return noRoom(err)
	}
	if err := safefs.Replace(name, raw, safefs.ReplaceOptions{Mode: 0o600}); err != nil {
		return noRoom(err)
	}
	return nil
}

// askForCard runs the unit with --describe, in a sandbox beside that of the run.
func (o *Orchestrator) askForCard(ctx context.Context, run *Run, spec runtime.Spec, dir string) ([]byte, error) {
	spec.Aside = "card"
	seen, err := o.try(ctx, run, spec, dir, AUTrial{Args: []string{"--describe"}, Timeout: describeTime})
	if err != nil {
		return nil, err
	}
	return describedBy(run.record.Unit, seen)
}

func describedBy(unit string, seen Observed) ([]byte, error) {
	const hint = "an Agentic Unit prints its model card on --describe, alone, and exits with 0"
	switch {
	case seen.TimedOut:
		return nil, fault.New(fault.Capsule, "%q gives no model card: it took more than %v", unit, describeTime).WithHint(hint)
	case seen.ExitCode != 0:
		return nil, fault.New(fault.Capsule, "%q gives no model card: it exited with %d", unit, seen.ExitCode).WithHint(hint)
	}
	output, err := au.ParseOutput(bytes.NewReader(seen.Stdout), au.MaxCardBytes)
	var wrong *au.OutputError
	if errors.As(err, &wrong) {
		return nil, fault.New(fault.Capsule, "%q gives no model card: %s", unit, wrong.Message).WithHint(hint)
	}
	if err != nil {
		return nil, fmt.Errorf("read model card: %w", err)
	}
	return output.JSON(), nil
}

// sizeOf is that of an input file.
func sizeOf(name string) (int64, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fault.Wrap(fault.Input, err, "there is no file %q", name)
	}
	if err != nil {
		return 0, fmt.Errorf("look at stdin: %w", err)
	}
	return info.Size(), nil
}
