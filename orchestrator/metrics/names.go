package metrics

import "sync"

// Names bounds how many values a label has that others than the operator choose: what comes after them is counted
// under "". It is safe for concurrent use.
type Names struct {
	most int

	mu    sync.Mutex
	known map[string]bool
}

// NewNames returns Names of which there are at most so many.
func NewNames(most int) *Names { return &Names{most: most, known: map[string]bool{}} }

// Label returns a name as the value of a label; "": it is one too many.
func (n *Names) Label(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.known[name] && len(n.known) >= n.most {
		return ""
	}
	n.known[name] = true
	return name
}

// MaxTeams is how many teams a metric has at most: tokens and whoever vouches for people name them.
const MaxTeams = 1000
