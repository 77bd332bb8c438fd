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

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// describeTime bounds the time in which a unit prints its model card.
const describeTime = 10 * time.Second

// Card implements run.Describer: the model card of an Agentic Unit as its program printed
// it, or the tools of an MCP server. The program is asked once for each version, in a sandbox of its own. The error is
// an Input fault for a unit of another kind, a Capsule fault for one that gives no card.
func (c *Containers) Card(ctx context.Context, u *unit.Unit) (json.RawMessage, error) {
	if _, err := c.StdinBytes(u); err != nil && u.Kind != unit.MCP {
		return nil, fault.New(fault.Input, "%q is no Agentic Unit: it has no model card", u.Name).
			WithHint("GET /v1/units/%s/schema has its contract", u.Name)
	}
	if _, _, _, err := c.Build(ctx, u, func(runtime.BuildEvent) {}); err != nil { // others don't wait for that
		return nil, err
	}
	if err := acquire(ctx, c.describing); err != nil {
		return nil, err
	}
	defer c.describing.Release(1)
	if u.Kind == unit.MCP {
		return c.toolCard(ctx, u)
	}
	card, err := c.Describe(ctx, u, nil)
	if fault.Is(err, fault.NotFound) { // somebody removed the image, which is known no more
		c.images.Delete(pool.Key(u))
		card, err = c.Describe(ctx, u, nil)
	}
	if err != nil {
		return nil, err
	}
	return card.JSON(), nil
}

// StdinBytes implements run.Describer.
func (c *Containers) StdinBytes(u *unit.Unit) (int64, error) {
	if !isAgenticUnit(u) {
		return 0, fault.New(fault.Input, "%q is no Agentic Unit: it doesn't read stdin", u.Name).
			WithHint("POST /v1/runs runs units of every kind")
	}
	return cmp.Or(c.opts.Units[u.Name].StdinBytes, au.DefaultStdinBytes), nil
}

// Describe returns the model card of an Agentic Unit. The program is asked once for each
// image. observe gets the steps of the image's build, and may be nil. If the program prints
// no card, or can't be started, the error is a Capsule fault.
func (c *Containers) Describe(ctx context.Context, u *unit.Unit, observe func(run.Event)) (card *au.Card, err error) {
	if !isAgenticUnit(u) {
		return nil, fault.New(fault.Input, "%q is a capsule, which has no model card", u.Name).
			WithHint("`aod units` shows its contract")
	}
	err = c.besideRuns(ctx, u, observe, func(r *run.Run, spec runtime.Spec, dir string) error {
		card, err = c.card(ctx, r, spec, dir)
		return err
	})
	return card, err
}

// besideRuns starts a unit without a run, in a directory among those of runs. After a crash
// the next start removes the directory, since no run has it.
func (c *Containers) besideRuns(
	ctx context.Context, u *unit.Unit, observe func(run.Event), do func(*run.Run, runtime.Spec, string) error,
) (err error) {
	id, err := run.NewID()
	if err != nil {
		return err
	}
	r := &run.Run{ID: id, Unit: u, Limits: run.Request{Unit: u}.Limits(c.opts.Limits), Record: api.Record{Unit: u.Name}}
	r.LedBy(noHost{}, observe)
	image, err := c.ensureImage(ctx, r)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.home.Runs, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return run.StorageFault(err)
	}
	defer func() {
		if !errors.Is(err, runtime.ErrLeftBehind) { // the directory tells the next sweep of the container
			err = errors.Join(err, safefs.RemoveTree(dir))
		}
	}()
	spec := c.spec(u, id, image)
	spec.Limits = programOf(u).limits(r.Limits)
	return do(r, spec, dir)
}

// noHost is the host of a run that nobody asked for. It stores nothing.
type noHost struct{ run.Host }

// Save implements run.Host.
func (noHost) Save(api.Transition) error { return nil }

// Note implements run.Host.
func (noHost) Note(run.Event) {}

// Aside implements run.Host. It has no slot.
func (noHost) Aside(ctx context.Context, wait func()) error { return inPlace(ctx, wait) }

// card returns the model card of a run's unit. It is stored for the image.
func (c *Containers) card(ctx context.Context, r *run.Run, spec runtime.Spec, dir string) (*au.Card, error) {
	known := filepath.Join(c.home.Cards, strings.TrimPrefix(spec.Image.ID, "sha256:")+".json")
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
	return card, c.remember(known, raw)
}

// remember stores a card. Another process may do the same at the same time.
func (c *Containers) remember(name string, raw []byte) error {
	err := os.MkdirAll(c.home.Cards, 0o700)
	if err == nil {
		err = safefs.Replace(name, raw, safefs.ReplaceOptions{Mode: 0o600})
	}
	return run.StorageFault(err)
}

// askForCard runs the unit with --describe, in a sandbox beside that of the run.
func (c *Containers) askForCard(ctx context.Context, r *run.Run, spec runtime.Spec, dir string) ([]byte, error) {
	spec.Purpose = "card"
	seen, err := c.try(ctx, r, spec, dir, Trial{Args: []string{"--describe"}, Timeout: describeTime})
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
