// Package mcpsessions gives clients and runs sessions with units that are MCP servers, by streamable HTTP: such a unit
// isn't run, but talked with.
//
//	Feature.Door    the sessions of a server's clients
//	part.Mounts     those of a run with the units that it may call
//	Feature.attend  ends a session with its run, and a run with its session
//
// It must not know how runs are led, nor sandboxes: a kind is a Talker, and gets the session by Request.Extra.
//
// Its Go API may change with every release: see docs/stability.md.
package mcpsessions

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

const (
	defaultSessions   = 100 // at once, of a server's client
	maxCallerSessions = 16  // at once, of one run
)

// Talker is a run.Talker that says how its units are talked with.
type Talker interface {
	// SessionRules returns the rules of a unit's sessions; run.NoSession of a unit without any.
	SessionRules(u *unit.Unit) (relay.Options, error)
}

// Feature implements feature.Feature.
type Feature struct {
	sessions int
	process  feature.Process
}

// New returns a Feature with which a client of a server has so many sessions at once; 0 is 100.
func New(sessions int) *Feature { return &Feature{sessions: cmp.Or(sessions, defaultSessions)} }

// Init implements feature.Initializer.
func (f *Feature) Init(p feature.Process) error {
	f.process = p
	return nil
}

// Door returns the handler of sessions for a server's clients, at relay.Prefix, which admit counts or refuses.
func (f *Feature) Door(admit func(context.Context) (leave func(), err error)) http.Handler {
	return relay.NewDoor(clients{f}, relay.DoorOptions{
		Sessions: f.sessions, Admit: admit, Logger: f.process.Logger,
	})
}

// rules returns the rules of sessions with a unit. The error is a fault for one that is run.
func (f *Feature) rules(u *unit.Unit) (relay.Options, error) {
	kind, err := f.process.Kinds.Of(u)
	if err != nil {
		return relay.Options{}, err
	}
	if talker, ok := kind.(Talker); ok {
		return talker.SessionRules(u)
	}
	return relay.Options{}, run.NoSession(u)
}

// attend ends a session whose run has ended before there was a server, and a run whose client
// has left before that.
func (f *Feature) attend(id string, session *relay.Session) {
	ended, stop := context.WithCancel(f.process.Life)
	defer stop()
	go func() {
		select {
		case <-session.Done():
		case <-ended.Done():
			return
		}
		if !session.Begun() {
			_, _ = f.process.Cancel(ended, id, relay.ErrClientLeft.Error()) // it has ended
		}
	}()
	record, err := f.process.Runs.Await(f.process.Life, id)
	if err != nil {
		session.End(err)
		return
	}
	session.End(whyNoSession(record))
}

func whyNoSession(record api.Record) error {
	if record.Error == nil {
		return relay.ErrServerEnded
	}
	return fault.New(fault.Unavailable, "%s", record.Error.Message).WithHint("%s", record.Error.Hint)
}

// clients implements relay.Host for the clients of a server.
type clients struct{ feature *Feature }

// Rules implements relay.Host.
func (c clients) Rules(ctx context.Context, name string) (relay.Options, error) {
	if err := c.feature.process.Gate.Admits(ctx); err != nil {
		return relay.Options{}, err
	}
	u, err := c.feature.process.Units.Get(ctx, name)
	if err != nil {
		return relay.Options{}, err
	}
	return c.feature.rules(u)
}

// Start implements relay.Host.
func (c clients) Start(ctx context.Context, name string, session *relay.Session) error {
	record, _, err := c.feature.process.Submissions.Submit(ctx, spool.Submission{Unit: name, Extra: session})
	if err == nil {
		go c.feature.attend(record.ID, session)
	}
	return err
}

// Join implements feature.Feature.
func (f *Feature) Join(_ context.Context, r *run.Run, _ feature.Part) feature.Part {
	return &part{feature: f, run: r}
}

type part struct {
	feature.Indifferent
	feature *Feature
	run     *run.Run
}

// Mounts implements feature.Part: the path names the unit.
func (p *part) Mounts(slot feature.Slot) []capsuleapi.Mount {
	opts := relay.DoorOptions{
		Sessions: maxCallerSessions, Logger: p.feature.process.Logger, Problem: capsuleapi.ProblemOf,
	}
	return []capsuleapi.Mount{{Path: relay.Prefix + "{unit}", New: func(b *handoff.Broker) http.Handler {
		return relay.NewDoor(caller{part: p, slot: slot, broker: b}, opts)
	}}}
}

// caller implements relay.Host for an attempt of a run: its units are those that it is granted.
type caller struct {
	part   *part
	slot   feature.Slot
	broker *handoff.Broker
}

// Rules implements relay.Host.
func (c caller) Rules(ctx context.Context, name string) (relay.Options, error) {
	if _, err := c.broker.Unit(ctx, name); err != nil {
		return relay.Options{}, err
	}
	u, err := c.part.run.Units.Get(ctx, name)
	if err != nil {
		return relay.Options{}, err
	}
	rules, err := c.part.feature.rules(u)
	if err != nil {
		return relay.Options{}, err
	}
	if granted, narrowed := c.part.run.Unit.Policy.Tools[name]; narrowed {
		rules.Tools = intersection(rules.Tools, granted)
	}
	rules.Spend = c.broker.Spend
	return rules, nil
}

// intersection returns the granted tools that a unit has; nil of it: it says nothing.
func intersection(has, granted []string) []string {
	if has == nil {
		return granted
	}
	return slices.DeleteFunc(slices.Clone(granted), func(tool string) bool { return !slices.Contains(has, tool) })
}

// Start implements relay.Host. The caller's slot is given to others until the server is there:
// it may be the only one.
func (c caller) Start(ctx context.Context, name string, session *relay.Session) error {
	id, err := c.broker.StartSession(ctx, name, session)
	if err != nil {
		return err
	}
	go c.part.feature.attend(id, session)
	go c.slot.Lend(func() { awaitBegun(session) })
	return nil
}

// awaitBegun returns when a session has a server, or is over.
func awaitBegun(session *relay.Session) {
	select {
	case <-session.Beginning():
	case <-session.Done():
	}
}
