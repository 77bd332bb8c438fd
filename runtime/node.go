package runtime

// Node is a machine of the Swarm that an engine manages.
type Node struct {
	ID           string
	Hostname     string // as the node itself says
	Ready        bool   // the managers hear of it
	Availability string // "active", "pause" or "drain"
	Labels       map[string]string
}
