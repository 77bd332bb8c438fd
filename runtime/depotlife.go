package runtime

import (
	"context"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/agent-on-demand/aod/runtime/tunnel"
)

// What a sandbox does for a layout that isn't where its engine sees it. With one that is,
// these are nothing.

// send gives the engine the run's directories.
func (l Layout) send(ctx context.Context) error {
	if l.depot == nil {
		return nil
	}
	return l.depot.fill(ctx)
}

// fetch brings back what the run has left.
func (l Layout) fetch(ctx context.Context) error {
	if l.depot == nil {
		return nil
	}
	return l.depot.fetch(ctx)
}

// resend is send for a container that another process made and may have filled.
func (l Layout) resend(ctx context.Context) error {
	if l.depot == nil {
		return nil
	}
	return l.depot.refill(ctx)
}

// clear removes what the engine has of the run's directories, when the container is gone.
func (l Layout) clear(ctx context.Context) error {
	if l.depot == nil {
		return nil
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	l.depot.gone.Store(true)
	return removeAttempt(ctx, l.depot.engine, l.depot.spec)
}

func (d *depot) keepTunnel(ctx context.Context, id string) {
	d.tunnel.KeepOpen(ctx, func(ctx context.Context) (io.ReadWriteCloser, error) {
		return d.engine.Exec(ctx, id, []string{path.Join(aodDir, tunnelName)})
	})
}

const (
	askInterval = 2 * time.Second
	// maxUnmeasured is for how long the far end may not tell what the run takes of the
	// engine's disk. The program has the same user id and could keep it from that.
	maxUnmeasured = 30 * time.Second
)

// watchDisk does for the engine's disk what Layout.watchDisk does for this host's.
func (d *depot) watchDisk(ctx context.Context, limit int64, end context.CancelCauseFunc) {
	ticker := time.NewTicker(askInterval)
	defer ticker.Stop()
	measured := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		usage, err := d.tunnel.Usage(ctx)
		if err == nil {
			measured = time.Now()
		}
		if over := overUsage(usage, limit, time.Since(measured)); over != nil {
			end(over)
			return
		}
	}
}

func overUsage(usage tunnel.Usage, limit int64, unmeasured time.Duration) *LimitError {
	switch {
	case usage.Bytes > limit:
		return overBytes(limit)
	case usage.Entries > watchEntries:
		return overEntries()
	case unmeasured > maxUnmeasured:
		return &LimitError{
			Limit: "output", Message: fmt.Sprintf("for %s nobody could tell how much it writes to /io and /workspace", maxUnmeasured),
			Hint: "does it stop the processes beside it, or use up its memory or its processes?",
		}
	}
	return nil
}
