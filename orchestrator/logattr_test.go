package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

func TestNoPayloadReachesALog(t *testing.T) {
	t.Parallel()
	const canary = "canary-7f3a"
	var log lockedBuffer
	w := newFixture(t, func(o *settings) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	files, err := w.service.NewSpool()
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Add("doc", canary+".txt", strings.NewReader(canary), 100); err != nil {
		t.Fatal(err)
	}
	record, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker", Input: encoded(orders{Mark: canary, File: canary, Lines: 1}), Files: files})
	if err != nil {
		t.Fatal(err)
	}
	w.await(record.ID)
	w.await(w.submit(orders{Mark: canary, Exit: 3}))
	w.breaks("Create", fault.New(fault.Unavailable, "the engine is away"))
	id := w.submit(orders{Mark: canary})
	w.until(id, func(r api.Record) bool { return len(r.Attempts) > 0 })
	w.breaks("Create", nil)
	w.await(id)
	_, _, err = w.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker", Input: []byte(`{"` + canary + `":1}`), Key: canary})
	if !fault.Is(err, fault.Input) {
		t.Errorf("error %v", err)
	}
	w.service.logger.Warn("no room", fault.LogAttr(fault.Wrap(fault.Unavailable, fmt.Errorf("x: %w", &fs.PathError{Op: "open", Path: canary, Err: syscall.ENOSPC}), "%q can't be written", canary)))
	w.service.logger.Warn("no room", fault.LogAttr(errors.Join(&os.LinkError{Op: "rename", Old: canary, New: canary, Err: syscall.EXDEV})))
	got := log.String()
	if strings.Contains(got, canary) {
		t.Errorf("the log tells what it must not:\n%s", got)
	}
	for _, want := range []string{"run finished", "attempt ended with a fault", "open: no space left on device", "rename: invalid cross-device link"} {
		if !strings.Contains(got, want) {
			t.Errorf("the log doesn't tell %q", want)
		}
	}
}

func TestTheEndOfARunIsNoFaultOfItsAttempt(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	s := &stage{attempt: func(ctx context.Context, a *actor) (run.Result, error) {
		err := a.begin()
		<-ctx.Done()
		return run.Result{}, errors.Join(err, context.Cause(ctx))
	}}
	p := newPlays(t, s, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	id := p.submit()
	p.until(id, running)
	if _, err := p.service.Cancel(trusted.Context(t), id, "enough"); err != nil {
		t.Fatal(err)
	}
	if record := p.await(id); record.Outcome != api.WasCancelled {
		t.Errorf("record %s", show(record))
	}
	if got := log.String(); !strings.Contains(got, "run finished") || strings.Contains(got, "level=WARN") {
		t.Errorf("the log tells\n%s", got)
	}
}

// lockedBuffer is a log that is read while it may be written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
