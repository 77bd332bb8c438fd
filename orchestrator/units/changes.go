package units

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Put takes a unit's directory as a tar, checks it, lets its kind accept it, and makes it
// the unit's current version. Nothing changes when any of that fails. It reports whether
// another version was current before.
func (c *Catalogue) Put(ctx context.Context, name string, archive io.Reader) (api.Unit, bool, error) {
	return c.put(ctx, name, archive, registry.Upload{})
}

// Add is Put for a unit that must be new: another upload of its name stays as it is, and the error is an Exists
// fault. One of the same content is no other one.
func (c *Catalogue) Add(ctx context.Context, name string, archive io.Reader) (api.Unit, bool, error) {
	return c.put(ctx, name, archive, registry.Upload{OnlyNew: true})
}

func (c *Catalogue) put(
	ctx context.Context, name string, archive io.Reader, how registry.Upload,
) (api.Unit, bool, error) {
	if err := c.opts.Admits(ctx); err != nil {
		return api.Unit{}, false, err
	}
	name, team, err := c.names.toPut(ctx, name)
	if err != nil {
		return api.Unit{}, false, err
	}
	how.By, how.Team = access.ClientOf(ctx), team
	u, created, err := c.registry.Put(ctx, name, archive, how)
	c.callers.forget()
	if err != nil {
		return api.Unit{}, false, err
	}
	c.opts.Met(u.Name)
	c.Tell(ctx)
	if err := c.opts.did(ctx, u.Name, "upload", u.Version); err != nil {
		return api.Unit{}, created, err
	}
	info, err := c.withSchemas(u)
	return info, created, err
}

// acceptUnit holds an upload against the policy, and lets its kind check and prepare it.
func (r *Rules) acceptUnit(ctx context.Context, u *unit.Unit) error {
	if refusal := u.Policy.Refusal; refusal != nil {
		return refusal
	}
	kind, err := r.Kinds.Of(u)
	if err != nil {
		return err
	}
	if acceptor, ok := kind.(run.Acceptor); ok {
		return acceptor.Accept(ctx, u)
	}
	return nil
}

// describer returns the unit's kind as a run.Describer, or an Input fault if it is none.
func (c *Catalogue) describer(u *unit.Unit) (run.Describer, error) {
	kind, err := c.opts.Rules.Kinds.Of(u)
	if err != nil {
		return nil, err
	}
	if describer, ok := kind.(run.Describer); ok {
		return describer, nil
	}
	return nil, fault.New(fault.Input, "%q isn't an Agentic Unit", u.Name).
		WithHint("`aod describe %s` shows its contract", u.Name)
}

// StdinLimit returns how many bytes an Agentic Unit takes on stdin. The error is an Input
// fault for a unit of another kind, which takes none.
func (c *Catalogue) StdinLimit(ctx context.Context, name string) (int64, error) {
	u, err := c.names.find(ctx, name)
	if err != nil {
		return 0, err
	}
	describer, err := c.describer(u)
	if err != nil {
		return 0, fault.New(fault.Input, "%q isn't an Agentic Unit: it doesn't read stdin", name).
			WithHint("`aod run` runs units of every kind")
	}
	return describer.StdinBytes(u)
}

// Card returns the model card of an Agentic Unit as its program printed it. For a unit of
// another kind the error is an Input fault; if the program prints no card, a Capsule fault.
func (c *Catalogue) Card(ctx context.Context, name string) (json.RawMessage, error) {
	u, err := c.names.find(ctx, name)
	if err != nil {
		return nil, err
	}
	describer, err := c.describer(u)
	if err != nil {
		return nil, fault.New(fault.Input, "%q isn't an Agentic Unit: it has no model card", name).
			WithHint("`aod describe %s` shows its contract", name)
	}
	return describer.Card(ctx, u)
}

// Disable switches a unit off: a run of it that isn't accepted yet is refused with a
// Disabled fault. It stays off when the server is started again. Runs that go on or wait aren't
// touched.
func (c *Catalogue) Disable(ctx context.Context, name string) (api.Unit, error) {
	return c.switchUnit(ctx, name, func(name string) error {
		return c.opts.Switched.Disable(audited(ctx, name, "disable"), name, time.Now().UTC())
	})
}

// Enable switches a unit on, whatever its directory says.
func (c *Catalogue) Enable(ctx context.Context, name string) (api.Unit, error) {
	return c.switchUnit(ctx, name, func(name string) error {
		return c.opts.Switched.Enable(audited(ctx, name, "enable"), name)
	})
}

func (c *Catalogue) switchUnit(
	ctx context.Context, name string, stored func(name string) error,
) (api.Unit, error) {
	if err := c.opts.Admits(ctx); err != nil {
		return api.Unit{}, err
	}
	u, err := c.names.find(ctx, name)
	if err != nil {
		return api.Unit{}, err
	}
	if err := c.names.manages(ctx, u.Name, u.Team); err != nil {
		return api.Unit{}, err
	}
	c.opts.Switches.changing.Lock()
	defer c.opts.Switches.changing.Unlock()
	if err := stored(u.Name); err != nil {
		return api.Unit{}, err
	}
	if err := c.Restore(ctx); err != nil {
		return api.Unit{}, err
	}
	return c.Show(ctx, u.Name)
}

// Restore takes in what the operator said of units, as it is stored.
func (c *Catalogue) Restore(ctx context.Context) error {
	off, err := c.opts.Switched.Switched(ctx)
	if err == nil {
		c.opts.Switches.set(off)
	}
	return err
}

// Idle returns a unit when nothing of it runs or waits, or as it stands when ctx ends.
func (c *Catalogue) Idle(ctx context.Context, name string) (api.Unit, error) {
	u, err := c.names.find(ctx, name)
	for err == nil && ctx.Err() == nil {
		going := c.opts.Live(u.Name)
		if len(going) == 0 {
			break
		}
		select {
		case <-going[0].Gone:
		case <-ctx.Done():
		}
	}
	return c.Show(context.WithoutCancel(ctx), name)
}

// Versions lists the versions of a unit that are kept, the newest first.
func (c *Catalogue) Versions(ctx context.Context, name string) ([]api.UnitVersion, error) {
	name, err := c.names.known(ctx, name)
	if err != nil {
		return nil, err
	}
	kept, err := c.registry.Versions(ctx, name)
	if err != nil {
		return nil, err
	}
	versions := make([]api.UnitVersion, 0, len(kept))
	for _, v := range kept {
		versions = append(versions, api.UnitVersion{
			Version: v.Version, Source: v.Source, Origin: v.Origin, By: v.By, Since: v.Since, Current: v.Current,
		})
	}
	return versions, nil
}

// Rollback makes a version that is kept the current one of an uploaded unit, after the
// checks of an upload. The error is NotFound for a version that isn't kept, Conflict for a unit
// of a directory.
func (c *Catalogue) Rollback(ctx context.Context, name, version string) (api.Unit, error) {
	if err := c.opts.Admits(ctx); err != nil {
		return api.Unit{}, err
	}
	name, err := c.names.owned(ctx, name)
	if err != nil {
		return api.Unit{}, err
	}
	u, err := c.registry.Rollback(ctx, name, version)
	c.callers.forget()
	if err != nil {
		return api.Unit{}, err
	}
	c.Tell(ctx)
	if err := c.opts.did(ctx, u.Name, "rollback", u.Version); err != nil {
		return api.Unit{}, err
	}
	return c.withSchemas(u)
}

// audited returns a context of what the client of ctx does with a unit.
func audited(ctx context.Context, name, verb string) context.Context {
	return store.Audit(ctx, store.Audited{Team: access.OwnerOf(ctx).Team, Verb: verb, Noun: "unit", Object: name})
}

// did stores what the client of ctx has done with the files of a unit.
func (o Options) did(ctx context.Context, name, verb, version string) error {
	return o.Audit(ctx, store.Audited{
		Team: access.OwnerOf(ctx).Team, Verb: verb, Noun: "unit", Object: name, Detail: version,
	})
}

// Remove removes an uploaded unit: no new run gets it. While runs of it go on or wait, the
// error is a Conflict fault that names them; with force it isn't, and they go on to their end
// with the version that they have.
func (c *Catalogue) Remove(ctx context.Context, name string, force bool) (err error) {
	if err := c.opts.Admits(ctx); err != nil {
		return err
	}
	if name, err = c.names.owned(ctx, name); err != nil {
		return err
	}
	if err := c.registry.Removable(ctx, name); err != nil {
		return err
	}
	if live := c.opts.Live(name); len(live) > 0 && !force {
		return hasRuns(ctx, name, live)
	}
	if err := c.registry.Remove(ctx, name); err != nil {
		return err
	}
	c.callers.forget()
	c.Tell(ctx)
	return c.opts.did(ctx, name, "remove", "")
}

// Tell looks at all units, and has the feed tell of those that have changed. What it couldn't tell, the next call
// tells.
func (c *Catalogue) Tell(ctx context.Context) {
	c.telling.Lock()
	defer c.telling.Unlock()
	listed, err := c.registry.List(ctx)
	if err == nil {
		err = c.opts.Feed.SetUnits(ctx, marksOf(listed))
	}
	if err != nil && ctx.Err() == nil {
		c.opts.Logger.Warn("changes of units not told yet", fault.LogAttr(err))
	}
}

// marksOf returns what changes with a unit, by its name.
func marksOf(listed []registry.Listed) map[string]store.UnitMark {
	marks := map[string]store.UnitMark{}
	for _, l := range listed {
		mark := marks[l.Name]
		if l.Unit != nil {
			mark = store.UnitMark{Mark: l.Unit.Version, Team: l.Unit.Team}
		}
		if l.Problem != nil {
			digest := sha256.Sum256(fmt.Append(nil, l.Problem.Msg, l.Problem.Findings))
			mark.Mark += " " + hex.EncodeToString(digest[:8])
		}
		marks[l.Name] = mark
	}
	return marks
}

// namedRuns is how many runs an error names.
const namedRuns = 5

// hasRuns names the runs that the client of ctx may know of.
func hasRuns(ctx context.Context, name string, live []Live) error {
	var ids []string
	own := 0
	for _, l := range live {
		if !access.Sees(ctx, l.Owner) {
			continue
		}
		if own++; own <= namedRuns {
			ids = append(ids, l.ID)
		}
	}
	listed := cmp.Or(strings.Join(ids, ", "), "those of others")
	if more := own - len(ids); more > 0 {
		return fault.New(fault.Conflict, "the unit %s has runs that go on or wait: %s and %d more", name, listed, more).
			WithHint(hasRunsHint, name)
	}
	return fault.New(fault.Conflict, "the unit %s has runs that go on or wait: %s", name, listed).
		WithHint(hasRunsHint, name)
}

const hasRunsHint = "wait until they have ended, or cancel them; `aod units rm --force %s` hides it from new runs at " +
	"once and leaves those alone"

// Terms is what clients of A2A are told of a unit, and how it is spoken with.
type Terms struct {
	Unit     api.Unit // without its schemas and its status
	Schema   []byte   // its schema.json
	Told     capsule.A2A
	Sessions bool // its runs can be turns of sessions
}

// Terms returns those of a unit, or a NotFound fault: also of one that isn't among Units.
func (c *Catalogue) Terms(ctx context.Context, name string) (Terms, error) {
	u, err := c.names.find(ctx, name)
	if err != nil {
		return Terms{}, err
	}
	terms := Terms{Unit: c.info(u), Told: u.Policy.A2A}
	if terms.Schema, err = u.Schema(); err != nil {
		return terms, err
	}
	kind, err := c.opts.Rules.Kinds.Of(u)
	if err != nil {
		return terms, err
	}
	talks, ok := kind.(run.Conversant)
	if !ok {
		return terms, nil
	}
	conversation, has, err := talks.Conversation(u)
	terms.Sessions = has && !conversation.Alone
	return terms, err
}
