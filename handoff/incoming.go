package handoff

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// PlacedFile is a file of a callee's as its caller finds it.
type PlacedFile struct {
	Name string `json:"name"` // relative to the callee's /io/output
	// Path is absolute: in the caller's sandbox, or on this host for a caller without an
	// incoming directory.
	Path      string `json:"path"`
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"` // hex
	Field     string `json:"field,omitempty"`
}

// whereTheyLie describes files that were not placed.
func whereTheyLie(files []Output) []PlacedFile {
	lying := make([]PlacedFile, 0, len(files))
	for _, f := range files {
		lying = append(lying, PlacedFile(f))
	}
	return lying
}

// incoming is the directory in which a caller finds what its callees made.
//
// The files of one handoff are placed at a time. The process may die between any two steps:
// the placement is written to the journal, the files are placed, the record is written, the
// placement is removed. A placement without a record is undone before anything else is
// placed. One with a record counts, and is never done again.
type incoming struct {
	dir     string // the caller's
	journal journal
	mu      sync.Mutex
}

// deliver puts the files of a handoff into the directory, each of them whole, and says
// where. If one of their names is taken, all go to a directory of the handoff's own. Called
// again it returns the same. The error is an Unavailable or Internal fault.
func (in *incoming) deliver(id string, files []Output) ([]PlacedFile, error) {
	if len(files) == 0 {
		return []PlacedFile{}, nil
	}
	if !httpwire.IsRunID(id) {
		return nil, fault.New(fault.Internal, "a handoff has no valid id")
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if placed, ok, err := in.journal.recorded(id); err != nil || ok {
		return placed, deliveryFault(err)
	}
	placed, err := in.deliverNew(id, files)
	return placed, deliveryFault(err)
}

// deliveryFault is an Unavailable fault, unless the error is a fault already.
func deliveryFault(err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return fault.Wrap(fault.Unavailable, withoutName(err), "the callee's files can't be put into %s",
		contract.StageIncoming).
		WithHint("the call itself is done: ask again for its result")
}

func (in *incoming) deliverNew(id string, files []Output) ([]PlacedFile, error) {
	root, err := openOwn(in.dir)
	if err != nil {
		return nil, fmt.Errorf("open incoming: %w", err)
	}
	defer func() { _ = root.Close() }() // holds no data
	if err := in.undo(root); err != nil {
		return nil, fmt.Errorf("undo what was half placed: %w", err)
	}
	p, err := placementFor(root, id, files)
	if err != nil {
		return nil, err
	}
	if err := in.journal.write(placementFile, p); err != nil {
		return nil, err
	}
	placed, err := p.place(root, files)
	if err == nil {
		err = in.journal.record(id, placed)
	}
	if err != nil {
		return nil, errors.Join(err, in.undo(root))
	}
	_ = in.journal.remove() // what stays behind is seen to be done by the next undo
	return placed, nil
}

// undo removes the files of a placement that was interrupted.
func (in *incoming) undo(root *os.Root) error {
	var p placement
	if ok, err := in.journal.read(placementFile, &p); err != nil || !ok {
		return err
	}
	if _, done, err := in.journal.recorded(p.ID); err != nil {
		return err
	} else if !done {
		if err := p.remove(root); err != nil {
			return err
		}
	}
	return in.journal.remove()
}

// journal is a directory that no capsule reaches. It has a record of each handoff whose files
// were placed, and the placement of the one whose files are being placed.
type journal struct{ dir string }

const placementFile = "placing.json"

func (j journal) recorded(id string) ([]PlacedFile, bool, error) {
	var placed []PlacedFile
	ok, err := j.read(id+".json", &placed)
	return placed, ok, err
}

func (j journal) record(id string, placed []PlacedFile) error { return j.write(id+".json", placed) }

// remove removes the placement.
func (j journal) remove() error {
	if err := safefs.IgnoreMissing(os.Remove(filepath.Join(j.dir, placementFile))); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func (j journal) read(name string, into any) (there bool, err error) {
	raw, err := os.ReadFile(filepath.Join(j.dir, name)) // the name is an id that was checked, or our own
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return false, fmt.Errorf("journal: %w", err)
	}
	return true, nil
}

// write replaces the file as a whole.
func (j journal) write(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode journal: %w", err)
	}
	if err := safefs.Replace(filepath.Join(j.dir, name), raw,
		safefs.ReplaceOptions{Mode: 0o600, OneWriter: true}); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// isMissing reports whether a file, or a directory on the way to it, doesn't exist.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
