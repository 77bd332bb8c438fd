package handoff

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agent-on-demand/aod/internal/safefs"
)

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
	raw, err := os.ReadFile(filepath.Join(j.dir, name)) //nolint:gosec // the name is an id that was checked, or our own
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
