package docker

import (
	"context"

	"github.com/docker/docker/api/types/swarm"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// Nodes lists the nodes of the Swarm that the engine manages. The error is an Unsupported fault of an engine that is no
// manager, and an Unavailable one while the managers have no leader.
func (e *Engine) Nodes(ctx context.Context) ([]runtime.Node, error) {
	listed, err := e.cli.NodeList(ctx, swarm.NodeListOptions{})
	if err == nil {
		nodes := make([]runtime.Node, 0, len(listed))
		for _, n := range listed {
			nodes = append(nodes, nodeOf(n))
		}
		return nodes, nil
	}
	info, failed := e.cli.Info(ctx)
	switch {
	case failed != nil:
		return nil, e.faultOf(ctx, call{"list", "nodes", ""}, failed)
	case !info.Swarm.ControlAvailable:
		return nil, fault.Wrap(fault.Unsupported, err, "the engine is no manager of a Swarm, which knows its nodes").
			WithHint("run the server on a manager (`docker swarm init` makes one), or leave the setting swarm out")
	}
	return nil, fault.Wrap(fault.Unavailable, err, "the Swarm doesn't tell its nodes").
		WithHint("has it a leader? `docker node ls`")
}

func nodeOf(n swarm.Node) runtime.Node {
	return runtime.Node{
		ID: n.ID, Hostname: n.Description.Hostname, Ready: n.Status.State == swarm.NodeStateReady,
		Availability: string(n.Spec.Availability), Labels: n.Spec.Labels,
	}
}
