package main

import (
	"errors"
	"path/filepath"
	goruntime "runtime"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/feature/artifacts"
	"github.com/agent-on-demand/aod/orchestrator/feature/egresses"
	"github.com/agent-on-demand/aod/orchestrator/feature/mcpsessions"
	"github.com/agent-on-demand/aod/orchestrator/feature/memories"
	"github.com/agent-on-demand/aod/orchestrator/feature/messages"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/feature/upstreams"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	kindflow "github.com/agent-on-demand/aod/orchestrator/kind/flow"
	"github.com/agent-on-demand/aod/orchestrator/kind/remote"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime/docker"
)

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

// featureOptions are what the features need; a zero field leaves one without something.
type featureOptions struct {
	models      models.Models
	upstreams   *upstream.Upstreams
	door        *egress.Door
	pushes      pushes.Options
	mcpSessions int // at once, of a server's client
}

// featuresOver are what takes part in runs. Add new ones here.
func featuresOver(o featureOptions) []feature.Feature {
	told := pushes.NewFeature(o.pushes)
	return []feature.Feature{
		mcpsessions.New(o.mcpSessions), models.New(o.models), upstreams.New(o.upstreams), egresses.New(o.door),
		artifacts.New(), messages.New(), memories.New(o.models.Transcript), told, schedules.New(nil),
		webhooks.New(told),
	}
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

// openLocal calls do with a runner of units on the local engine.
func openLocal(env *cli.Env, opts cli.LocalOptions, do func(*cli.Local) error) (err error) {
	if err := leadsRuns(goruntime.GOOS); err != nil {
		return err
	}
	engine, err := docker.New(docker.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	l := &cli.Local{
		Engine: engine,
		Containers: container.New(engine,
			container.Options{Patches: env.Patches, Secret: secrets.Files{Named: opts.Secrets}.Read}),
	}
	kept := secrets.Files{Dir: filepath.Join(env.Data, "secrets"), Named: opts.Secrets}
	upstreams, err := localUpstreams(kept, opts)
	if err != nil {
		return err
	}
	defer upstreams.Close()
	l.Kinds = kindsOver(l.Containers, remote.New(remote.Options{Secrets: kept}))
	door, err := localDoor()
	if err != nil {
		return err
	}
	if l.Runs, err = orchestrator.NewLocal(orchestrator.Options{
		Home: env.Data, Kinds: l.Kinds, Concurrency: opts.AtOnce,
		Features: featuresOver(featureOptions{models: opts.Models, upstreams: upstreams, door: door}),
		Mounts:   []capsuleapi.Mount{mcpMount(nil)},
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Runs.Close()) }()
	return do(l)
}
