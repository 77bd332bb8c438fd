package pause

import "sync"

// Notifier wakes every goroutine that waits for news. The zero value has none yet.
type Notifier struct {
	mu   sync.Mutex
	next chan struct{}
}

// After returns a channel that the next Notify closes.
func (n *Notifier) After() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

// Notify wakes those who wait.
func (n *Notifier) Notify() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}
