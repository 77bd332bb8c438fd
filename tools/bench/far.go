package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/api"
)

const farWarm = "by a worker, warm"

// refilled is how long a worker has to start another container before the next run, beside what the run takes.
const refilled = 800 * time.Millisecond

// farJob is the small job at a worker of this machine, beside the server's own.
func (b *bench) farJob(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	warm, err := b.stock(ctx, 2, smallRun, smallUnit)
	if err != nil {
		return part{}, err
	}
	far, err := b.serve(ctx, serving{more: elsewhere})
	if err != nil {
		return part{}, err
	}
	if _, err := b.work(ctx, far, "one"); err != nil {
		return part{}, err
	}
	runs, misses := 0, 0
	after := func(ctx context.Context, ids ...string) error {
		for _, id := range ids {
			record, err := far.rest(ctx, id)
			if err != nil {
				return err
			}
			if runs++; record.Worker != "one" || record.Container == nil {
				return fmt.Errorf("run %s was at %q", id, record.Worker)
			}
			if record.Container.WaitedMS == 0 {
				misses++
			}
		}
		time.Sleep(refilled)
		return ctx.Err()
	}
	for range 5 { // the image, and the pool learns that the program loads ahead
		record, err := far.submit(ctx, smallRun, waiting, http.StatusOK)
		if err != nil {
			return part{}, err
		}
		if err := after(ctx, record.ID); err != nil {
			return part{}, err
		}
	}
	runs, misses = 0, 0
	g := group{
		ways: []*way{
			warm.submission(apiWarm, smallRun),
			submission(farWarm, after, func(ctx context.Context) (api.Record, error) {
				return far.submit(ctx, smallRun, waiting, http.StatusOK)
			}),
		},
		beside: []string{apiWarm}, times: 7,
		notes: []func() string{warm.String, func() string {
			return fmt.Sprintf("At the worker: %d runs, misses: %d.", runs, misses)
		}},
		aims: []aim{{of: farWarm, ms: 13}, {of: farWarm, beside: apiWarm, ratio: 1.55}},
	}
	return g.measure(ctx, b.pairs)
}

// work has a worker of this machine take the runs of a server.
func (b *bench) work(ctx context.Context, s *server, name string, flags ...string) (*exec.Cmd, error) {
	answer, err := s.ask(ctx, http.MethodPost, "/v1/workers", fmt.Sprintf(`{"name": %q}`, name), http.StatusCreated)
	if err != nil {
		return nil, err
	}
	var join api.WorkerJoin
	if err := json.Unmarshal(answer, &join); err != nil {
		return nil, err
	}
	join.Server = s.url
	data, err := os.MkdirTemp(b.dir, "work-")
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(join)
	if err == nil {
		err = write(filepath.Join(data, "join"), string(raw))
	}
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.aod, append([]string{
		"--data", data, "work", "--join", filepath.Join(data, "join"), "--log-level", "warn",
	}, flags...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.close = append(b.close, func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return cmd.Wait()
	})
	return cmd, poll(ctx, func() (bool, error) {
		answer, err := s.ask(ctx, http.MethodGet, "/v1/workers", "", http.StatusOK)
		var all struct{ Workers []api.Worker }
		if err == nil {
			err = json.Unmarshal(answer, &all)
		}
		return slices.ContainsFunc(all.Workers, func(w api.Worker) bool {
			return w.Name == name && w.State == api.WorkerConnected
		}), err
	})
}
