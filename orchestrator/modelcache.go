package orchestrator

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/gateway"
	"github.com/agent-on-demand/aod/gateway/cassette"
	"github.com/agent-on-demand/aod/safefs"
)

const (
	modelCacheDir = "modelcache"
	maxModelCache = 256 << 20                      // bytes of all answers
	maxCached     = 7 * 24 * 60 * 60 * time.Second // of any unit's model_cache
)

// modelCache is what is kept of the answers for all units that want that: a file an answer.
type modelCache struct {
	dir string

	mu   sync.Mutex
	size int64 // of the files; 0: not known
}

// cachedAnswers implements gateway.Answers for the runs of a unit in one version.
type cachedAnswers struct{ job *job }

// cachedAnswers returns nil unless the unit wants its answers again, and they may be kept.
func (j *job) cachedAnswers() gateway.Answers {
	if j.Unit.Policy.ModelCache == 0 || j.Record.Version == "" || j.source != (ModelSource{}) || !j.keepsContent() {
		return nil
	}
	return cachedAnswers{j}
}

func (c cachedAnswers) file(key string) answerFile {
	return answerFileOf(c.job.loop.modelCache.dir, c.job.Record.Unit+"\n"+c.job.Record.Version+"\n"+key)
}

// Find implements gateway.Answers.
func (c cachedAnswers) Find(_ context.Context, key string) (cassette.Answer, string, bool) {
	kept, age, found := c.file(key).read()
	return kept.Answer, kept.Digest, found && age < c.job.Unit.Policy.ModelCache
}

// Keep implements gateway.Answers. What can't be kept is asked for again.
func (c cachedAnswers) Keep(_ context.Context, key, digest string, a cassette.Answer) {
	raw, ok := keptAnswer{digest, a}.encode()
	if !ok {
		return
	}
	err := c.job.loop.modelCache.room(int64(len(raw)))
	if err == nil {
		err = c.file(key).write(raw)
	}
	if err != nil {
		c.job.loop.logger.Warn("model answer not cached", "run", c.job.ID, fault.LogAttr(err))
	}
}

// room makes room for an answer. The oldest ones go.
func (m *modelCache) room(size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size += size; m.size > size && m.size <= maxModelCache {
		return nil
	}
	entries, err := os.ReadDir(m.dir)
	var files []os.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // else it has gone
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	m.size = size
	for _, info := range files {
		if time.Since(info.ModTime()) < maxCached && m.size+info.Size() <= maxModelCache {
			m.size += info.Size()
			continue
		}
		if err := os.Remove(filepath.Join(m.dir, info.Name())); safefs.IgnoreMissing(err) != nil {
			return err
		}
	}
	return safefs.IgnoreMissing(err)
}
