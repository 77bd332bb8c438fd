package store

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/agent-on-demand/aod/internal/pause"
)

const (
	// maxWaiting is the capacity of the channel of waiting writes. Further callers wait to
	// send.
	maxWaiting = 256
	// maxBatch bounds the writes of one transaction, and with them the write-ahead log.
	maxBatch = 64
)

// change is the work of a write. It may be called twice, the first time rolled back.
type change func(ctx context.Context, tx *transaction) error

// write is a change with a caller that waits for it.
type write struct {
	change  change
	claimed atomic.Bool // by the writer, which will do it, or by the caller, which gives up
	done    chan error  // of capacity 1
}

// claim reports whether the caller is the first to claim the write.
func (w *write) claim() bool { return w.claimed.CompareAndSwap(false, true) }

// writer does all writes, in one goroutine. While one transaction commits, writes gather
// for the next one and share the cost of reaching the disk.
type writer struct {
	db      *sql.DB // of one connection
	known   statements
	logger  *slog.Logger
	around  func(commit func() error) error // nil: a transaction is committed without more
	waiting chan *write
	pushed  chan struct{} // of capacity 1: there may be new deliveries
	fed     pause.Notifier
	newest  int64 // change of the feed, when somebody last waited for one
	quit    chan struct{}
	ended   chan struct{}
	stop    func()
}

func newWriter(db *sql.DB, opts Options) *writer {
	w := &writer{
		db: db, known: statements{known: map[string]*sql.Stmt{}}, logger: opts.Logger, around: opts.AroundCommit,
		waiting: make(chan *write, maxWaiting),
		pushed:  make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{}),
	}
	w.stop = sync.OnceFunc(func() { close(w.quit) })
	go w.loop()
	return w
}

// do returns when the change is committed, or wasn't done. If ctx ends before the change
// has begun, it is not done. After that, ctx has no effect.
func (w *writer) do(ctx context.Context, change change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	one := &write{change: change, done: make(chan error, 1)}
	select {
	case w.waiting <- one:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return errClosed
	}
	select {
	case err := <-one.done:
		return err
	case <-ctx.Done():
		if one.claim() {
			return ctx.Err()
		}
	case <-w.ended:
	}
	return w.answer(one)
}

// answer waits for the result of a write that was sent to the writer, unless the writer
// ends without it.
func (w *writer) answer(one *write) error {
	select {
	case err := <-one.done:
		return err
	case <-w.ended:
	}
	select {
	case err := <-one.done:
		return err
	default:
		return errClosed
	}
}

// close waits for the writes that have begun.
func (w *writer) close() error {
	w.stop()
	<-w.ended
	return w.db.Close()
}

func (w *writer) loop() {
	defer close(w.ended)
	for !pause.Over(w.quit) {
		select {
		case first := <-w.waiting:
			w.commit(context.Background(), w.gather(first))
			w.tellOfChanges(context.Background()) // after the waiting callers have their answers
			w.known.prepare(context.Background(), w.db)
		case <-w.quit:
		}
	}
}

// gather claims the first write and the writes that are waiting already; where somebody looks at
// each commit, the first one alone.
func (w *writer) gather(first *write) []*write {
	var batch []*write
	for next := first; ; {
		if next.claim() {
			batch = append(batch, next)
		}
		if len(batch) == maxBatch || w.around != nil {
			return batch
		}
		select {
		case next = <-w.waiting:
		default:
			return batch
		}
	}
}

// commit does the writes in one transaction and answers them. If the whole transaction is
// lost, each write is done again in a transaction of its own: one that can't be done must
// not fail the others.
func (w *writer) commit(ctx context.Context, batch []*write) {
	begun, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		answerAll(batch, make([]error, len(batch)), err)
		return
	}
	tx := &transaction{Tx: begun, statements: &w.known}
	results, err := w.doAll(ctx, tx, batch)
	if err == nil && tx.pushed {
		w.tellOfDeliveries()
	}
	if err == nil || len(batch) == 1 {
		answerAll(batch, results, err)
		return
	}
	w.logger.Warn("store transaction lost; doing its writes one by one", "writes", len(batch), "error", err)
	for _, one := range batch {
		w.commit(ctx, []*write{one})
	}
}

func (w *writer) tellOfDeliveries() {
	select {
	case w.pushed <- struct{}{}:
	default: // somebody will look anyway
	}
}

// tellOfChanges wakes those who wait for the feed, if it has something new.
func (w *writer) tellOfChanges(ctx context.Context) {
	if !w.fed.IsAwaited() {
		return
	}
	newest, err := newestChange(ctx, w.db)
	if err == nil && newest == w.newest {
		return
	}
	w.newest = newest
	w.fed.Notify() // who can't read it is told so
}

// answerAll sends each caller the result of its write, or the transaction's error.
func answerAll(batch []*write, results []error, lost error) {
	for i, one := range batch {
		if results[i] == nil {
			results[i] = lost
		}
		one.done <- results[i]
	}
}

// doAll returns the result of each write. An error means that nothing was stored.
func (w *writer) doAll(ctx context.Context, tx *transaction, batch []*write) ([]error, error) {
	results := make([]error, len(batch))
	for i, one := range batch {
		var lost error
		if results[i], lost = doOne(ctx, tx, one.change); lost != nil {
			_ = tx.Rollback() // SQLite has mostly done that itself
			return results, lost
		}
	}
	if w.around != nil {
		return results, w.around(tx.Commit)
	}
	return results, tx.Commit()
}

// doOne undoes a change that fails. The whole transaction is lost if SQLite rolled it back,
// as it does when the disk is full.
func doOne(ctx context.Context, tx *transaction, change change) (result, lost error) {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT write"); err != nil {
		return nil, fmt.Errorf("begin write: %w", err)
	}
	result = change(ctx, tx)
	if result != nil {
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO write"); err != nil {
			return nil, fmt.Errorf("undo write: %w", result)
		}
	}
	if _, err := tx.ExecContext(ctx, "RELEASE write"); err != nil {
		return nil, fmt.Errorf("end write: %w", err)
	}
	return result, nil
}
