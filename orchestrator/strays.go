package orchestrator

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// strays are what belongs to no run: a process left it that died between two steps.
type strays struct{ service *Service }

// remove removes them, those of the features and of the kinds as well.
func (s strays) remove(ctx context.Context) {
	err := errors.Join(s.removeFiles(ctx), s.service.sessions.RemoveStrays())
	for _, f := range s.service.opts.Features {
		if sweeper, ok := f.(feature.Sweeper); ok {
			err = errors.Join(err, sweeper.RemoveStrays(ctx))
		}
	}
	if err != nil {
		s.service.logger.Warn("stray files not removed", fault.LogAttr(err))
	}
	for kind := range s.service.kinds.Each() {
		if sweeper, ok := kind.(run.Sweeper); ok {
			if err := sweeper.SweepStrays(ctx, s.service.isLive); err != nil && ctx.Err() == nil {
				s.service.logger.Warn("stray containers not removed", fault.LogAttr(err))
			}
		}
	}
}

// removeFiles removes the directories that no stored run has. It works in portions.
func (s strays) removeFiles(ctx context.Context) error {
	const portion = 500
	dir, err := os.Open(s.service.home.Runs)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // read only
	for ctx.Err() == nil {
		names, err := dir.Readdirnames(portion)
		if len(names) == 0 {
			return ignoreEOF(err)
		}
		known, err := s.service.store.Runs.Known(ctx, names)
		if err != nil {
			return err
		}
		for _, name := range names {
			if known[name] || s.service.isLive(name) || s.isYoung(name) {
				continue
			}
			if err := safefs.RemoveTree(s.service.runPath(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// isYoung reports whether a directory may belong to a run that is being accepted.
func (s strays) isYoung(name string) bool {
	info, err := os.Stat(s.service.runPath(name))
	return err == nil && time.Since(info.ModTime()) < time.Minute && !info.ModTime().Before(s.service.opened)
}
