package container

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// describeTime bounds the time in which a unit prints its model card.
const describeTime = 10 * time.Second

// cards ask Agentic Units for their model cards.
type cards struct {
	machine *machine
	images  *imageBuilder
	trials  *trials
	// one unit at a time is asked for its card: whoever else wants that finds it remembered
	describing *semaphore.Weighted
}

// ask returns the model card of an Agentic Unit, which is asked once for each version.
func (c *cards) ask(ctx context.Context, u *unit.Unit) (json.RawMessage, error) {
	if _, err := c.stdinBytes(u); err != nil {
		return nil, fault.New(fault.Input, "%q isn't an Agentic Unit: it has no model card", u.Name).
			WithHint("`aod describe %s` shows its contract", u.Name)
	}
	return c.whenBuilt(ctx, u, func() (json.RawMessage, error) {
		card, err := c.describe(ctx, u, nil)
		if fault.Is(err, fault.NotFound) { // somebody removed the image, which is known no more
			c.images.forget(u)
			card, err = c.describe(ctx, u, nil)
		}
		if err != nil {
			return nil, err
		}
		return card.JSON(), nil
	})
}

// whenBuilt has a unit asked for what it tells of itself when its image is there, one unit at a
// time.
func (c *cards) whenBuilt(
	ctx context.Context, u *unit.Unit, ask func() (json.RawMessage, error),
) (json.RawMessage, error) {
	// others don't wait for that
	if _, _, err := c.images.build(ctx, u, func(runtime.BuildEvent) {}, inPlace); err != nil {
		return nil, err
	}
	if err := acquire(ctx, c.describing); err != nil {
		return nil, err
	}
	defer c.describing.Release(1)
	return ask()
}

// stdinBytes returns how much a unit takes on stdin, or an Input fault for one that takes none.
func (c *cards) stdinBytes(u *unit.Unit) (int64, error) {
	if !isAgenticUnit(u) {
		return 0, fault.New(fault.Input, "%q isn't an Agentic Unit: it doesn't read stdin", u.Name).
			WithHint("`aod run` runs units of every kind")
	}
	return cmp.Or(c.machine.opts.Units[u.Name].StdinBytes, au.DefaultStdinBytes), nil
}

// describe returns the model card of an Agentic Unit. The program is asked once for each
// image. observe gets the steps of the image's build, and may be nil. If the program prints
// no card, or can't be started, the error is a Capsule fault.
func (c *cards) describe(ctx context.Context, u *unit.Unit, observe func(run.Event)) (card *au.Card, err error) {
	if !isAgenticUnit(u) {
		return nil, fault.New(fault.Input, "%q is a capsule, which has no model card", u.Name).
			WithHint("`aod units` shows its contract")
	}
	err = c.trials.beside(ctx, u, observe, func(r *run.Run, spec runtime.Spec, dir string) error {
		card, err = c.of(ctx, r, spec, dir)
		return err
	})
	return card, err
}

// of returns the model card of a run's unit. It is stored for the image.
func (c *cards) of(ctx context.Context, r *run.Run, spec runtime.Spec, dir string) (*au.Card, error) {
	known := filepath.Join(c.machine.home.Cards, strings.TrimPrefix(spec.Image.ID, "sha256:")+".json")
	if raw, err := os.ReadFile(known); err == nil {
		if card, err := au.ReadCard(raw); err == nil {
			return card, nil
		} // of another version of AOD: asked again
	}
	raw, err := c.askForCard(ctx, r, spec, filepath.Join(dir, "card"))
	if err != nil {
		return nil, err
	}
	card, err := au.ReadCard(raw)
	if err != nil {
		public := fault.Public(err)
		return nil, fault.New(fault.Capsule, "%q gives no model card that can be used: %s", r.Record.Unit, public.Msg).
			WithHint("%s", public.Hint).WithFindings(public.Findings)
	}
	return card, remember(known, raw)
}

// remember stores a card. Another process may do the same at the same time.
func remember(name string, raw []byte) error {
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = safefs.Replace(name, raw, safefs.ReplaceOptions{Mode: 0o600})
	}
	return run.StorageFault(err)
}

// askForCard runs the unit with --describe, in a sandbox beside that of the run.
func (c *cards) askForCard(ctx context.Context, r *run.Run, spec runtime.Spec, dir string) ([]byte, error) {
	spec.Purpose = "card"
	seen, err := c.trials.tryIn(ctx, r, spec, dir, Trial{Args: []string{"--describe"}, Timeout: describeTime})
	if err != nil {
		return nil, err
	}
	return describedBy(r.Record.Unit, seen)
}

func describedBy(unit string, seen Observed) ([]byte, error) {
	const hint = "an Agentic Unit prints its model card on --describe, alone, and exits with 0"
	switch {
	case seen.TimedOut:
		return nil, fault.New(fault.Capsule, "%q gives no model card: it took more than %v", unit, describeTime).
			WithHint(hint)
	case seen.StartError != "" || au.ExitMeaning(seen.ExitCode, nil).Class == au.ExitNotStarted:
		return nil, programMissing(unit, seen.ExitCode, seen.StartError)
	case seen.ExitCode != 0:
		return nil, fault.New(fault.Capsule, "%q gives no model card: it exited with %d", unit, seen.ExitCode).
			WithHint(hint)
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

// sizeOf returns the size of an input file in bytes.
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

// startFailure is a unit's program that could not be started, so that there is no model card. As
// an error it is a Capsule fault, as the end of a run the outcome start_failed.
type startFailure struct {
	fault *fault.Error
	code  int
}

func (f *startFailure) Error() string { return f.fault.Error() }
func (f *startFailure) Unwrap() error { return f.fault }

// programMissing is the failure of a program that ended with 126 or 127, or never began. why is
// the init's reason; "" is none.
func programMissing(unit string, code int, why string) *startFailure {
	if why == "" {
		why = missingText(code)
	}
	return &startFailure{code: code, fault: fault.New(fault.Capsule, "the program of %q could not be started: %s", unit,
		why).WithHint(missingHint)}
}

func (f *startFailure) result() run.Result {
	return run.Failed(api.StartFailed, f.code, &api.RunError{
		Category: api.CategoryPermanent, Kind: string(api.StartFailed), Message: f.fault.Msg, Hint: f.fault.Hint,
	})
}

const missingHint = "check the ENTRYPOINT of its Dockerfile, and that its interpreter and what it calls are in its " +
	"image; its log says more"

func missingText(code int) string {
	if code == au.ExitNotExecutable {
		return fmt.Sprintf("it exited with %d: it, or what it calls, can't be executed", code)
	}
	return fmt.Sprintf("it exited with %d: its interpreter, or what it calls, is not in its image", code)
}
