package handoff

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// place puts each file where the placement has it.
func (p placement) place(root *os.Root, files []Output) ([]PlacedFile, error) {
	placed := make([]PlacedFile, 0, len(files))
	for i, f := range files {
		if err := put(root, f.Path, p.Names[i]); err != nil {
			return nil, fmt.Errorf("place a file: %w", err)
		}
		placed = append(placed, PlacedFile{
			Name: f.Name, Path: path.Join(string(contract.StageIncoming), p.Names[i]),
			SizeBytes: f.SizeBytes, SHA256: f.SHA256, Field: f.Field,
		})
	}
	return placed, nil
}

// put makes a file of ours appear below root, whole at once. It makes a hard link, which the
// read-only mount protects from the capsule, or else a copy.
func put(root *os.Root, source, name string) error {
	info, err := os.Lstat(source)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("an output file is %s", safefs.Describe(info.Mode()))
	}
	dir := path.Dir(name)
	if err := safefs.MkdirAll(root, dir, 0o755); err != nil {
		return err
	}
	parent, err := safefs.OpenDir(root, dir)
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }() // holds no data
	err = linkInto(parent, source, path.Base(name))
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return putCopy(root, source, name) // another file system, or one without links, or too many
}

func putCopy(root *os.Root, source, name string) error {
	in, err := os.OpenFile(source, os.O_RDONLY|noFollow|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	if _, err := safefs.Copy(root, tempName, in, 0o644); err != nil {
		return err
	}
	return root.Rename(tempName, name)
}
