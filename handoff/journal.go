package handoff

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agent-on-demand/aod/safefs"
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

func (j journal) begun() (placement, bool, error) {
	var p placement
	ok, err := j.read(placementFile, &p)
	return p, ok, err
}

func (j journal) begin(p placement) error { return j.write(placementFile, p) }

// end is remove for a caller that needn't know whether it worked.
func (j journal) end() { _ = j.remove() }

func (j journal) remove() error {
	return j.within(func(root *os.Root) error {
		if err := root.Remove(placementFile); err != nil && !isMissing(err) {
			return err
		}
		return nil
	})
}

func (j journal) read(name string, into any) (there bool, err error) {
	err = j.within(func(root *os.Root) error {
		raw, err := root.ReadFile(name)
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		there = true
		return json.Unmarshal(raw, into)
	})
	return there, err
}

// write replaces the file as a whole.
func (j journal) write(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode journal: %w", err)
	}
	if err := safefs.Replace(filepath.Join(j.dir, name), raw, safefs.ReplaceOptions{Mode: 0o600, OneWriter: true}); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func (j journal) within(do func(*os.Root) error) error {
	root, err := os.OpenRoot(j.dir)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	defer func() { _ = root.Close() }() // holds no data
	if err := do(root); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// isMissing reports whether a file, or a directory on the way to it, doesn't exist.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
