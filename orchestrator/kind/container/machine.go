package container

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// machine is the engine with what this process knows of it, its settings, and the home of its
// runs.
type machine struct {
	engine Engine
	opts   Options
	logger *slog.Logger
	home   run.Home        // since Open
	life   context.Context //nolint:containedctx // of what belongs to no run; Close ends it

	placed   atomic.Bool // the engine's disk is among home.Disks
	confined atomic.Bool // as NeedSeccomp asks, when the engine answered last
	users    users
}

// sweepRun removes what the engine has of a run, or of a sandbox that waited for one.
func (m *machine) sweepRun(ctx context.Context, id string) error {
	return runtime.RemoveAll(ctx, m.engine, id, m.home.Owner)
}

// users remembers whether the engine can give each sandbox a user of its own.
type users struct {
	mu    sync.Mutex
	asked bool
	maps  bool // it can't: the numbers don't exist in its containers
}

// probe asks the engine about itself, and has its disk watched.
func (m *machine) probe(ctx context.Context) (runtime.EngineInfo, error) {
	info, err := m.engine.Probe(ctx)
	if err == nil && info.Local {
		m.home.Disks.Add(info.RootDir)
	}
	return info, err
}

// probeTime bounds one check of whether the engine answers.
const probeTime = 5 * time.Second

// await returns what the engine says of itself when it answers, or the cause when ctx ends.
func (m *machine) await(ctx context.Context) (runtime.EngineInfo, error) {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.MaxInterval, delays.RandomizationFactor = lookAgain, time.Second, 0
	info, err := backoff.Retry(ctx, func() (runtime.EngineInfo, error) {
		probe, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		return m.probe(probe)
	}, backoff.WithBackOff(delays), backoff.WithMaxElapsedTime(0))
	if ctx.Err() != nil {
		return info, context.Cause(ctx)
	}
	return info, err
}

// ready returns a fault while nothing can be started.
func (m *machine) ready(ctx context.Context) error {
	info, err := m.probe(ctx)
	if err != nil {
		return err
	}
	return m.confines(info)
}

// confirm returns an Unsupported fault where NeedSeccomp is set and the engine has no seccomp. It
// asks the engine unless the last answer was good.
func (m *machine) confirm(ctx context.Context) error {
	if !m.opts.NeedSeccomp || m.confined.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return m.ready(ctx)
}

// confines is confirm for what the engine has just said.
func (m *machine) confines(info runtime.EngineInfo) error {
	bad := m.opts.NeedSeccomp && !info.HasSeccomp()
	m.confined.Store(!bad)
	if bad {
		return fault.New(fault.Unsupported,
			"the engine at %s has no seccomp: programs in sandboxes could use every system call", info.Endpoint).
			WithHint("use an engine and a kernel with seccomp; allow_unconfined: true in the server's file serves " +
				"without it")
	}
	return nil
}

// room returns a fault where the disks have no room for an image.
func (m *machine) room(ctx context.Context) error {
	if m.home.Disks.Bounded() && !m.placed.Load() {
		if _, err := m.probe(ctx); err == nil {
			m.placed.Store(true)
		}
	}
	return m.home.Disks.Room(0)
}

// poolDir is where the directories of waiting sandboxes are.
func (m *machine) poolDir() string { return filepath.Join(m.home.Dir, "pool") }

// uidOf returns the user id of a sandbox; 0 is the one that all share.
func (m *machine) uidOf(ctx context.Context, id string) int {
	uid := m.opts.UIDs.Of(id)
	if uid == 0 || os.Geteuid() != 0 || runtime.IsRemote(m.engine) || m.mapsUsers(ctx) {
		return 0
	}
	return uid
}

// mapsUsers asks the engine once. Where that fails, the start that follows will say so.
func (m *machine) mapsUsers(ctx context.Context) bool {
	m.users.mu.Lock()
	defer m.users.mu.Unlock()
	if m.users.asked {
		return m.users.maps
	}
	info, err := m.engine.Probe(ctx)
	if err != nil {
		return true
	}
	m.users.asked, m.users.maps = true, info.MapsUsers
	if info.MapsUsers {
		m.logger.Info("all sandboxes have the same user: the engine maps users")
	}
	return m.users.maps
}

// extra returns the Extra of a request, or the operator's settings if it has none.
func (m *machine) extra(given any, name string) Extra {
	if own, ok := given.(Extra); ok {
		return own
	}
	return m.opts.Units[name]
}

// reaches returns an Unsupported fault for a unit that is to reach hosts from an engine elsewhere.
func (m *machine) reaches(u *unit.Unit) error {
	if len(u.Policy.Egress) == 0 || !runtime.IsRemote(m.engine) {
		return nil
	}
	return fault.New(fault.Unsupported, "%q reaches hosts by name (egress), which it can't from an engine elsewhere",
		u.Name).
		WithHint("use an engine on this machine")
}

// takesProject refuses a project where a sandbox can't have one.
func (m *machine) takesProject(req run.Request) error {
	if req.Project != nil && runtime.IsRemote(m.engine) {
		return fault.New(fault.Unsupported, "a run at an engine on another machine gets no workspace").
			WithHint("use an engine of this machine, or give the agent files with --file")
	}
	return nil
}

// canTalk refuses sessions with an engine that this process can't keep a server's end with.
func (m *machine) canTalk() error {
	if runtime.IsRemote(m.engine) {
		return fault.New(fault.Unsupported,
			"an MCP server can't be run on an engine elsewhere: it has to end with its session, and nobody there "+
				"would notice").
			WithHint("use an engine on this machine")
	}
	return nil
}

// takesSecrets refuses a unit whose program can't be told its secrets when it starts: they would
// have to lie where others see them.
func (m *machine) takesSecrets(u *unit.Unit) error {
	switch {
	case !getsSecrets(u):
		return nil
	case runtime.IsRemote(m.engine):
		return fault.New(fault.Unsupported,
			"%q gets secrets, which an engine elsewhere can't be given without keeping them", u.Name).
			WithHint("use an engine on this machine, or an upstream, which keeps the key outside")
	case u.Policy.Isolation != "":
		return fault.New(fault.Unsupported, "%q gets secrets, which can't be given under the isolation runtime %s",
			u.Name, u.Policy.Isolation).
			WithHint("use an upstream, which keeps the key outside")
	}
	return nil
}

// converses returns an Unsupported fault for a unit that is talked with, of an engine elsewhere.
func (m *machine) converses(u *unit.Unit) error {
	if talker(u) == nil || !runtime.IsRemote(m.engine) {
		return nil
	}
	return fault.New(fault.Unsupported,
		"%q needs live sessions, which a remote engine can't provide: its files and streams are on this machine",
		u.Name).
		WithHint("use an engine on this machine")
}
