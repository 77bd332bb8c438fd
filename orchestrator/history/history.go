// Package history keeps the last runs of commands in a data directory, with their inputs, logs and
// results, so that a user can look at them and run them again.
//
//	History.Add   keeps a run that has ended, and removes the oldest
//	History.List  has what is kept, newest first
//	History.Get   reads one run; Log, Inputs and Project read what lies beside it
//
// Any number of processes may use a history at once. It must not know how a run is led, nor the
// store of a server.
//
// Its Go API may change with every release: see docs/stability.md.
package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/runlog"
)

const (
	// maxBytes bounds all runs that a history has.
	maxBytes = 256 << 20
	// maxFileBytes bounds the input and output files of one run. Larger ones aren't kept.
	maxFileBytes = 64 << 20
	// maxRecordBytes is more than the file of one run takes: its record holds an input and
	// an output of at most a few megabytes.
	maxRecordBytes = 64 << 20
	// abandonedAge is the age from which an unfinished directory belongs to a dead process.
	abandonedAge = time.Hour
)

// History has the last runs of commands in a data directory, with their inputs, logs and
// results. It is for its user alone. Any number of processes may use it at once.
//
//	Home/history/ID/past.json   a Past
//	Home/history/ID/log.jsonl   what the run wrote
//	Home/history/ID/input/      its input files
//	Home/history/ID/output/     its output files
//	Home/history/ID/base/       the project that it worked on, with base.json
//	Home/history/ID/changes/    what it made of that
//	Home/history/ID/walk.json   of a flow: a Walk
//	Home/history/ID/state/      of a flow: the files in its state
type History struct {
	dir  string
	most int
}

// New returns the history of a data directory, which keeps that many runs at most.
func New(home string, most int) *History {
	return &History{dir: filepath.Join(home, "history"), most: most}
}

// Past is a run that has ended, with what is needed to run it again.
type Past struct {
	Record  api.Record    `json:"record"`
	Source  Source        `json:"source"`
	Timeout time.Duration `json:"timeout,omitempty"`  // that was asked for
	NoFiles bool          `json:"no_files,omitempty"` // its files were too large to be kept

	NoProject bool `json:"no_project,omitempty"` // the project that it worked on was
	NoWalk    bool `json:"no_walk,omitempty"`    // the steps and the state of a flow were

	Walk *Walk `json:"-"` // of a flow: Add keeps it, and History.Walk reads it
}

// Source is where a run came from that isn't in its record.
type Source struct {
	Dir     string            `json:"dir"`               // of its unit, absolute
	Secrets map[string]string `json:"secrets,omitempty"` // paths of files, absolute, by name

	UnitConfig string   `json:"unit_config,omitempty"` // path of the file with what the unit gets, absolute
	MayCall    []string `json:"may_call,omitempty"`    // units beside those of its tools.yaml
	Upstreams  string   `json:"upstreams,omitempty"`   // path of the file with those that it may ask, absolute
	Models     string   `json:"models,omitempty"`      // likewise of providers and models

	Start capsule.AgentStart `json:"start,omitzero"` // of a wrapped agent's program
}

// List returns the runs of the history, newest first. What can't be read is left out.
func (h *History) List() []Past {
	var all []Past
	for _, id := range h.ids() {
		if past, err := h.Get(id); err == nil {
			all = append(all, past)
		}
	}
	return all
}

// ids returns the ids of the whole runs, newest first.
func (h *History) ids() []string {
	entries, _ := os.ReadDir(h.dir) // a missing directory has none
	var ids []string
	for _, entry := range slices.Backward(entries) {
		if entry.IsDir() && isID(entry.Name()) {
			ids = append(ids, entry.Name())
		}
	}
	return ids
}

// isID reports whether a text has the form of a run's id.
func isID(text string) bool { return len(text) == 36 && uuid.Validate(text) == nil }

// Get returns a run of the history, or a NotFound fault.
func (h *History) Get(id string) (Past, error) {
	var past Past
	if !isID(id) {
		return past, unknown(id)
	}
	raw, err := readPast(h.Dir(id))
	if errors.Is(err, os.ErrNotExist) {
		return past, unknown(id)
	}
	if err == nil {
		err = json.Unmarshal(raw, &past)
	}
	if err != nil {
		return past, fault.Wrap(fault.Internal, err, "the kept run %s can't be read", id).
			WithHint("remove %s", h.Dir(id))
	}
	return past, nil
}

func unknown(id string) error { return fault.New(fault.NotFound, "there is no run %.64s", id) }

const pastName = "past.json"

func readPast(dir string) ([]byte, error) {
	f, _, err := safefs.OpenNamed(filepath.Join(dir, pastName))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	return io.ReadAll(io.LimitReader(f, maxRecordBytes))
}

// Log yields what a run of the history wrote, of that what is wanted.
func (h *History) Log(id string, wanted api.LogFilter) iter.Seq2[api.LogEntry, error] {
	return func(yield func(api.LogEntry, error) bool) {
		if _, err := h.Get(id); err != nil {
			yield(api.LogEntry{}, err)
			return
		}
		t := runlog.NewTail(h.Dir(id), wanted)
		defer t.Close()
		if _, err := t.Drain(yield); err != nil {
			yield(api.LogEntry{}, err)
		}
	}
}

// Inputs returns the input files of a run under the names that they had.
func (h *History) Inputs(id string) ([]run.PlacedFile, error) {
	dir := h.inputDir(id)
	var files []run.PlacedFile
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, run.PlacedFile{Source: path, Name: filepath.ToSlash(name)})
		return err
	})
	return files, safefs.IgnoreMissing(err)
}

// Project returns what stores the project of a run once more; nil: it had none.
func (h *History) Project(id string) (run.PlaceProject, error) {
	return run.StoredProject(h.Dir(id))
}

// Dir returns the directory of a run.
func (h *History) Dir(id string) string { return filepath.Join(h.dir, id) }

// ChangesDir returns the directory of what a run made of its project: see workspace.Compare.
func (h *History) ChangesDir(id string) string { return filepath.Join(h.dir, id, layout.Changes) }

func (h *History) inputDir(id string) string { return filepath.Join(h.dir, id, "input") }

// prune removes the oldest runs until the history keeps its bounds, and what dead processes
// left unfinished.
func (h *History) prune() error {
	var failed error
	var bytes int64
	for i, id := range h.ids() {
		bytes += safefs.TreeBytes(h.Dir(id))
		if i >= h.most || i > 0 && bytes > maxBytes {
			failed = errors.Join(failed, h.remove(id))
		}
	}
	return errors.Join(failed, h.removeAbandoned())
}

// remove takes the name from a run before its files go, so that nobody sees half of it.
func (h *History) remove(id string) error {
	temp := filepath.Join(h.dir, safefs.TempName())
	if err := os.Rename(h.Dir(id), temp); err != nil {
		return safefs.IgnoreMissing(err) // another process was quicker
	}
	return safefs.RemoveTree(temp)
}

func (h *History) removeAbandoned() error {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	var failed error
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !strings.HasPrefix(entry.Name(), safefs.TempPrefix) ||
			time.Since(info.ModTime()) < abandonedAge {
			continue
		}
		failed = errors.Join(failed, safefs.RemoveTree(filepath.Join(h.dir, entry.Name())))
	}
	if failed != nil {
		return fmt.Errorf("remove unfinished runs: %w", failed)
	}
	return nil
}
