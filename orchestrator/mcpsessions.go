package orchestrator

import (
	"context"
	"net/http"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

const maxCallerSessions = 16 // with MCP servers at once, of one run

// sessionRules returns the rules of sessions with a unit. The error is a fault for one that is
// run.
func (l *loop) sessionRules(u *unit.Unit) (relay.Options, error) {
	kind, err := l.kinds.Of(u)
	if err != nil {
		return relay.Options{}, err
	}
	if talker, ok := kind.(run.Talker); ok {
		return talker.SessionRules(u)
	}
	return relay.Options{}, run.NoSession(u)
}

// MCPSessions returns the handler of sessions with MCP servers, by streamable HTTP, at
// relay.Prefix.
func (s *Service) MCPSessions() http.Handler {
	return relay.NewDoor(serviceSessions{s}, relay.DoorOptions{Sessions: s.opts.MCPSessions, Logger: s.logger})
}

// serviceSessions implements relay.Host for clients of the server.
type serviceSessions struct{ *Service }

// Rules implements relay.Host.
func (s serviceSessions) Rules(ctx context.Context, name string) (relay.Options, error) {
	if err := s.admits(ctx); err != nil {
		return relay.Options{}, err
	}
	u, err := s.units.Get(ctx, name)
	if err != nil {
		return relay.Options{}, err
	}
	return s.sessionRules(u)
}

// Start implements relay.Host.
func (s serviceSessions) Start(ctx context.Context, name string, session *relay.Session) error {
	u, err := s.units.Get(ctx, name)
	if err != nil {
		return err
	}
	input, err := contract.Decode([]byte("{}"), s.opts.PayloadBytes)
	if err != nil {
		return err
	}
	asked := accepted{Request: run.Request{Unit: u, Input: input, Extra: session}, find: s.units.Get, once: true}
	if err := s.ready(ctx, &asked); err != nil {
		return err
	}
	record, _, err := s.accept(ctx, asked)
	if err == nil {
		go s.attend(record.ID, session)
	}
	return err
}

// attend ends a session whose run has ended before there was a server, and a run whose client
// has left before that.
func (l *loop) attend(id string, session *relay.Session) {
	ended, stop := context.WithCancel(l.life)
	defer stop()
	go func() {
		select {
		case <-session.Done():
		case <-ended.Done():
			return
		}
		if !session.Begun() {
			_, _ = l.Cancel(ended, id, relay.ErrClientLeft.Error()) // it has ended
		}
	}()
	record, err := l.Await(l.life, id)
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

// callerSessions implements relay.Host for one run: its units are those that it is granted.
type callerSessions struct {
	*childRuns
	broker *handoff.Broker
}

// sessionMount is the address of MCP servers in the capsule API. The path names the unit.
func (c *childRuns) sessionMount() handoff.Mount {
	return handoff.Mount{Path: relay.Prefix + "{unit}", New: func(b *handoff.Broker) http.Handler {
		return relay.NewDoor(callerSessions{c, b},
			relay.DoorOptions{Sessions: maxCallerSessions, Logger: c.logger, Problem: handoff.ProblemOf})
	}}
}

// Rules implements relay.Host.
func (c callerSessions) Rules(ctx context.Context, name string) (relay.Options, error) {
	if _, err := c.broker.Unit(ctx, name); err != nil {
		return relay.Options{}, err
	}
	u, err := c.job.find(ctx, name)
	if err != nil {
		return relay.Options{}, err
	}
	rules, err := c.sessionRules(u)
	if err != nil {
		return relay.Options{}, err
	}
	if granted, narrowed := c.job.Unit.Policy.Tools[name]; narrowed {
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
func (c callerSessions) Start(ctx context.Context, name string, session *relay.Session) error {
	id, err := c.broker.StartSession(ctx, name, session)
	if err != nil {
		return err
	}
	go c.attend(id, session)
	go func() {
		c.slot.Await(c.job.life, func() { awaitBegun(session) })
		c.slot.Regain(c.job.life)
	}()
	return nil
}

// awaitBegun returns when a session has a server, or is over.
func awaitBegun(session *relay.Session) {
	select {
	case <-session.Beginning():
	case <-session.Done():
	}
}
