package doctor

import (
	"context"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/worker"
)

// reachTime bounds the wait for the server of a worker.
const reachTime = 10 * time.Second

// examineWorker tells whether the server is there that the data directory takes runs from; nothing where it has joined
// none.
func examineWorker(ctx context.Context, data string) []checkup {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	joined, err := worker.Reach(ctx, filepath.Join(data, "worker"))
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return []checkup{sick("worker", err)}
	}
	return []checkup{{Name: "worker", Health: fine, Found: "takes runs from " + joined.Server + " as " + joined.Name}}
}
