package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/store"
)

// recover goes on with a run that an earlier process left in the middle.
func (s *Service) recover(ctx context.Context, row store.Run, trees forest) {
	j, err := s.restore(ctx, row, trees)
	if j == nil {
		s.logger.Error("run can't be read", "run", row.ID, about(err))
		return
	}
	s.mu.Lock()
	s.live[j.id] = j
	s.jobs.Add(1)
	s.mu.Unlock()
	switch {
	case j.record.Outcome != "": // only its cleaning up is left
	case j.record.State == api.Starting || j.record.State == api.Running:
		j.ticket = s.queue.Occupy(j.record.Unit, j.private.Concurrency)
	default:
		j.ticket = s.queue.Reenter(j.record.Unit, j.private.Concurrency)
	}
	j.broken = err
	s.logger.Info("run recovered", "run", j.id, "state", j.record.State)
	wish := s.wishFor(ctx, j.id) // before the run can come to an end without it
	go j.drive()
	if wish != nil {
		j.cancel(wish)
	}
}

// restore makes a job of what is stored of it. An error beside a job is why that can't
// go on.
func (s *Service) restore(ctx context.Context, row store.Run, trees forest) (*job, error) {
	record, err := recordOf(row)
	if err != nil {
		return nil, err
	}
	run := &Run{id: row.ID, done: make(chan struct{}), record: record}
	run.family = family{parent: record.Parent, root: record.Root}
	j := s.blankJob(run)
	j.troubled, j.spent = record.State != api.Idle, record.Outcome != ""
	if err := json.Unmarshal(row.Private, &j.private); err != nil {
		return j, fmt.Errorf("decode run: %w", err)
	}
	s.pool.lend(j.private.Boxes)
	j.lease = j.private.Lease
	run.family.path, run.family.deadline = j.private.Path, j.private.Deadline
	run.req = Request{Capsule: &capsule.Capsule{Name: record.Unit, Kind: record.Kind}, Timeout: j.private.Timeout}
	if record.Outcome != "" {
		return j, nil
	}
	if run.family.tree, err = trees.of(ctx, record.Root); err != nil {
		return j, err
	}
	u, err := s.units.Version(ctx, record.Unit, record.Version)
	if err != nil {
		return j, err
	}
	run.req = s.request(u)
	run.req.Timeout = j.private.Timeout
	run.ready.input, err = contract.Decode(orEmpty(row.Input), max(s.opts.PayloadBytes, int64(len(row.Input))))
	return j, err
}

// forest has the trees of the runs that are recovered, each once.
type forest struct {
	service *Service
	trees   map[string]*handoff.Tree
}

func (f forest) of(ctx context.Context, root string) (*handoff.Tree, error) {
	if tree := f.trees[root]; tree != nil {
		return tree, nil
	}
	tree, err := f.service.recoverTree(ctx, root)
	if err == nil {
		f.trees[root] = tree
	}
	return tree, err
}

// wishFor returns the cancellation that was asked for before an earlier process died, as
// the cause of the run's end; nil if nobody asked.
func (s *Service) wishFor(ctx context.Context, id string) error {
	var after int64
	for {
		events, err := s.store.Events(ctx, id, after, eventPage)
		if err != nil || len(events) == 0 {
			return nil //nolint:nilerr // who wants it cancelled can say so again
		}
		for _, event := range events {
			after = event.Seq
			data, _ := eventOf(event).Decode() // what can't be read asks for nothing
			if wish, ok := data.(api.CancelEvent); ok {
				return wishOf(wish.Reason)
			}
		}
	}
}

// tidy removes what belongs to no run: it is what a process left that died between two
// steps.
func (s *Service) tidy(ctx context.Context) {
	if err := s.undescribed(ctx, s.removeUnknownFiles); err != nil {
		s.logger.Warn("stray files not removed", about(err))
	}
	if s.awaitEngine(ctx) != nil {
		return
	}
	if err := s.undescribed(ctx, s.removeUnknownContainers); err != nil {
		s.logger.Warn("stray containers not removed", about(err))
	}
}

// undescribed does something while no unit is asked for its card, for which there is no run
// either.
func (s *Service) undescribed(ctx context.Context, do func(context.Context) error) error {
	if err := s.describing.take(ctx); err != nil {
		return err
	}
	defer s.describing.give()
	return do(ctx)
}

func (s *Service) removeUnknownContainers(ctx context.Context) error {
	removed, err := runtime.RemoveStray(ctx, s.exec.engine, s.exec.owner, s.isLive)
	if removed > 0 {
		s.logger.Warn("removed stray containers or volumes", "count", removed)
	}
	return err
}

// removeUnknownFiles looks through the directories of runs in portions.
func (s *Service) removeUnknownFiles(ctx context.Context) error {
	const portion = 500
	dir, err := os.Open(s.path("runs"))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // read only
	for ctx.Err() == nil {
		names, err := dir.Readdirnames(portion)
		if len(names) == 0 {
			return ignoreEOF(err)
		}
		known, err := s.store.Known(ctx, names)
		if err != nil {
			return err
		}
		for _, name := range names {
			if known[name] || s.isLive(name) || s.isYoung(name) {
				continue
			}
			if err := removeRun(filepath.Join(s.path("runs"), name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// isYoung spares the directory of a run that is being accepted at this moment.
func (s *Service) isYoung(name string) bool {
	info, err := os.Stat(s.runPath(name))
	return err == nil && time.Since(info.ModTime()) < time.Minute && !info.ModTime().Before(s.opened)
}

// isLive reports whether this process has to do with a run, or with a sandbox that waits for
// one or did.
func (s *Service) isLive(id string) bool { return s.job(id) != nil || s.pool.has(id) }

// brokenRun concludes a run with which this process can't go on.
func brokenRun(err error) conclusion {
	public := fault.Public(err)
	return conclusion{state: api.Failed, outcome: api.SystemError, failure: &api.RunError{
		Category: api.CategoryPermanent, Kind: public.Kind.String(),
		Message: "the run can't go on after a restart: " + public.Msg, Hint: public.Hint,
	}}
}
