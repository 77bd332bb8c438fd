package runtime

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/agent-on-demand/aod/runtime/tunnel"
)

// fillVolumes copies the run's directories to a remote engine. It and its like do nothing for
// an engine that sees this host's files.
func (l Layout) fillVolumes(ctx context.Context) error {
	if l.remote == nil {
		return nil
	}
	return l.remote.fill(ctx)
}

// fetchResults copies what the run has left back to this host.
func (l Layout) fetchResults(ctx context.Context) error {
	if l.remote == nil {
		return nil
	}
	return l.remote.fetch(ctx)
}

// refillVolumes is fillVolumes for a container that another process made and may have filled.
func (l Layout) refillVolumes(ctx context.Context) error {
	if l.remote == nil {
		return nil
	}
	return l.remote.fillOnce(ctx)
}

// removeVolumes removes the engine's copy of the run's directories. The container is removed
// by then.
func (l Layout) removeVolumes(ctx context.Context) error {
	if l.remote == nil {
		return nil
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	l.remote.removed.Store(true)
	return removeAttempt(ctx, l.remote.engine, l.remote.spec)
}

// keepTunnel keeps the tunnel to the container open until ctx ends.
func (v *volumes) keepTunnel(ctx context.Context, id string) {
	v.tunnel.KeepOpen(ctx, func(ctx context.Context) (io.ReadWriteCloser, error) {
		return v.engine.Exec(ctx, id, []string{tunnel.Program})
	})
}

const (
	// usageInterval is the time between two questions about the disk.
	usageInterval = 2 * time.Second
	// maxUnmeasured is how long the far end may fail to tell the run's disk usage. The
	// program has the same user id and could stop the far end.
	maxUnmeasured = 30 * time.Second
)

// watchDisk is Layout.watchDisk for the engine's disk.
func (v *volumes) watchDisk(ctx context.Context, limit int64, end context.CancelCauseFunc) {
	ticker := time.NewTicker(usageInterval)
	defer ticker.Stop()
	measured := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		usage, err := v.tunnel.Usage(ctx)
		if err == nil {
			measured = time.Now()
		}
		if over := overUsage(usage, limit, time.Since(measured)); over != nil {
			end(over)
			return
		}
	}
}

// overUsage returns the limit that the run went over; nil if none.
func overUsage(usage tunnel.Usage, limit int64, unmeasured time.Duration) *LimitError {
	switch {
	case usage.Bytes > limit:
		return overBytes(limit)
	case usage.Entries > watchEntries:
		return overEntries()
	case unmeasured > maxUnmeasured:
		return &LimitError{
			Limit: "output", Message: fmt.Sprintf("for %s nobody could tell how much it writes to /io and /workspace",
				maxUnmeasured),
			Hint: "does it stop the processes beside it, or use up its memory or its processes?",
		}
	}
	return nil
}
