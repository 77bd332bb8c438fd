package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/agent-on-demand/aod/api/fault"
)

// maxStats bounds the engine's figures of a container, in bytes.
const maxStats = 1 << 20

// CPUTime returns how much processor time a container has used. Docker 20.10 takes a second
// for it, in which it does nothing.
func (e *Engine) CPUTime(ctx context.Context, id string) (time.Duration, error) {
	stats, err := e.cli.ContainerStatsOneShot(ctx, id)
	if err != nil {
		return 0, e.faultOf(ctx, onContainer("measure", id), err)
	}
	defer stats.Body.Close()
	var figures container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(stats.Body, maxStats)).Decode(&figures); err != nil {
		return 0, fault.Wrap(fault.Unavailable, fmt.Errorf("figures of container: %w", err),
			"the engine did not say what a container uses")
	}
	return time.Duration(min(figures.CPUStats.CPUUsage.TotalUsage, math.MaxInt64)), nil
}
