// Package memories keeps what the programs of runs want to know again in a later attempt.
//
//	Feature.Join    gives a run its part
//	part.Mounts     is GET and PUT /memory in the capsule API
//	part.Keep       appends a value to the run's file, once for each key
//	part.Recall     reads it there
//	part.Conclude   removes the file where what a run says isn't kept
//
// It must not know who leads a run, or HTTP.
//
// Its Go API may change with every release: see docs/stability.md.
package memories

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// The bounds of what is kept of one run.
const (
	maxValues = 1000
	maxBytes  = 16 << 20 // of the file
)

// Feature implements feature.Feature.
type Feature struct {
	process feature.Process
	content bool
}

// New returns the Feature. content says that what is kept stays with a run after its end, as its transcript does.
func New(content bool) *Feature { return &Feature{content: content} }

// Init implements feature.Initializer.
func (f *Feature) Init(p feature.Process) error {
	f.process = p
	return nil
}

// Join implements feature.Feature.
func (f *Feature) Join(_ context.Context, r *run.Run, _ feature.Part) feature.Part {
	return &part{feature: f, run: r}
}

// part is what is kept of one run: a file with a line for each value, of which this process knows the places.
type part struct {
	feature.Indifferent
	feature *Feature
	run     *run.Run

	mu     sync.Mutex
	places map[string]place // by key; nil: the file wasn't read yet
	size   int64            // of the file
}

// place is where a line is.
type place struct{ from, bytes int64 }

// line is a value as the file has it.
type line struct {
	Key   string          `json:"key"`
	At    time.Time       `json:"at"`
	Value json.RawMessage `json:"value"`
}

func fileIn(runDir string) string { return filepath.Join(runDir, layout.Memory) }

// Mounts implements feature.Part.
func (p *part) Mounts(feature.Slot) []capsuleapi.Mount {
	return []capsuleapi.Mount{capsuleapi.MemoryMount(p)}
}

// Conclude implements feature.Part.
func (p *part) Conclude() {
	if p.feature.content && p.run.Unit.Policy.Transcript {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.places, p.size = nil, 0
	if err := safefs.IgnoreMissing(os.Remove(fileIn(p.run.Dir))); err != nil {
		p.feature.process.Logger.Warn("what a run kept stays", "run", p.run.ID, fault.LogAttr(err))
	}
}

// Inherit implements feature.Heir.
func (p *part) Inherit(runDir string, before time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var taken []byte
	_, err := eachLine(fileIn(runDir), func(raw []byte, _ int64) {
		var l struct{ At time.Time }
		if json.Unmarshal(raw, &l) == nil && l.At.Before(before) {
			taken = append(taken, raw...)
		}
	})
	if err == nil && taken != nil {
		err = p.append(taken)
	}
	return run.StorageFault(err)
}

// Recall implements capsuleapi.Memory.
func (p *part) Recall(_ context.Context, key string) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recall(key)
}

func (p *part) recall(key string) (json.RawMessage, error) {
	if err := p.know(); err != nil {
		return nil, run.StorageFault(err)
	}
	at, known := p.places[key]
	if !known {
		return nil, fault.New(fault.NotFound, "the run has kept nothing under this key").
			WithHint("PUT /memory?key=KEY keeps a value")
	}
	kept, err := p.read(at)
	return kept.Value, run.StorageFault(err)
}

func (p *part) read(at place) (kept line, err error) {
	file, _, err := safefs.OpenNamed(fileIn(p.run.Dir))
	if err != nil {
		return kept, err
	}
	defer func() { _ = file.Close() }() // read only
	err = json.NewDecoder(io.NewSectionReader(file, at.from, at.bytes)).Decode(&kept)
	return kept, err
}

// Keep implements capsuleapi.Memory.
func (p *part) Keep(_ context.Context, key string, value json.RawMessage) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if there, err := p.recall(key); !fault.Is(err, fault.NotFound) {
		return there, err
	}
	raw, err := json.Marshal(line{key, time.Now().UTC(), value})
	if err != nil {
		return nil, err
	}
	raw = append(raw, '\n')
	if len(p.places) >= maxValues || p.size+int64(len(raw)) > maxBytes {
		return nil, fault.New(fault.TooLarge, "this run keeps %d values with %d bytes; %d and %d are allowed",
			len(p.places), p.size, maxValues, maxBytes).
			WithHint("keep fewer, larger steps, and less of each")
	}
	if err := p.feature.process.Home.Disks.Room(int64(len(raw))); err != nil {
		return nil, err
	}
	if err := p.append(raw); err != nil {
		p.places = nil // what is in the file now is read anew
		return nil, run.StorageFault(err)
	}
	p.places[key] = place{p.size, int64(len(raw))}
	p.size += int64(len(raw))
	return value, nil
}

// append adds a line to the file: it is there whole, or not at all.
func (p *part) append(raw []byte) (err error) {
	file, err := safefs.OpenLines(fileIn(p.run.Dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err = file.Write(raw); err != nil || !p.run.Durable {
		return err
	}
	if err = file.Sync(); err == nil && p.size == 0 {
		err = safefs.Sync(p.run.Dir)
	}
	return err
}

// know reads what an earlier process, or an earlier try, has left.
func (p *part) know() error {
	if p.places != nil {
		return nil
	}
	places := map[string]place{}
	size, err := eachLine(fileIn(p.run.Dir), func(raw []byte, from int64) {
		var head struct{ Key string }
		if json.Unmarshal(raw, &head) == nil { // else it is damaged, and worked for again
			places[head.Key] = place{from, int64(len(raw))}
		}
	})
	if err == nil {
		p.places, p.size = places, size
	}
	return err
}

// eachLine calls do with each whole line of a file and where it begins, and returns where the last of them ends.
func eachLine(path string, do func(raw []byte, from int64)) (size int64, err error) {
	err = safefs.EachLine(path, maxBytes, func(raw []byte) (bool, error) {
		do(raw, size)
		size += int64(len(raw))
		return true, nil
	})
	return size, safefs.IgnoreMissing(err)
}
