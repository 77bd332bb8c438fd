package handoff

// What tests see beyond the package's own.
const (
	MaxStarting     = maxStarting
	MaxProgressText = maxProgressText
)

// Starting returns how many calls are read and started now.
func (b *Broker) Starting() int { return len(b.starting) }

// Of returns how much of a budget is spent below a run.
func (t *Tree) Of(budget, run string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spent[account{budget, run}]
}

// Keys returns how many idempotency keys are remembered.
func (b *Broker) Keys() int { return len(b.keys.known) }
