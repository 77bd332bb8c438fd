package main

import (
	"context"
	"errors"
	goruntime "runtime"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	kindflow "github.com/agent-on-demand/aod/orchestrator/kind/flow"
	"github.com/agent-on-demand/aod/orchestrator/kind/remote"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
)

// local runs units on this machine for a command.
type local struct {
	*orchestrator.Local
	kinds      run.Kinds
	containers *container.Containers
	engine     runtime.Engine
}

// kindsOver are the kinds of unit that can be executed. Add new ones here.
func kindsOver(containers *container.Containers, agents *remote.Agents) run.Kinds {
	return run.Kinds{
		capsule.KindCapsule: containers,
		capsule.KindAU:      containers,
		capsule.KindRemote:  agents,
		capsule.KindMCP:     containers,
		capsule.KindAgent:   containers,
		capsule.KindFlow:    kindflow.New(nil),
	}
}

// withLocal calls do with a runner of units on the local engine, after removing the remains
// of dead processes.
func (a *app) withLocal(ctx context.Context, do func(*local) error) (err error) {
	return a.openLocal(localOptions{}, func(l *local) error {
		if err := a.sweep(ctx, l); err != nil {
			return err
		}
		return do(l)
	})
}

// localOptions are what a command gives the runs of its units.
type localOptions struct {
	secrets map[string]string // paths of files, by name
	models  models.Models

	upstreams string   // a file of them; "": that of the environment
	asks      []string // of them, whose keys have to be there
	find      finder   // of the units that these call; nil: they call none
}

// withUnit is withLocal for runs of a unit. If its kind leaves no remains elsewhere, the
// engine need not answer: remains of dead processes are then removed if possible.
func (a *app) withUnit(ctx context.Context, u *unit.Unit, opts localOptions, do func(*local) error) error {
	opts.asks = u.Policy.Upstreams
	a.sayReaches(u, opts.find)
	return a.openLocal(opts, func(l *local) error {
		if err := a.sweepFor(ctx, l, u); err != nil {
			return err
		}
		return do(l)
	})
}

// sweepTime is how long a unit that needs no engine waits for one.
const sweepTime = 3 * time.Second

func (a *app) sweepFor(ctx context.Context, l *local, u *unit.Unit) error {
	kind, err := l.kinds.Of(u)
	if err != nil {
		return err
	}
	if _, sweeps := kind.(run.Sweeper); sweeps {
		return a.sweep(ctx, l)
	}
	brief, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	_ = a.sweep(brief, l) // the next command that needs an engine reports the error
	return ctx.Err()
}

// leadsRuns returns an Unsupported fault on a system from which no sandbox can be led.
func leadsRuns(system string) error {
	if system != "windows" {
		return nil
	}
	return fault.New(fault.Unsupported,
		"on Windows aod is the client of a server: it leads no runs, builds no images and serves nobody").
		WithHint("name a server with --server or AOD_SERVER, or use the Linux program, which works in WSL")
}

func (a *app) openLocal(opts localOptions, do func(*local) error) (err error) {
	if err := leadsRuns(goruntime.GOOS); err != nil {
		return err
	}
	engine, err := docker.New(docker.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	l := &local{
		engine: engine,
		containers: container.New(engine,
			container.Options{Patches: a.patches, Secret: secrets.Files{Named: opts.secrets}.Read}),
	}
	upstreams, err := a.localUpstreams(opts)
	if err != nil {
		return err
	}
	defer upstreams.Close()
	l.kinds = kindsOver(l.containers, remote.New(remote.Options{Data: a.data, SecretFiles: opts.secrets}))
	door, err := localDoor()
	if err != nil {
		return err
	}
	if l.Local, err = orchestrator.NewLocal(orchestrator.Options{
		Home: a.data, Kinds: l.kinds, Models: opts.models, Upstreams: upstreams, Egress: door,
		Mounts: []handoff.Mount{mcpMount(nil)},
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return do(l)
}

// sweep removes the remains of dead processes.
func (a *app) sweep(ctx context.Context, l *local) error {
	swept, err := l.Sweep(ctx)
	for _, id := range swept {
		a.note("cleaned up after run %s, whose process had died", id)
	}
	return err
}
