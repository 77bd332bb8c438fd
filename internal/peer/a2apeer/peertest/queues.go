package peertest

import (
	"context"
	"errors"
	"sync"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv/eventqueue"
)

// queues are the SDK's queues of events, without one that nobody ends. The SDK's execution of a task destroys its queue
// before it is out of the list of those that run: who subscribes between the two makes the queue anew, and the goroutine
// behind it stays for good.
type queues struct {
	inner eventqueue.Manager

	mu   sync.Mutex
	open map[a2a.TaskID]bool // the tasks that are carried out
}

func newQueues() *queues {
	return &queues{inner: eventqueue.NewInMemoryManager(), open: map[a2a.TaskID]bool{}}
}

// CreateWriter implements eventqueue.Manager. An execution begins with it.
func (q *queues) CreateWriter(ctx context.Context, id a2a.TaskID) (eventqueue.Writer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open[id] = true
	return q.inner.CreateWriter(ctx, id)
}

// CreateReader implements eventqueue.Manager. A task whose execution is at its end has no more to read.
func (q *queues) CreateReader(ctx context.Context, id a2a.TaskID) (eventqueue.Reader, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.open[id] {
		return nil, errors.New("the task is no longer carried out")
	}
	return q.inner.CreateReader(ctx, id)
}

// Destroy implements eventqueue.Manager. An execution ends with it.
func (q *queues) Destroy(ctx context.Context, id a2a.TaskID) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, id)
	return q.inner.Destroy(ctx, id)
}
