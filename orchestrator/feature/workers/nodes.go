package workers

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
)

// errAnyNode refuses what a machine asks that has enrolled as no worker yet.
var errAnyNode = fault.New(fault.Forbidden, "with what all nodes of the Swarm have one may join, and nothing else").
	WithHint("`aod work --join FILE` joins")

// admit has the worker of a node join, and returns its name. One that joins again has another credential from then on.
func (h face) admit(ctx context.Context, asked wire.Enrolment) (string, error) {
	if h.opts.Swarm == nil || len(asked.Node) > maxNode {
		return "", errAnyNode
	}
	others, err := h.opts.Credentials.Names()
	if err != nil {
		return "", err
	}
	name, err := h.opts.Swarm.Join(ctx, asked.Node, func(name string) bool { return slices.Contains(others, name) })
	if err != nil {
		return "", err
	}
	if err := h.opts.Credentials.Admit(name, asked.Credential); err != nil {
		return "", err
	}
	if h.opts.Swarm.IsRemoved(name) { // while it joined
		return "", errors.Join(errRemoved, h.opts.Credentials.RemoveWorker(name))
	}
	return name, nil
}

// leave answers a worker that was told to end whether its node is to be emptied.
func (h face) leave(w http.ResponseWriter, r *http.Request, name string) error {
	var asked wire.Held
	if err := read(r, httpwire.SmallBody, &asked); err != nil {
		return err
	}
	var answer wire.Leaving
	if worker := h.registry.find(name); worker != nil && h.opts.Swarm != nil {
		answer.Finish = h.opts.Swarm.Leaves(r.Context(), name, h.registry.nodeOf(name))
		h.registry.showAll()
	}
	h.logger.Info("worker leaves", "worker", name, "finish", answer.Finish)
	return reply(w, answer)
}

// nodeOf is the node that a worker tells to be on.
func (g *registry) nodeOf(name string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.all[name]; w != nil {
		return w.about.Node
	}
	return ""
}
