package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/capsule/flow"
)

// nodes count the ends of nodes of flows. The nodes of a unit are its author's names: a
// version has at most flow.MaxNodes of them, but there may be many versions. So a unit has at
// most maxNodeLabels, and what comes after them is counted under the empty name.
type nodes struct {
	ends *prometheus.CounterVec

	mu    sync.Mutex
	known map[string]*Names // the labels of nodes, by unit
}

// maxNodeLabels is room for each node of a version, and for the items of each.
const maxNodeLabels = 2 * flow.MaxNodes

func newNodes() *nodes {
	return &nodes{
		ends: Counter("aod_flow_steps_total", "Nodes of flows, and items of their maps, that have ended.", "unit",
			"node", "outcome"),
		known: map[string]*Names{},
	}
}

func (n *nodes) count(unit string, s flow.Step) {
	if s.Final() {
		n.ends.WithLabelValues(unit, n.label(unit, s.Address), string(s.State)).Inc()
	}
}

// label is the path of a node. That of a map's items ends in brackets.
func (n *nodes) label(unit, address string) string {
	name := flow.NodePath(address)
	if strings.HasSuffix(address, "]") {
		name += "[]"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.known[unit]
	if known == nil {
		known = NewNames(maxNodeLabels)
		n.known[unit] = known
	}
	return known.Label(name)
}
