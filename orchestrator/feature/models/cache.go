package models

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	maxCache  = 256 << 20                      // bytes of all answers
	maxCached = 7 * 24 * 60 * 60 * time.Second // of any unit's model_cache
)

// Cache is what is kept of the answers for all units that want that: a file an answer.
type Cache struct {
	Dir string

	mu   sync.Mutex
	size int64 // of the files; 0: not known
}

// cached implements gateway.Answers for the runs of a unit in one version.
type cached struct{ *account }

// cache returns nil unless the unit wants its answers again, and they may be kept.
func (a *account) cache() gateway.Answers {
	if a.run.Unit.Policy.ModelCache == 0 || a.run.Record.Version == "" || a.source != (Source{}) ||
		!a.keepsContent() {
		return nil
	}
	return cached{a}
}

func (c cached) file(key string) answerFile {
	of := c.run.Record.Unit + "\n" + c.run.Record.Version + "\n" + key
	if team := api.TeamOf(c.run.Record.Owner); team != api.DefaultTeam { // what one team was told isn't told another
		of = team + "\n" + of
	}
	return answerFileOf(c.cacheOfAll.Dir, of)
}

// Find implements gateway.Answers.
func (c cached) Find(_ context.Context, key string) (cassette.Answer, string, bool) {
	kept, age, found := c.file(key).read()
	return kept.Answer, kept.Digest, found && age < c.run.Unit.Policy.ModelCache
}

// Keep implements gateway.Answers. What can't be kept is asked for again.
func (c cached) Keep(_ context.Context, key, digest string, a cassette.Answer) {
	raw, ok := keptAnswer{digest, a}.encode()
	if !ok {
		return
	}
	err := c.cacheOfAll.room(int64(len(raw)))
	if err == nil {
		err = c.file(key).write(raw)
	}
	if err != nil {
		c.logger.Warn("model answer not cached", "run", c.run.ID, fault.LogAttr(err))
	}
}

// room makes room for an answer. The oldest ones go.
func (c *Cache) room(size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size += size; c.size > size && c.size <= maxCache {
		return nil
	}
	files, err := filesIn(c.Dir)
	slices.SortFunc(files,
		func(a, b os.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	c.size = size
	for _, info := range files {
		if time.Since(info.ModTime()) < maxCached && c.size+info.Size() <= maxCache {
			c.size += info.Size()
			continue
		}
		if err := os.Remove(filepath.Join(c.Dir, info.Name())); safefs.IgnoreMissing(err) != nil {
			return err
		}
	}
	return safefs.IgnoreMissing(err)
}

// filesIn returns the files of a directory of answers.
func filesIn(dir string) (files []os.FileInfo, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // else it has gone
			files = append(files, info)
		}
	}
	return files, err
}
