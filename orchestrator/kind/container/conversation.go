package container

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// idleTime is how long a container lives on without a turn where agent.yaml doesn't say.
const idleTime = 30 * time.Minute

// talker returns the configuration of a unit with sessions, or whose runs are one turn of a
// dialog; nil of another one.
func talker(u *unit.Unit) *agent.Config {
	c, ok := u.Definition.(*capsule.Capsule)
	if !ok || c.Wrapped == nil || c.Wrapped.Mode != agent.Interactive && c.Wrapped.Input != agent.JSONRPC {
		return nil
	}
	return c.Wrapped
}

// Conversation implements run.Conversant.
func (c *Containers) Conversation(u *unit.Unit) (terms run.SessionTerms, has bool, err error) {
	config := talker(u)
	if config == nil {
		return terms, false, nil
	}
	if runtime.IsRemote(c.engine) {
		return terms, false, fault.New(fault.Unsupported,
			"%q is talked with, which an engine elsewhere can't have: its files and streams are on this machine",
			u.Name).
			WithHint("use an engine on this machine")
	}
	terms.Alone, terms.Resumes = config.Mode != agent.Interactive, resumes(config)
	if config.Session.KeepAlive {
		terms.Idle = cmp.Or(config.Session.Idle, idleTime)
	}
	return terms, true, nil
}

// resumes reports whether a session goes on in a new container. Without a protocol each turn has
// one of its own, and what the program keeps in its home comes along.
func resumes(config *agent.Config) bool {
	return len(config.Resume) > 0 || config.Protocol == agent.ACP || !config.Session.KeepAlive
}

// EndSession implements run.Conversant. The program gets a SIGTERM first.
func (c *Containers) EndSession(ctx context.Context, id string) error {
	v, lives := c.livings.LoadAndDelete(id)
	if !lives {
		return runtime.RemoveAll(ctx, c.engine, id, c.home.Owner)
	}
	if err := v.(*living).remove(ctx); err != nil {
		return errors.Join(err, runtime.RemoveAll(ctx, c.engine, id, c.home.Owner))
	}
	return nil
}
